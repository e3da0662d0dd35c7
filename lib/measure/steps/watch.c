#include "measure/steps/watch.h"

static pki_step_watch watch;

void pki_step_watch_start(uint64_t first, uint64_t last)
{
    watch = (pki_step_watch){.first = first,
                             .last = last,
                             .begin_ns = first == 0 ? 0 : PKI_NOT_YET,
                             .end_ns = PKI_NOT_YET};
}

/* Steps may be missing, where a ring was full. */
void pki_step_watch_see(uint64_t index, uint64_t start_ns, uint64_t duration_ns)
{
    uint64_t end_ns = start_ns + duration_ns;
    watch.usual_ns = watch.usual_ns ? (3 * watch.usual_ns + duration_ns) / 4 : duration_ns;
    watch.next = index + 1;
    watch.next_ns = end_ns;
    if (watch.begin_ns == PKI_NOT_YET && index + 1 >= watch.first)
        watch.begin_ns = index >= watch.first ? start_ns : end_ns;
    if (watch.end_ns == PKI_NOT_YET && index >= watch.last)
        watch.end_ns = index == watch.last ? end_ns : start_ns;
}

void pki_step_watch_wait(uint64_t begin_ns)
{
    watch.next_ns = begin_ns;
}

pki_step_watch pki_step_watch_now(void)
{
    return watch;
}

uint64_t pki_step_watch_expect(const pki_step_watch *w)
{
    uint64_t ahead = w->next < w->first ? w->first - w->next : 0;
    if (w->begin_ns != PKI_NOT_YET)
        return w->begin_ns;
    if (w->usual_ns == 0 || ahead > (UINT64_MAX - w->next_ns) / w->usual_ns - 1)
        return PKI_NOT_YET;
    return w->next_ns + ahead * w->usual_ns;
}
