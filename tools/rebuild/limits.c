/* tools/rebuild/limits.c - a trace's regions beside the limits of the machine that it is from. */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "base/variable.h"
#include "measure/machine/roofline.h"
#include "memory.h"

#include <string.h>

void rebuild_work(rebuild *r, const span *s)
{
    rebuilt_thread *t = &r->threads[s->thread];
    if (!s->bytes && !s->flops)
        return;
    memory_fit(&t->work, &t->work_room, s->region + (size_t)1, sizeof *t->work);
    t->work[s->region] += s->end - s->start;
}

double rebuild_threads(const rebuild *r, uint32_t region)
{
    uint64_t sum = 0, most = 0;
    for (uint32_t i = 0; i < r->tracks.count; i++) {
        const rebuilt_thread *t = &r->threads[i];
        uint64_t ns = region < t->work_room ? t->work[region] : 0;
        sum += ns;
        most = PKI_MAX(most, ns);
    }
    return most ? (double)sum / (double)most : 0;
}

/* The file of the host that the trace names, wherever this is read; or the one that the user does.
 */
static bool find_machine(const char *host, pki_machine *m)
{
    char path[PATH_MAX], why[300];
    const char *named = pki_variable("PK_MACHINE_PATH");
    if (named)
        return strcmp(named, "none") != 0 && pki_machine_read(named, m, why, sizeof why);
    return host && host[0] && pki_machine_path(host, path) &&
           pki_machine_read(path, m, why, sizeof why) && strcmp(m->host, host) == 0;
}

void rebuild_fill_limits(pki_summary *out)
{
    pki_machine m;
    if (pki_roofline_wanted(out) && find_machine(out->run.host, &m))
        memory_needed(pki_roofline_fill(&m, out));
}
