#include "rows/cell_write.h"

#include "out/emit.h"

#include <math.h>
#include <string.h>

static void write_number(FILE *to, const cell *c)
{
    char text[32], *end;
    if (c->type == CELL_REAL && !isfinite(c->real)) { /* SQLite's names */
        fputs(c->real > 0 ? "Inf" : "-Inf", to);
        return;
    }
    end = c->type == CELL_REAL ? pki_put_double(text, c->real) : pki_put_i64(text, c->integer);
    fwrite(text, 1, (size_t)(end - text), to);
}

void csv_write_text(FILE *to, const char *text)
{
    size_t length = strlen(text);
    if (strcspn(text, ",\"\r\n") == length) {
        fwrite(text, 1, length, to);
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

void cell_write_csv(FILE *to, const cell *c)
{
    if (c->type == CELL_TEXT)
        csv_write_text(to, c->text);
    else if (c->type != CELL_NULL)
        write_number(to, c);
}

void cell_write_json(pki_json *to, const char *key, const cell *c)
{
    if (c->type == CELL_TEXT)
        pki_json_text(to, key, c->text);
    else if (c->type == CELL_INTEGER)
        pki_json_int(to, key, c->integer);
    else
        pki_json_real(to, key, c->type == CELL_REAL ? c->real : NAN);
}
