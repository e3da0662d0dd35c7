#include "session/options/config_goodput.h"

#include <limits.h>
#include <string.h>

#include "base/compiler.h"
#include "base/log.h"
#include "session/options/config_text.h"

static pk_status read_costs(pki_config *c, const pk_options *o)
{
    const pki_config_text costs = pki_config_text_of(o->costs, "costs", "PK_COSTS");
    const struct {
        const char *name;
        bool *wanted;
    } all[] = {{"io", &c->costs_io},
               {"energy", &c->costs_energy},
               {"memory", &c->costs_memory},
               {"hardware", &c->costs_hardware},
               {"software", &c->costs_software},
               {"topdown", &c->costs_topdown}};
    for (const char *p = costs.text; p && *p;) {
        size_t n = strcspn(p, ","), i = 0;
        while (i < PKI_COUNT_OF(all) && (strlen(all[i].name) != n || memcmp(p, all[i].name, n)))
            i++;
        if (i == PKI_COUNT_OF(all))
            return pki_fail(PK_EINVAL,
                            "%s: '%.*s' is not io, energy, memory, hardware, software or topdown",
                            costs.source, (int)(n < 40 ? n : 40), p);
        *all[i].wanted = true;
        p += n + (p[n] == ',');
    }
    return PK_OK;
}

/* Has each rank a path of its own? (%%r is no %r.) */
static bool has_rank(pki_config_text path, const pki_config *c)
{
    pki_world other = c->world;
    char theirs[PATH_MAX];
    other.rank++;
    return pki_config_path(path, &other, theirs) == PK_OK && strcmp(theirs, c->goodput) != 0;
}

pk_status pki_config_goodput(pki_config *c, const pk_options *o)
{
    const pki_config_text path =
        pki_config_text_of(o->goodput_path, "goodput_path", "PK_GOODPUT_PATH");
    const char *const others[] = {c->trace, c->report, c->arena, c->windows, c->metrics};
    pk_status s = pki_config_path(path, &c->world, c->goodput);
    c->goodput_of_each = !s && has_rank(path, c);
    for (size_t i = 0; !s && c->goodput[0] && i < sizeof others / sizeof *others; i++)
        if (strcmp(c->goodput, others[i]) == 0)
            s = pki_fail(PK_EINVAL, "%s %s: another file of this session has the same", path.source,
                         c->goodput);
    return s ? s : read_costs(c, o);
}
