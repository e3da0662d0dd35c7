#include "session/options/config_collector.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "session/options/config_text.h"

static bool read_processor(const char **at, unsigned long *number)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *number = strtoul(*at, &end, 10);
    *at = end;
    return *number < CPU_SETSIZE;
}

/* "3" or "0-3" */
static bool read_range(const char **at, cpu_set_t *set)
{
    unsigned long first, last;
    if (!read_processor(at, &first))
        return false;
    last = first;
    if (**at == '-') {
        (*at)++;
        if (!read_processor(at, &last) || last < first)
            return false;
    }
    for (unsigned long i = first; i <= last; i++)
        CPU_SET(i, set);
    return true;
}

static bool read_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    for (const char *at = text; read_range(&at, set); at++)
        if (*at != ',')
            return *at == '\0';
    return false;
}

#define OVERHEAD_MOST 0.5

/* "0.01", in every locale: digits, then perhaps a point and digits. */
static bool read_share(const char *text, double *share)
{
    double digit = 1;
    *share = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        *share = *share * 10 + (*text - '0');
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9'; text++)
            *share += (*text - '0') * (digit /= 10);
    return *text == '\0';
}

static pk_status read_overhead(pki_config *c, double given)
{
    const char *text = given != 0 ? NULL : pki_variable("PK_OVERHEAD_MAX");
    const char *source = text ? "PK_OVERHEAD_MAX" : "overhead_max";
    c->overhead_max = given;
    if (text && !read_share(text, &c->overhead_max))
        return pki_fail(PK_EINVAL, "%s=%.60s is no number such as 0.01", source, text);
    if (!(c->overhead_max >= 0 && c->overhead_max <= OVERHEAD_MOST))
        return pki_fail(PK_EINVAL, "%s is a share of the CPU time, and has to be from 0 to 0.5",
                        source);
    return PK_OK;
}

pk_status pki_config_collector(pki_config *c, const pk_options *o)
{
    const pki_config_text who = pki_config_text_of(o->collector, "collector", "PK_COLLECTOR");
    const pki_config_text where =
        pki_config_text_of(o->collector_cpus, "collector_cpus", "PK_COLLECTOR_CPUS");
    c->no_collector = who.text && strcmp(who.text, "none") == 0;
    if (who.text && !c->no_collector && strcmp(who.text, "thread") != 0)
        return pki_fail(PK_EINVAL, "%s: %.20s is neither thread nor none", who.source, who.text);
    c->collector_placed = where.text != NULL;
    if (where.text && !read_list(where.text, &c->collector_cpus))
        return pki_fail(PK_EINVAL, "%s: %.60s is no list of processors, as 0-3,8", where.source,
                        where.text);
    return read_overhead(c, o->overhead_max);
}
