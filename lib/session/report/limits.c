#include "session/report/limits.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/process.h"
#include "measure/machine/roofline.h"
#include "session/options/config_text.h"

pk_status pki_limits_config(pki_config *c, const pk_options *o)
{
    const pki_config_text peak = pki_config_text_of(o->peak, "peak", "PK_PEAK");
    if (!peak.text || pki_peak_parse(peak.text, &c->peak))
        return PK_OK;
    return pki_fail(PK_EINVAL,
                    "%s: %.40s is neither fp64, fp32, tf32, bf16, fp16 or fp8, nor operations per "
                    "second, as 989.5e12, nor both, as bf16:989.5e12",
                    peak.source, peak.text);
}

/* False, and why in words. */
static bool load(const pki_config *c, pki_machine *m, char why[300])
{
    char path[PATH_MAX];
    pki_machine here;
    bool named = c->machine[0] != '\0';
    snprintf(why, 300, "the option machine is \"none\"");
    if (strcmp(c->machine, "none") == 0)
        return false;
    pki_machine_here(&here);
    snprintf(why, 300, "there is no folder for its file");
    if (!named && !pki_machine_path(here.host, path))
        return false;
    return pki_machine_load(named ? c->machine : path, named, m, why, 300);
}

/* Where the kernel says nothing: all of the machine's. */
static uint64_t allowed_processors(const pki_host *host)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return count > 0 ? (uint64_t)count : host->processors;
}

static void find_peak(const pki_config *c, const pki_machine *m, const char *why, size_t gpus,
                      pki_peak *peak)
{
    pki_host host;
    pki_host_read(&host);
    const pki_peak_place place = {.machine = m,
                                  .no_machine = why,
                                  .gpu = host.gpu,
                                  .gpus = gpus,
                                  .processors = allowed_processors(&host)};
    pki_peak_find(&c->peak, &place, peak);
}

void pki_limits_peak(const pki_config *c, size_t gpus, pki_peak *peak)
{
    pki_machine m;
    char why[300];
    bool known = load(c, &m, why);
    find_peak(c, known ? &m : NULL, why, gpus, peak);
}

bool pki_limits_fill(const pki_config *c, pki_summary *s)
{
    pki_machine m;
    pki_peak peak;
    char why[300];
    bool placed = pki_roofline_wanted(s);
    if (!placed && !s->steps.utilisation.steps)
        return true;
    bool known = load(c, &m, why), named = c->machine[0] && strcmp(c->machine, "none") != 0;
    if (!known && named)
        pki_log(PK_LOG_WARNING, "no roofline: machine_path %s: %s", c->machine, why);
    find_peak(c, known ? &m : NULL, why, s->gpu_count, &peak);
    return (!known || pki_roofline_fill(&m, s)) &&
           pki_utilisation_fill(&s->steps.utilisation, &peak);
}
