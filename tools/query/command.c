/* tools/query/command.c - pk query */
#include "command.h"

#include "base/compiler.h"
#include "command_line.h"
#include "query/query.h"
#include "query/input.h"
#include "read/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MIB 1024

typedef struct wish {
    bool schema;
    query_format format;
    const char *sql;
    uint32_t keep; /* MiB */
    char *read;    /* the SQL, if it is from a file */
    operands files;
} wish;

typedef struct session {
    const wish *w;
    sqlite3 *db;
    query_tables tables;
} session;

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

/* ---- options ---- */

static bool parse_format(void *to, const option_given *given)
{
    wish *w = to;
    const char *name = given->text ? given->text : "";
    for (unsigned i = 0; i < QUERY_FORMATS; i++)
        if (strcmp(name, query_format_names[i]) == 0) {
            w->format = (query_format)i;
            return true;
        }
    complain("--format is table, csv, ndjson, json or markdown, not \"%s\"", name);
    return false;
}

static bool parse_from(void *to, const option_given *given)
{
    wish *w = to;
    complaint why = {""};
    if (!given->text || w->read) {
        complain("--from takes one file with SQL");
        return false;
    }
    w->read = query_read_text(given->text, &why);
    if (!w->read)
        complain("%s: %s", given->text, why.text);
    return w->read != NULL;
}

static const option all_options[] = {
    {"--format", "FORMAT", "table (default), csv, ndjson, json or markdown", OPTION_WORD,
     .take = parse_format},
    {"--from", "FILE", "the SQL is in this file; \"-\": on the standard input", OPTION_FILE,
     .take = parse_from},
    {"--keep", "MIB",
     "the rows of files of so many MiB together are kept in memory (default: 1024); more files are\n"
     "read one after the other each time that a table is gone through",
     OPTION_WORD, option_number, .at = offsetof(wish, keep)},
    {"--schema", NULL, "the tables and their columns", .at = offsetof(wish, schema)},
};

static const option_table command_options = {
    .command = "query",
    .usage = "[OPTION ...] 'SELECT ...' FILE ...",
    .about =
        "Asks what runs did, in SQL (SQLite's). FILE is a trace of perfkit or any Chrome trace, .gz\n"
        "too, one of a killed run as well, or a report in JSON; \"-\" is the standard input. Several\n"
        "files are one set of tables, with a column for the rank. Or one database that `pk export\n"
        "--sqlite` has made. Nothing is changed. Also: percentile(x, 99), median(x), stddev(x),\n"
        "x REGEXP 'pattern'. docs/query.md has examples.",
    .notes = "Exit status: 0; 2 if the SQL is wrong or a file cannot be used.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "json gz",
    .who = "",
    .sql = true,
    .operands = offsetof(wish, files),
};

/* Without --from the SQL is the first operand. False after a complaint. */
static bool find_sql(wish *w)
{
    size_t sql = !w->read && w->files.count > 0;
    w->sql = sql ? w->files.all[0] : w->read;
    w->files.all += sql;
    w->files.count -= sql;
    if (!w->sql)
        complain("query needs SQL and a file (pk query --help)");
    else if (!w->files.count)
        complain("query needs a file behind the SQL (pk query --help)");
    return w->sql && w->files.count;
}

/* ---- SQL ---- */

static bool refuse_sql(session *s, const char *sql)
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
            return refuse_sql(s, sql);
        if (statement && run) {
            int status = query_print(statement, s->w->format);
            good = status == SQLITE_DONE ||
                   (status == SQLITE_NOMEM ? complain("out of memory"), false : refuse_sql(s, sql));
        }
        any |= statement != NULL;
        sqlite3_finalize(statement);
        query_end_statement(&s->tables);
    }
    if (good && !any)
        complain("there is no statement in the SQL");
    return good && any;
}

static bool load_files(session *s)
{
    complaint why = {""};
    const stream_files files = {s->w->files.all, s->w->files.count};
    if (stream_is_worth(&files, (uint64_t)s->w->keep << 20)) {
        s->tables.files = files;
        return true;
    }
    s->tables.rows = rows_create(&s->tables.wish);
    const char *bad = rows_add_files(s->tables.rows, s->w->files.all, s->w->files.count, &why);
    if (bad)
        complain("%s: %s", bad, why.text);
    return !bad;
}

/* First without rows: so it is known which ones are needed. */
static bool query_files(session *s)
{
    if (query_open(NULL, &s->db) || query_add_tables(s->db, &s->tables) ||
        query_add_functions(s->db) || query_sort_in_files(s->db)) {
        complain("%s", s->db ? sqlite3_errmsg(s->db) : "out of memory");
        return false;
    }
    query_forbid_changes(s->db);
    return each_statement(s, false) && load_files(s) && each_statement(s, true);
}

static bool query_database(session *s)
{
    if (query_open(s->w->files.all[0], &s->db) || query_add_functions(s->db)) {
        complain("%s: %s", s->w->files.all[0], s->db ? sqlite3_errmsg(s->db) : "out of memory");
        return false;
    }
    query_forbid_changes(s->db);
    return each_statement(s, true);
}

static int run_query(const wish *w)
{
    session s = {.w = w};
    bool database = query_is_database(w->files.all[0]);
    if (database && w->files.count > 1)
        return complain("one database at a time, and no other files beside it");
    json_limit_memory(JSON_MEMORY_MOST);
    bool answered = database ? query_database(&s) : query_files(&s);
    sqlite3_close(s.db);
    rows_destroy(s.tables.rows);
    return answered ? EXIT_OK : EXIT_UNUSABLE;
}

int command_query(int argc, char **argv)
{
    wish w = {.keep = KEEP_MIB};
    int status = options_read(&command_options, &w, argc, argv);
    if (status == OPTIONS_READ)
        status = w.schema ? print_schema() : find_sql(&w) ? run_query(&w) : EXIT_UNUSABLE;
    free(w.read);
    return status;
}
