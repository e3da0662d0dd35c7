/* tools/query/sql.c - what SQL may do, and where it is wrong. */
#include "query/query.h"

#include "base/compiler.h"

#include <stdio.h>
#include <string.h>

/* ---- what is open to it ---- */

/* Bytes of a string or a blob, also while an answer is being made. */
#define TEXT_MOST (64 << 20)

static int harden(sqlite3 *db)
{
    static const struct {
        int option, value;
    } settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},
        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0},
        {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
    };
    for (size_t i = 0; i < PKI_COUNT_OF(settings); i++) {
        int error = sqlite3_db_config(db, settings[i].option, settings[i].value, NULL);
        if (error)
            return error;
    }
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, TEXT_MOST);
    /* Full-text search and the like read structures of the file, which may be anybody's. */
    return sqlite3_drop_modules(db, NULL);
}

int query_open(const char *path, sqlite3 **db)
{
    int error =
        path ? sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL) : sqlite3_open(":memory:", db);
    return error ? error : harden(*db);
}

int query_sort_in_files(sqlite3 *db)
{
    return sqlite3_exec(db, "PRAGMA temp_store = FILE; PRAGMA cache_size = -65536", NULL, NULL,
                        NULL);
}

/* ---- what it may call ---- */

/* Functions of their arguments and of the time: SQLite's as far as 3.50, and ours. Not on the list
 * is whatever knows of pointers, files, extensions or the connection. */
static const char harmless[] =
    " -> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat "
    "concat_ws cos cosh count cume_dist current_date current_time current_timestamp date "
    "datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull "
    "iif instr json json_array json_array_length json_error_position json_extract "
    "json_group_array json_group_object json_insert json_object json_patch json_pretty "
    "json_quote json_remove json_replace json_set json_type json_valid jsonb jsonb_array "
    "jsonb_extract jsonb_group_array jsonb_group_object jsonb_insert jsonb_object jsonb_patch "
    "jsonb_remove jsonb_replace jsonb_set julianday lag last_value lead length like "
    "likelihood likely ln log log10 log2 lower ltrim max median min mod nth_value ntile "
    "nullif octet_length percent_rank percentile percentile_cont percentile_disc pi pow power "
    "printf quote radians random randomblob rank regexp replace round row_number rtrim sign "
    "sin sinh soundex sqlite_version sqrt stddev stddev_pop strftime string_agg substr "
    "substring sum tan tanh time timediff total trim trunc typeof unhex unicode unistr "
    "unistr_quote unixepoch unlikely upper zeroblob ";

static bool is_harmless(const char *function)
{
    char word[64];
    if (!function || strchr(function, ' '))
        return false;
    int length = snprintf(word, sizeof word, " %s ", function);
    return length < (int)sizeof word && strcasestr(harmless, word);
}

static int allow(void *user, int action, const char *a, const char *b, const char *c, const char *d)
{
    (void)user, (void)a, (void)c, (void)d;
    bool reads = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_RECURSIVE;
    bool calls = action == SQLITE_FUNCTION && is_harmless(b);
    return reads || calls ? SQLITE_OK : SQLITE_DENY;
}

void query_forbid_changes(sqlite3 *db)
{
    sqlite3_set_authorizer(db, allow, NULL);
}

/* ---- where it is wrong ---- */

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
