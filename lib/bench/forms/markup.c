#include "bench/forms/markup.h"

#include "base/text.h"

#include <string.h>

size_t pki_bench_character(const char *text, const char **out, size_t *length)
{
    size_t n = pki_utf8_length(text, strnlen(text, 4));
    bool control = (unsigned char)*text < 0x20 || *text == 0x7f;
    *out = n == 0 ? "\xEF\xBF\xBD" : control ? " " : text;
    *length = n == 0 ? 3 : control ? 1 : n;
    return n ? n : 1;
}

static const char *entity_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void pki_bench_put_xml(FILE *file, const char *text)
{
    while (*text) {
        const char *one, *entity;
        size_t length;
        text += pki_bench_character(text, &one, &length);
        if ((entity = entity_of(*one)))
            fputs(entity, file);
        else
            fwrite(one, 1, length, file);
    }
}

void pki_bench_put_markdown(FILE *file, const char *text)
{
    while (*text) {
        const char *one;
        size_t length;
        text += pki_bench_character(text, &one, &length);
        if (strchr("\\|`*_<>[]&#~", *one))
            fputc('\\', file);
        fwrite(one, 1, length, file);
    }
}
