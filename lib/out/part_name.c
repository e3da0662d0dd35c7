#include "out/part_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PART ".part"

/* Where its ending begins, ".json.gz" or ".json"; behind the name if it has none. A part's number
 * is none. */
static const char *ending_of(const char *path)
{
    const char *name = pki_base_name(path);
    const char *gz = pki_ends_with(name, ".json.gz") ? name + strlen(name) - 8 : NULL;
    const char *dot = gz ? gz : strrchr(name, '.');
    bool has = dot && dot > name && (gz || strncmp(dot, PART, sizeof PART - 1) != 0);
    return has ? dot : name + strlen(name);
}

bool pki_part_name(const char *path, uint32_t part, char name[PATH_MAX])
{
    const char *ending = ending_of(path);
    int n = snprintf(name, PATH_MAX, "%.*s" PART "%u%s", (int)(ending - path), path, part, ending);
    return n > 0 && n < PATH_MAX;
}

/* Digits without a zero in front, up to that place. */
static uint32_t number_of(const char *digits, const char *until)
{
    uint64_t number = 0;
    if (digits >= until || *digits == '0')
        return 0;
    for (; digits < until; digits++) {
        if (*digits < '0' || *digits > '9' || number > UINT32_MAX / 10)
            return 0;
        number = number * 10 + (uint64_t)(*digits - '0');
    }
    return number <= UINT32_MAX ? (uint32_t)number : 0;
}

uint32_t pki_part_of(const char *name, const char *of)
{
    const char *ending = ending_of(of), *end = ending_of(name);
    size_t before = (size_t)(ending - of);
    if (strncmp(name, of, before) != 0 || strncmp(name + before, PART, sizeof PART - 1) != 0 ||
        strcmp(end, ending) != 0)
        return 0;
    return number_of(name + before + sizeof PART - 1, end);
}

bool pki_part_is_one(const char *path)
{
    const char *end = ending_of(path), *digits = end;
    while (digits > path && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    size_t n = sizeof PART - 1;
    return digits < end && (size_t)(digits - path) > n && memcmp(digits - n, PART, n) == 0;
}
