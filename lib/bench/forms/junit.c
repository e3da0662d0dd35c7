/* JUnit's XML, as CI systems read it: a benchmark is a test case, its time the median of one
 * iteration in seconds. */
#include "bench/forms/document.h"
#include "bench/forms/markup.h"

#include <string.h>

/* sum/n:1024 is case "sum/n:1024" of class "sum". */
static void put_case(FILE *file, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    char family[256], device[192];
    snprintf(family, sizeof family, "%.*s", (int)strcspn(row->name, "/"), row->name);
    fputs("  <testcase classname=\"", file);
    pki_bench_put_xml(file, family);
    fputs("\" name=\"", file);
    pki_bench_put_xml(file, row->name);
    fprintf(file, "\" time=\"%.12f\"", r->median / 1e9);
    if (pki_bench_row_measured(row)) {
        fputs(">\n    <system-out>", file);
        pki_bench_put_xml(file, r->verdict_text);
        pki_bench_device_text(row, device, sizeof device);
        fprintf(file, "; median %s%s%s", pki_bench_time(r->median).text, *device ? "; " : "",
                device);
        fputs("</system-out>\n  </testcase>\n", file);
        return;
    }
    fprintf(file, ">\n    <%s message=\"",
            r->outcome == PK_BENCH_OUTCOME_FAILED ? "failure" : "skipped");
    pki_bench_put_xml(file, r->reason);
    fputs("\"/>\n  </testcase>\n", file);
}

void pki_bench_junit(const pki_bench_document *d, FILE *file)
{
    size_t failed = 0, skipped = 0;
    for (size_t i = 0; i < d->row_count; i++) {
        failed += d->rows[i].result.outcome == PK_BENCH_OUTCOME_FAILED;
        skipped += d->rows[i].result.outcome == PK_BENCH_OUTCOME_SKIPPED;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", file);
    pki_bench_put_xml(file, d->executable);
    fprintf(file, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n",
            d->row_count, failed, skipped, (double)d->elapsed / 1e9);
    for (size_t i = 0; i < d->row_count; i++)
        put_case(file, &d->rows[i]);
    fputs("</testsuite>\n", file);
}
