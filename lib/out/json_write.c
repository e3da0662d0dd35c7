#include "out/json_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "out/emit.h"

/* ---- JSON onto a stream, always valid ---- */

#define PIECE 256 /* bytes of a string escaped at a time */

static void put_string(pki_json *json, const char *s)
{
    char escaped[6 * PIECE + 1];
    size_t left = strlen(s);
    fputc('"', json->file);
    while (left) {
        size_t piece = left < PIECE ? left : PIECE;
        /* Not through the middle of a character. */
        for (int i = 0; i < 3 && piece < left && ((unsigned char)s[piece] & 0xC0) == 0x80; i++)
            piece--;
        size_t length = pki_json_escape(escaped, sizeof escaped, s, piece);
        fwrite(escaped, 1, length, json->file);
        s += piece;
        left -= piece;
    }
    fputc('"', json->file);
}

static void put_key(pki_json *json, const char *key)
{
    if (json->comma)
        fputc(',', json->file);
    json->comma = true;
    if (!key)
        return;
    put_string(json, key);
    fputc(':', json->file);
}

void pki_json_open(pki_json *json, const char *key, char bracket)
{
    put_key(json, key);
    fputc(bracket, json->file);
    json->comma = false;
}

void pki_json_close(pki_json *json, char bracket)
{
    fputc(bracket, json->file);
    json->comma = true;
}

void pki_json_row(pki_json *json)
{
    if (!json->rows)
        return;
    if (json->comma)
        fputc(',', json->file);
    fputc('\n', json->file);
    json->comma = false;
}

void pki_json_uint(pki_json *json, const char *key, uint64_t value)
{
    /* Most readers have signed integers. */
    put_key(json, key);
    fprintf(json->file, "%" PRIu64, value > INT64_MAX ? (uint64_t)INT64_MAX : value);
}

void pki_json_int(pki_json *json, const char *key, int64_t value)
{
    put_key(json, key);
    fprintf(json->file, "%" PRId64, value);
}

static void put_real(FILE *file, double value)
{
    char text[32];
    *pki_put_double(text, value) = '\0';
    fputs(text, file);
}

void pki_json_real(pki_json *json, const char *key, double value)
{
    put_key(json, key);
    if (!isfinite(value))
        fputs("null", json->file);
    else if (value == floor(value) && fabs(value) < 9007199254740992.0)
        fprintf(json->file, "%" PRId64, (int64_t)value);
    else
        put_real(json->file, value);
}

void pki_json_reals(pki_json *json, const char *key, const double *values, size_t count)
{
    pki_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        pki_json_real(json, NULL, values[i]);
    pki_json_close(json, ']');
}

void pki_json_bool(pki_json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", json->file);
}

void pki_json_text(pki_json *json, const char *key, const char *value)
{
    put_key(json, key);
    put_string(json, value ? value : "");
}

bool pki_plain_enter(pki_plain *plain)
{
    plain->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain->plain)
        return false;
    plain->before = uselocale(plain->plain);
    return true;
}

void pki_plain_leave(pki_plain *plain)
{
    uselocale(plain->before);
    freelocale(plain->plain);
}
