#include "base/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* ---- what experts set ---- */

#define NUMBER_ROW(id, name, power, from, to, standard, ...)                                       \
    {.key = name,                                                                                  \
     .variable = "PK_" #id,                                                                        \
     .power_of_two = power,                                                                        \
     .least = from,                                                                                \
     .most = to,                                                                                   \
     .otherwise = standard},
#define SWITCH_ROW(id, name, standard, ...)                                                        \
    {.key = name, .variable = "PK_" #id, .most = 1, .otherwise = standard},
#define TEXT_ROW(id, name, ...) {.key = name, .variable = "PK_" #id},

const pki_tuning pki_tunings[PKI_TUNING_COUNT] = {
    PKI_TUNING_TABLE(NUMBER_ROW, SWITCH_ROW, TEXT_ROW)};

/* ---- key=value,key='value, with a comma' ---- */

static bool is(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool find_key(const char *name, size_t length, unsigned *found)
{
    for (*found = 0; *found < PKI_TUNING_COUNT; ++*found)
        if (is(pki_tunings[*found].key, name, length))
            return true;
    return false;
}

/* A value that begins with a quote ends with the next one; two of them are one that stays. The
 * value is moved to where it begins. NULL: it does not end, or more follows. */
static char *unquote(char *value)
{
    char *to = value;
    for (char *at = value + 1; *at; at++) {
        if (*at == '\'' && at[1] != '\'') {
            char behind = at[1];
            *to = '\0';
            return behind == ',' ? at + 2 : behind ? NULL : at + 1;
        }
        at += *at == '\'';
        *to++ = *at;
    }
    return NULL;
}

/* Behind the value and its comma. */
static char *end_of(char *value)
{
    if (*value == '\'')
        return unquote(value);
    char *end = value + strcspn(value, ",");
    if (!*end)
        return end;
    *end = '\0';
    return end + 1;
}

bool pki_tuning_split(char *text, const char *values[PKI_TUNING_COUNT], char *why, size_t size)
{
    memset(values, 0, PKI_TUNING_COUNT * sizeof *values);
    for (char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        unsigned key;
        size_t length = strcspn(at, "=,");
        int shown = (int)PKI_MIN(length, 40u);
        if (at[length] != '=')
            return snprintf(why, size, "'%.*s' is no key=value", shown, at), false;
        if (!find_key(at, length, &key))
            return snprintf(why, size, "'%.*s' is no key (docs/tuning.md has them)", shown, at),
                   false;
        if (values[key])
            return snprintf(why, size, "'%.*s' is there twice", shown, at), false;
        values[key] = at + length + 1;
        at = end_of(at + length + 1);
        if (!at)
            return snprintf(why, size, "the value of '%s' does not end with its quote",
                            pki_tunings[key].key),
                   false;
    }
    return true;
}

static bool take(const char *from, char *value, size_t size)
{
    return from && *from && (size_t)snprintf(value, size, "%s", from) < size;
}

bool pki_tuning_of_environment(pki_tuning_key key, char *value, size_t size)
{
    const char *own = pki_variable(pki_tunings[key].variable), *all = pki_variable("PK_TUNING");
    const char *values[PKI_TUNING_COUNT];
    char text[PKI_TUNING_MOST], why[100];
    if (own || !take(all, text, sizeof text))
        return take(own, value, size);
    return pki_tuning_split(text, values, why, sizeof why) && take(values[key], value, size);
}

/* ---- all variables that stand for options ---- */

/* But for those of the table. */
static const char *const variables[] = {
    "PK_ALLOC_SAMPLE_BYTES",
    "PK_BACKENDS",
    "PK_CAPTURE",
    "PK_CAPTURE_PATH",
    "PK_COSTS",
    "PK_ENVIRONMENT",
    "PK_GOODPUT_PATH",
    "PK_HANG_COMMAND",
    "PK_HANG_SECONDS",
    "PK_HISTORY_STEPS",
    "PK_JOB_PATH",
    "PK_LOG",
    "PK_LOG_LEVEL",
    "PK_MEMORY_BYTES",
    "PK_METRICS_PATH",
    "PK_OFF",
    "PK_OVERHEAD_MAX",
    "PK_OVERRIDE",
    "PK_RANK",
    "PK_REPORT_PATH",
    "PK_TRACE_PATH",
    "PK_TUNING",
    "PK_WARMUP_STEPS",
    "PK_WINDOWS_PATH",
    "PK_WORLD_SIZE",
};

bool pki_variable_is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < PKI_COUNT_OF(variables); i++)
        if (is(variables[i], name, length))
            return true;
    for (size_t i = 0; i < PKI_TUNING_COUNT; i++)
        if (is(pki_tunings[i].variable, name, length))
            return true;
    return false;
}

const char *pki_variable(const char *name)
{
    const char *text = pki_variable_is_known(name, strlen(name)) ? secure_getenv(name) : NULL;
    return text && *text ? text : NULL;
}
