/* Any text as pk_options.tuning: it is taken apart within itself, or refused with a reason; what is
 * taken is the same when it is put together again, and goes through all of the options. */
#include "base/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "session/options/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static void append(char **to, const char *value)
{
    *(*to)++ = '\'';
    for (; *value; *(*to)++ = *value++)
        if (*value == '\'')
            *(*to)++ = '\'';
    *(*to)++ = '\'';
    *(*to)++ = ',';
}

static void check_again(const char *const values[PKI_TUNING_COUNT])
{
    static char text[2048];
    const char *again[PKI_TUNING_COUNT];
    char why[160], *to = text;
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++)
        if (values[i]) {
            to += sprintf(to, "%s=", pki_tunings[i].key);
            append(&to, values[i]);
        }
    *to = 0;
    must(pki_tuning_split(text, again, why, sizeof why));
    for (unsigned i = 0; i < PKI_TUNING_COUNT; i++)
        must(values[i] ? again[i] && strcmp(values[i], again[i]) == 0 : !again[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pki_config config;
    const char *values[PKI_TUNING_COUNT];
    char text[512], copy[512], why[160] = "";
    size_t n = size < sizeof text ? size : sizeof text - 1;
    if (n)
        memcpy(text, data, n);
    text[n] = 0;
    strcpy(copy, text);
    bool taken = pki_tuning_split(copy, values, why, sizeof why);
    must(taken || why[0]);
    pk_status status = pki_config_read(&config, pk_options(.tuning = text));
    must(taken || status == PK_EINVAL);
    for (unsigned i = 0; taken && i < PKI_TUNING_COUNT; i++)
        must(!values[i] || (values[i] >= copy && values[i] <= copy + n));
    if (taken)
        check_again(values);
    return 0;
}
