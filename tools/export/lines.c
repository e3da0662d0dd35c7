/* tools/export/lines.c - tables as CSV (RFC 4180) and as one JSON object per line. */
#include "export/export.h"

#include "out/emit.h"
#include "out/json_write.h"

#include <math.h>
#include <string.h>

static void put(FILE *to, const char *text, size_t length)
{
    fwrite(text, 1, length, to);
}

static void put_number(FILE *to, const cell *c)
{
    char text[32], *end = text;
    if (c->type == CELL_REAL) {
        end = pki_put_double(text, c->real);
    } else {
        if (c->integer < 0)
            *end++ = '-';
        uint64_t n = (uint64_t)c->integer;
        end = pki_put_u64(end, c->integer < 0 ? 0 - n : n);
    }
    put(to, text, (size_t)(end - text));
}

/* ---- CSV ---- */

static void put_csv_text(FILE *to, const char *text)
{
    size_t length = strlen(text);
    if (strcspn(text, ",\"\r\n") == length) {
        put(to, text, length);
        return;
    }
    putc('"', to);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', to);
        putc(*text, to);
    }
    putc('"', to);
}

void export_csv(FILE *to, rows *r, rows_table of)
{
    const rows_about *about = rows_about_table(of);
    for (size_t i = 0; i < about->count; i++)
        fprintf(to, "%s%s", i ? "," : "", about->columns[i].name);
    putc('\n', to);
    for (uint64_t row = 0; row < rows_count(r, of); row++)
        for (unsigned i = 0; i < about->count; i++) {
            cell c = rows_cell(r, of, row, i);
            if (c.type == CELL_TEXT)
                put_csv_text(to, c.text);
            else if (c.type != CELL_NULL)
                put_number(to, &c);
            putc(i + 1 < about->count ? ',' : '\n', to);
        }
}

/* ---- JSON ---- */

static void put_json_cell(pki_json *json, const char *key, const cell *c)
{
    if (c->type == CELL_TEXT)
        pki_json_text(json, key, c->text);
    else if (c->type == CELL_INTEGER)
        pki_json_int(json, key, c->integer);
    else /* NULL is written: readers take a file's columns from its first lines */
        pki_json_real(json, key, c->type == CELL_REAL ? c->real : NAN);
}

void export_ndjson(FILE *to, rows *r, rows_table of)
{
    const rows_about *about = rows_about_table(of);
    for (uint64_t row = 0; row < rows_count(r, of); row++) {
        pki_json json = {.file = to};
        pki_json_open(&json, NULL, '{');
        for (unsigned i = 0; i < about->count; i++) {
            cell c = rows_cell(r, of, row, i);
            put_json_cell(&json, about->columns[i].name, &c);
        }
        pki_json_close(&json, '}');
        putc('\n', to);
    }
}
