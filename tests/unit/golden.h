/* tests/unit/golden.h - a text against a file of tests/golden, byte by byte.
 *
 * PK_WRITE_GOLDEN=1 writes the file instead; look at the difference before it is committed.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *golden_folder; /* the test's first argument */

static char *golden_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s cannot be read", path);
    char *text = calloc(1, 1 << 20);
    size_t length = fread(text, 1, (1 << 20) - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static void golden_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (!file || fputs(text, file) < 0 || fclose(file))
        fail_msg("%s cannot be written", path);
}

static void golden_check(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", golden_folder ? golden_folder : ".", name);
    if (getenv("PK_WRITE_GOLDEN")) {
        golden_write(path, text);
        return;
    }
    char *wanted = golden_read(path);
    size_t at = 0, line = 1;
    for (; text[at] && text[at] == wanted[at]; at++)
        line += text[at] == '\n';
    if (text[at] || wanted[at]) {
        while (at && text[at - 1] != '\n')
            at--;
        fail_msg("%s, line %zu:\n  is     %.*s\n  should %.*s", path, line,
                 (int)strcspn(text + at, "\n"), text + at, (int)strcspn(wanted + at, "\n"),
                 wanted + at);
    }
    free(wanted);
}

#endif
