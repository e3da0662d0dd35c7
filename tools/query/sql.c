/* tools/query/sql.c - what SQL may do, and where it is wrong. */
#include "query/query.h"

#include <stdio.h>
#include <string.h>

static int allow(void *user, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)user, (void)a, (void)b, (void)c, (void)d;
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
                 action == SQLITE_RECURSIVE;
    return reads ? SQLITE_OK : SQLITE_DENY;
}

void query_forbid_changes(sqlite3 *db)
{
    sqlite3_set_authorizer(db, allow, NULL);
}

void query_point_at(const char *sql, int offset)
{
    if (offset < 0 || (size_t)offset > strlen(sql))
        return;
    const char *at = sql + offset, *line = at;
    while (line > sql && line[-1] != '\n')
        line--;
    int length = (int)strcspn(line, "\n"), before = (int)(at - line), number = 1;
    for (const char *s = sql; s < line; s++)
        number += *s == '\n';
    fprintf(stderr, "  in line %d:\n  ", number);
    for (int i = 0; i < length; i++)
        fputc((unsigned char)line[i] < ' ' ? ' ' : line[i], stderr);
    fputs("\n  ", stderr);
    /* A character of several bytes takes one place. */
    for (int i = 0; i < before; i++)
        if (((unsigned char)line[i] & 0xC0) != 0x80)
            fputc(' ', stderr);
    fputs("^\n", stderr);
}
