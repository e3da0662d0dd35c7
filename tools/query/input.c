#include "query/input.h"

#include "memory.h"
#include "read/lines.h"

#include <stdio.h>
#include <string.h>

#define SQL_MOST ((size_t)1 << 20)

char *query_read_text(const char *path, complaint *why)
{
    lines in;
    line all;
    if (!lines_open(&in, path, SQL_MOST, why))
        return NULL;
    char *text = NULL;
    if (lines_rest(&in, SQL_MOST, &all)) {
        text = strndup(all.text, all.length);
        memory_needed(text != NULL);
    }
    lines_close(&in);
    return text;
}

bool query_is_database(const char *path)
{
    char magic[16] = "";
    FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "rbe");
    bool is = file && fread(magic, 1, sizeof magic, file) == sizeof magic &&
              memcmp(magic, "SQLite format 3", sizeof magic) == 0;
    if (file)
        fclose(file);
    return is;
}
