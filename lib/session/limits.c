#include "session/limits.h"

#include <string.h>

#include "base/log.h"
#include "measure/machine/roofline.h"

static bool load(const pki_config *c, pki_machine *m)
{
    char path[PATH_MAX], why[300];
    pki_machine here;
    bool named = c->machine[0] != '\0';
    pki_machine_here(&here);
    if (!named && !pki_machine_path(here.host, path))
        return false;
    if (pki_machine_load(named ? c->machine : path, named, m, why, sizeof why))
        return true;
    if (named)
        pki_log(PK_LOG_WARNING, "no roofline: machine_path %s: %s", c->machine, why);
    return false;
}

bool pki_limits_fill(const pki_config *c, pki_summary *s)
{
    pki_machine m;
    if (strcmp(c->machine, "none") == 0 || !pki_roofline_wanted(s) || !load(c, &m))
        return true;
    return pki_roofline_fill(&m, s);
}
