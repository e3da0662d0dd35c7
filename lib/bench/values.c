#include "bench/values.h"

#include "base/compiler.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What strtod also takes, signs, names and hexadecimal numbers, is no number here. */
static bool read_number(const char *text, double *number, const char **rest)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *number = strtod(text, &end);
    *rest = end;
    return end != text && isfinite(*number) && !memchr(text, 'x', (size_t)(end - text));
}

bool pki_bench_read_time(const char *text, double *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9},   {"h", 3.6e12}, {"min", 6e10}, {"s", 1e9},
                 {"ms", 1e6}, {"us", 1e3},   {"ns", 1}};
    const char *unit;
    double number;
    if (!read_number(text, &number, &unit))
        return false;
    for (size_t i = 0; i < PKI_COUNT_OF(units); i++)
        if (strcmp(unit, units[i].name) == 0)
            return (*ns = number * units[i].ns) > 0;
    return false;
}

bool pki_bench_read_share(const char *text, double *share)
{
    const char *rest;
    double number;
    if (!read_number(text, &number, &rest))
        return false;
    bool percent = strcmp(rest, "%") == 0;
    if (percent ? number >= 1000 : *rest || number >= 1)
        return false;
    *share = percent ? number / 100 : number;
    return true;
}
