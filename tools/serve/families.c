#include "serve/families.h"

#include "memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct span {
    const char *text;
    size_t length;
} span;

static void append(char **to, size_t *length, span s)
{
    *to = memory_resized(*to, *length + s.length + 1);
    memcpy(*to + *length, s.text, s.length);
    *length += s.length;
}

/* Up to a blank, a brace or the end. */
static span name_at(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && !strchr(" {\t", *at))
        at++;
    return (span){text, (size_t)(at - text)};
}

static family *find(families *f, span name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strlen(f->all[i].name) == name.length &&
            memcmp(f->all[i].name, name.text, name.length) == 0)
            return &f->all[i];
    return NULL;
}

static family *find_or_add(families *f, span name)
{
    size_t length = 0;
    family *found = find(f, name);
    if (found)
        return found;
    f->all = memory_resized(f->all, (f->count + 1) * sizeof *f->all);
    found = &f->all[f->count++];
    memset(found, 0, sizeof *found);
    append(&found->name, &length, name);
    found->name[length] = '\0';
    return found;
}

/* A histogram's samples have endings of their own. */
static family *family_of_sample(families *f, span name)
{
    static const char *const endings[] = {"_bucket", "_sum", "_count"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]);
        family *found = name.length > n && memcmp(name.text + name.length - n, endings[i], n) == 0
                            ? find(f, (span){name.text, name.length - n})
                            : NULL;
        if (found)
            return found;
    }
    return find_or_add(f, name);
}

static bool begins(span line, const char *with)
{
    return line.length > strlen(with) && memcmp(line.text, with, strlen(with)) == 0;
}

/* Of each family the first file's HELP and TYPE. */
static void add_about(families *f, span line, size_t *known)
{
    const char *end = line.text + line.length;
    span name = name_at(line.text + strlen("# HELP "), end);
    family *to = find_or_add(f, name);
    if ((size_t)(to - f->all) >= *known)
        append(&to->about, &to->about_length, line);
}

static bool is_sample(span line)
{
    char c = line.text[0];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

void families_add(families *f, const char *text, size_t length)
{
    const char *end = text + length, *next;
    size_t known = f->count;
    for (; text < end; text = next) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        if (!line_end)
            return; /* cut off */
        next = line_end + 1;
        span line = {text, (size_t)(next - text)};
        if (begins(line, "# HELP ") || begins(line, "# TYPE ")) {
            add_about(f, line, &known);
        } else if (is_sample(line)) {
            family *to = family_of_sample(f, name_at(text, line_end));
            append(&to->samples, &to->samples_length, line);
        }
    }
}

char *families_text(const families *f, size_t *length)
{
    char *text = memory_resized(NULL, 1);
    *length = 0;
    for (size_t i = 0; i < f->count; i++) {
        const family *one = &f->all[i];
        append(&text, length, (span){one->about ? one->about : "", one->about_length});
        append(&text, length, (span){one->samples ? one->samples : "", one->samples_length});
    }
    return text;
}

void families_finish(families *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->all[i].name);
        free(f->all[i].about);
        free(f->all[i].samples);
    }
    free(f->all);
    *f = (families){0};
}
