/* tools/rebuild/limits.c - a trace's regions beside the limits of the machine that it is from. */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "base/variable.h"
#include "measure/machine/peak.h"
#include "measure/machine/roofline.h"
#include "memory.h"

#include <stdio.h>
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
static bool find_machine(const char *host, pki_machine *m, char why[300])
{
    char path[PATH_MAX];
    const char *named = pki_variable("PK_MACHINE_PATH");
    snprintf(why, 300, "there is no file of it here");
    if (named)
        return strcmp(named, "none") != 0 && pki_machine_read(named, m, why, 300);
    if (!host || !host[0] || !pki_machine_path(host, path) || !pki_machine_read(path, m, why, 300))
        return false;
    snprintf(why, 300, "its file is another host's");
    return strcmp(m->host, host) == 0;
}

/* Which processors the process might use, and which device it was, is not in the trace. */
static void fill_utilisation(const pki_machine *m, const char *why, pki_summary *out)
{
    pki_peak peak;
    pki_peak_wish wish = {.flops = 0};
    const char *wanted = pki_variable("PK_PEAK");
    if (wanted && !pki_peak_parse(wanted, &wish))
        memset(&wish, 0, sizeof wish);
    const pki_peak_place place = {.machine = m,
                                  .no_machine = why,
                                  .gpu = out->environment.gpu ? out->environment.gpu : "",
                                  .gpus = out->gpu_count,
                                  .processors = m ? m->processors : 0};
    pki_peak_find(&wish, &place, &peak);
    memory_needed(pki_utilisation_fill(&out->steps.utilisation, &peak));
}

void rebuild_fill_limits(pki_summary *out)
{
    pki_machine m;
    char why[300];
    bool placed = pki_roofline_wanted(out), works = out->steps.utilisation.steps;
    bool known = (placed || works) && find_machine(out->run.host, &m, why);
    if (placed && known)
        memory_needed(pki_roofline_fill(&m, out));
    if (works)
        fill_utilisation(known ? &m : NULL, why, out);
}
