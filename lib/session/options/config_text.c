#include "session/options/config_text.h"

#include <stdio.h>

#include "base/log.h"
#include "base/text.h"

pki_config_text pki_config_text_of(const char *given, const char *field, const char *variable)
{
    if (given)
        return (pki_config_text){*given ? given : NULL, field};
    return (pki_config_text){pki_variable(variable), variable};
}

pk_status pki_config_path(pki_config_text pattern, const pki_world *world, char path[PATH_MAX])
{
    char bad;
    const pki_path_fields fields = {world->rank, (int)world->pid, world->host};
    path[0] = 0;
    if (!pattern.text || pki_path_expand(path, PATH_MAX, pattern.text, &fields, &bad))
        return PK_OK;
    if (bad == '%')
        return pki_fail(PK_EINVAL, "%s: a %% at its end (%%%% is one that stays)", pattern.source);
    if (bad)
        return pki_fail(PK_EINVAL, "%s: %%%c is none of %%r, %%p, %%h and %%%%", pattern.source,
                        bad);
    return pki_fail(PK_EINVAL, "%s is longer than a path can be", pattern.source);
}
