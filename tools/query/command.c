/* tools/query/command.c - pk query */
#include "arguments.h"
#include "command.h"

#include "base/compiler.h"
#include "query/query.h"
#include "query/text.h"
#include "read/json_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)

typedef struct wish {
    bool help, schema;
    query_format format;
    const char *sql;
    char *read; /* the SQL, if it is from a file */
    const char **files;
    int file_count;
} wish;

typedef struct session {
    const wish *w;
    sqlite3 *db;
    query_tables tables;
} session;

static int print_help(void)
{
    printf(
        "usage: pk query [OPTION ...] 'SELECT ...' FILE ...\n"
        "\n"
        "Asks what runs did, in SQL (SQLite's). FILE is a trace of perfkit or any Chrome trace, .gz\n"
        "too, one of a killed run as well, or a report in JSON; \"-\" is the standard input. Several\n"
        "files are one set of tables, with a column for the rank. Or one database that `pk export\n"
        "--sqlite` has made. Nothing is changed. Also: percentile(x, 99), median(x), stddev(x),\n"
        "x REGEXP 'pattern'. docs/query.md has examples.\n"
        "\n"
        "  --format FORMAT  table (default), csv, ndjson, json or markdown\n"
        "  --from FILE      the SQL is in this file; \"-\": on the standard input\n"
        "  --schema         the tables and their columns\n"
        "  --help, -h       this\n"
        "\n"
        "Exit status: 0; 2 if the SQL is wrong or a file cannot be used.\n");
    return EXIT_OK;
}

static int print_schema(void)
{
    static const char *const types[] = {
        [CELL_INTEGER] = "integer", [CELL_REAL] = "real", [CELL_TEXT] = "text"};
    for (unsigned of = 0; of < ROWS_TABLES; of++) {
        const rows_about *about = rows_about_table((rows_table)of);
        printf("%s%s: %s\n", of ? "\n" : "", about->name, about->about);
        for (size_t i = 0; i < about->count; i++) {
            const rows_column *c = &about->columns[i];
            printf("  %-15s %-8s%s%s\n", c->name, types[rows_column_type(c)],
                   c->about[0] ? " " : "", c->about);
        }
    }
    return EXIT_OK;
}

/* ---- arguments ---- */

static bool take_format(wish *w, const char *name)
{
    for (unsigned i = 0; name && i < QUERY_FORMATS; i++)
        if (strcmp(name, query_format_names[i]) == 0) {
            w->format = (query_format)i;
            return true;
        }
    complain("--format is table, csv, ndjson, json or markdown, not \"%s\"", name ? name : "");
    return false;
}

static bool take_from(wish *w, const char *path)
{
    complaint why = {""};
    if (!path || w->read) {
        complain("--from takes one file with SQL");
        return false;
    }
    w->read = query_read_text(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &why);
    if (!w->read)
        complain("%s: %s", path, why.text);
    return w->read != NULL;
}

/* How many arguments it was; 0 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
        w->help = true;
    else if (strcmp(option, "--schema") == 0)
        w->schema = true;
    else if (strcmp(option, "--format") == 0)
        return take_format(w, next) ? 2 : 0;
    else if (strncmp(option, "--format=", 9) == 0)
        return take_format(w, option + 9);
    else if (strcmp(option, "--from") == 0)
        return take_from(w, next) ? 2 : 0;
    else if (strncmp(option, "--from=", 7) == 0)
        return take_from(w, option + 7);
    else
        return complain("query has no option \"%s\" (pk query --help)", option), 0;
    return 1;
}

/* SQL may begin with a comment: "-- what took longest". */
static bool is_comment(const char *text)
{
    return text[1] == '-' && text[2] && strchr(" \t\n", text[2]);
}

static bool take_arguments(wish *w, int argc, char **argv)
{
    arguments all = arguments_of(argc, argv);
    for (argument one; !w->help && arguments_next(&all, &one);) {
        int taken = 1;
        if (one.is_option && !is_comment(one.text))
            taken = take_option(w, one.text, one.next);
        else
            w->files[w->file_count++] = one.text;
        if (taken <= 0)
            return false;
        arguments_took(&all, taken);
    }
    if (w->help || w->schema)
        return true;
    w->sql = w->read ? w->read : w->file_count ? w->files[0] : NULL;
    if (!w->read && w->file_count) {
        w->files++;
        w->file_count--;
    }
    if (!w->sql)
        complain("query needs SQL and a file (pk query --help)");
    else if (!w->file_count)
        complain("query needs a file behind the SQL (pk query --help)");
    return w->sql && w->file_count;
}

/* ---- SQL ---- */

static bool tell_error(session *s, const char *sql)
{
    const char *what = sqlite3_errmsg(s->db);
    int offset = sqlite3_error_offset(s->db);
    if (sqlite3_errcode(s->db) == SQLITE_AUTH)
        complain("the SQL would change something or look elsewhere; only queries are allowed: %s",
                 what);
    else if (strncmp(what, "not authorized to use function", 30) == 0)
        complain("%s: only those that know their arguments and nothing else", what);
    else if (strncmp(what, "no such table", 13) == 0 || strncmp(what, "no such column", 14) == 0)
        complain("%s (pk query --schema lists them)", what);
    else
        complain("%s", what);
    query_point_at(sql, offset);
    return false;
}

/* One statement after the other: prepared only, or run. */
static bool each_statement(session *s, bool run)
{
    const char *rest = s->w->sql;
    bool good = true, any = false;
    while (good && *rest) {
        sqlite3_stmt *statement = NULL;
        const char *sql = rest;
        if (sqlite3_prepare_v2(s->db, sql, -1, &statement, &rest))
            return tell_error(s, sql);
        if (statement && run) {
            int status = query_print(statement, s->w->format);
            good = status == SQLITE_DONE ||
                   (status == SQLITE_NOMEM ? complain("out of memory"), false : tell_error(s, sql));
        }
        any |= statement != NULL;
        sqlite3_finalize(statement);
    }
    if (good && !any)
        complain("there is no statement in the SQL");
    return good && any;
}

static bool load_files(session *s)
{
    complaint why = {""};
    s->tables.rows = rows_create(&s->tables.wish);
    if (!s->tables.rows) {
        complain("out of memory");
        return false;
    }
    for (int i = 0; i < s->w->file_count; i++) {
        const char *path = strcmp(s->w->files[i], "-") == 0 ? "/dev/stdin" : s->w->files[i];
        if (!rows_add_file(s->tables.rows, path, true, &why)) {
            complain("%s: %s", s->w->files[i], why.text);
            return false;
        }
    }
    return true;
}

/* First without rows: so it is known which ones are needed. */
static bool ask_files(session *s)
{
    if (query_open(NULL, &s->db) || query_add_tables(s->db, &s->tables) ||
        query_add_functions(s->db)) {
        complain("%s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
        return false;
    }
    query_forbid_changes(s->db);
    return each_statement(s, false) && load_files(s) && each_statement(s, true);
}

static bool ask_database(session *s)
{
    if (query_open(s->w->files[0], &s->db) || query_add_functions(s->db)) {
        complain("%s: %s", s->w->files[0], s->db ? sqlite3_errmsg(s->db) : "out of memory");
        return false;
    }
    query_forbid_changes(s->db);
    return each_statement(s, true);
}

static int ask(const wish *w)
{
    session s = {.w = w};
    bool database = query_is_database(w->files[0]);
    if (database && w->file_count > 1)
        return complain("one database at a time, and no other files beside it");
    json_limit_memory(JSON_MEMORY_MOST);
    bool answered = database ? ask_database(&s) : ask_files(&s);
    sqlite3_close(s.db);
    rows_destroy(s.tables.rows);
    return answered ? EXIT_OK : EXIT_UNUSABLE;
}

int command_query(int argc, char **argv)
{
    wish w = {.files = calloc((size_t)argc + 1, sizeof(char *))};
    const char **all = w.files;
    int status = EXIT_UNUSABLE;
    if (!w.files)
        return complain("out of memory");
    if (take_arguments(&w, argc, argv))
        status = w.help ? print_help() : w.schema ? print_schema() : ask(&w);
    free(all);
    free(w.read);
    return status;
}
