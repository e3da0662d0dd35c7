/* lib/out/chrome/request.c - the event of a request's end, on its track. */
#include "core/request_record.h"
#include "out/chrome/span.h"
#include "out/emit.h"

char *pki_chrome_put_request(char *p, const pki_record *r, const pki_record *more)
{
    static const char *const outcomes[] = {"finished", "cancelled", "failed", "failed"};
    pki_request_done d = pki_request_unpack(r, more);
    p = PKI_PUT(p, ",\"args\":{\"outcome\":\"");
    p = PKI_PUT(pki_put_text(p, outcomes[d.outcome & 3]), "\"");
    p = pki_put_field(p, "good", d.good);
    p = pki_put_field(p, "tokens", d.tokens);
    p = pki_put_field(p, "preemptions", d.preemptions);
    p = pki_put_field(p, "first_step", d.first_step);
    p = pki_put_field(p, "steps", d.steps);
    p = pki_put_field(p, "total_ns", d.total);
    p = pki_put_field(p, "ttft_ns", d.ttft);
    p = pki_put_field(p, "generated_ns", d.generated);
    p = pki_put_field(p, "queued_ns", d.queued);
    p = pki_put_field(p, "preempted_ns", d.preempted);
    p = pki_put_field(p, "reading_ns", d.reading);
    p = pki_put_field(p, "crowded_ns", d.crowded);
    p = pki_put_field(p, "behind_ns", d.behind);
    return PKI_PUT(p, "}}");
}
