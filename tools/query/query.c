#include "query/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "command.h"
#include "complaint.h"
#include "memory.h"
#include "out/columns.h"
#include "read/json.h"
#include "read/lines.h"
#include "rows/rows.h"

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

/* A connection to a database that is read only (NULL: to an empty one in memory), in which SQL from
 * anywhere, and what a file from anywhere has for a schema, can reach nothing but its rows. An
 * error of SQLite's; *db may be there all the same, and tells which. */
static int query_open(const char *path, sqlite3 **db)
{
    int error =
        path ? sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL) : sqlite3_open(":memory:", db);
    return error ? error : harden(*db);
}

/* Sorting goes through files, not through memory. An error of SQLite's. */
static int query_sort_in_files(sqlite3 *db)
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

/* Nothing but reading, by functions that are known to be harmless, is allowed from now on. */
static void query_forbid_changes(sqlite3 *db)
{
    sqlite3_set_authorizer(db, allow, NULL);
}

/* ---- where it is wrong ---- */

/* Where in the SQL something is wrong, for whoever wrote it: the line, and a mark below. */
static void query_point_at(const char *sql, int offset)
{
    if (offset < 0 || (size_t)offset > strlen(sql))
        return;
    const char *at = sql + offset, *start = at;
    while (start > sql && start[-1] != '\n')
        start--;
    int length = (int)strcspn(start, "\n"), before = (int)(at - start), number = 1;
    for (const char *s = sql; s < start; s++)
        number += *s == '\n';
    fprintf(stderr, "  in line %d:\n  ", number);
    for (int i = 0; i < length; i++)
        fputc((unsigned char)start[i] < ' ' ? ' ' : start[i], stderr);
    fputs("\n  ", stderr);
    /* A character of several bytes takes one place. */
    for (int i = 0; i < before; i++)
        if (((unsigned char)start[i] & 0xC0) != 0x80)
            fputc(' ', stderr);
    fputs("^\n", stderr);
}

/* ---- the files around a query: SQL, and databases ---- */

#define SQL_MOST ((size_t)1 << 20)

/* All of a file, to be freed; NULL, and why. */
static char *query_read_text(const char *path, complaint *why)
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

/* Does it begin as SQLite's databases do? */
static bool query_is_database(const char *path)
{
    char magic[16] = "";
    FILE *file = strcmp(path, "-") == 0 ? NULL : fopen(path, "rbe");
    bool is = file && fread(magic, 1, sizeof magic, file) == sizeof magic &&
              memcmp(magic, "SQLite format 3", sizeof magic) == 0;
    if (file)
        fclose(file);
    return is;
}

/* ---- the rows of a statement in a form for people or for programs ---- */

#define BLOCK 1000     /* rows by which the widths of columns are found */
#define WIDTH_MOST 100 /* of a column that is not the last */

const char *const query_format_names[QUERY_FORMATS] = {"table", "csv", "ndjson", "json",
                                                       "markdown"};

typedef struct printing {
    sqlite3_stmt *from;
    int columns;
    char **cells; /* of a block, for tables */
    size_t *widths;
    bool *numbers;
    pki_json json;
} printing;

/* A real number that people look at: not more digits than they want, nor fewer than an integer has.
 */
static char *put_real(char out[48], double value)
{
    double size = fabs(value);
    if (size >= 1e5 && size < 1e15)
        snprintf(out, 48, "%.*f", value == floor(value) ? 0 : 1, value);
    else
        snprintf(out, 48, "%.6g", value);
    return out;
}

static char *text_of(sqlite3_stmt *from, int i)
{
    char real[48];
    if (sqlite3_column_type(from, i) == SQLITE_FLOAT)
        return memory_copy(put_real(real, sqlite3_column_double(from, i)));
    const char *text = (const char *)sqlite3_column_text(from, i);
    return memory_copy(text ? text : "");
}

static bool is_number(sqlite3_stmt *from, int i)
{
    int type = sqlite3_column_type(from, i);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* ---- tables ---- */

/* Columns of texts are aligned to the left; those that have begun with a number to the right. */
static void read_row(printing *p, size_t row)
{
    for (int i = 0; i < p->columns; i++) {
        char *text = p->cells[row * (size_t)p->columns + (size_t)i] = text_of(p->from, i);
        p->widths[i] = PKI_MAX(p->widths[i], pki_width(text));
        p->numbers[i] |= is_number(p->from, i);
    }
}

static void put_cell(const printing *p, int i, const char *text)
{
    size_t width = PKI_MIN(p->widths[i], (size_t)WIDTH_MOST);
    if (i > 0)
        fputs("  ", stdout);
    if (p->numbers[i])
        pki_put_right(stdout, text, width);
    else if (i + 1 < p->columns)
        pki_put_left(stdout, text, width);
    else
        pki_put_left(stdout, text, pki_width(text));
}

/* Of a row, or, NULL, the columns' names. */
static const char *cell_of(const printing *p, char **cells, int i)
{
    return cells ? cells[i] : sqlite3_column_name(p->from, i);
}

static void put_table_row(const printing *p, char **cells)
{
    for (int i = 0; i < p->columns; i++)
        put_cell(p, i, cell_of(p, cells, i));
    putchar('\n');
}

static void put_names(const printing *p)
{
    put_table_row(p, NULL);
    for (int i = 0; i < p->columns; i++) {
        size_t width = PKI_MIN(p->widths[i], (size_t)WIDTH_MOST);
        pki_put_times(stdout, ' ', i > 0 ? 2 : 0);
        pki_put_times(stdout, '-', width);
    }
    putchar('\n');
}

static void put_markdown_text(const char *text)
{
    for (; *text; text++)
        if (*text == '|')
            fputs("\\|", stdout);
        else
            putchar((unsigned char)*text < ' ' ? ' ' : *text);
}

static void put_markdown_row(const printing *p, char **cells)
{
    for (int i = 0; i < p->columns; i++) {
        fputs(i ? " | " : "| ", stdout);
        put_markdown_text(cell_of(p, cells, i));
    }
    puts(" |");
}

static void put_markdown_names(const printing *p)
{
    put_markdown_row(p, NULL);
    for (int i = 0; i < p->columns; i++)
        fputs(p->numbers[i] ? "|--:" : "|---", stdout);
    puts("|");
}

static void put_block(printing *p, size_t count, bool first, bool markdown)
{
    if (first)
        (markdown ? put_markdown_names : put_names)(p);
    for (size_t i = 0; i < count; i++) {
        char **cells = p->cells + i * (size_t)p->columns;
        (markdown ? put_markdown_row : put_table_row)(p, cells);
    }
    for (size_t i = 0; i < count * (size_t)p->columns; i++) {
        free(p->cells[i]);
        p->cells[i] = NULL;
    }
}

/* Block by block; the first one's widths are those of all. */
static int print_blocks(printing *p, bool markdown)
{
    bool first = true;
    int status;
    size_t count = 0;
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW) {
        read_row(p, count);
        if (++count == BLOCK) {
            put_block(p, count, first, markdown);
            first = false;
            count = 0;
        }
    }
    if (status == SQLITE_DONE)
        put_block(p, count, first, markdown);
    return status;
}

static int print_table(printing *p, bool markdown)
{
    size_t columns = (size_t)p->columns;
    p->cells = memory_zeroed(columns * BLOCK, sizeof *p->cells);
    p->widths = memory_zeroed(columns, sizeof *p->widths);
    p->numbers = memory_zeroed(columns, sizeof *p->numbers);
    for (size_t i = 0; i < columns; i++)
        p->widths[i] = pki_width(sqlite3_column_name(p->from, (int)i));
    int status = print_blocks(p, markdown);
    for (size_t i = 0; i < columns * BLOCK; i++)
        free(p->cells[i]);
    free(p->cells);
    free(p->widths);
    free(p->numbers);
    return status;
}

/* ---- for programs ---- */

static cell cell_at(sqlite3_stmt *from, int i)
{
    switch (sqlite3_column_type(from, i)) {
    case SQLITE_INTEGER:
        return (cell){.type = CELL_INTEGER, .integer = sqlite3_column_int64(from, i)};
    case SQLITE_FLOAT:
        return (cell){.type = CELL_REAL, .real = sqlite3_column_double(from, i)};
    case SQLITE_NULL:
        return (cell){.type = CELL_NULL};
    default: {
        const char *text = (const char *)sqlite3_column_text(from, i);
        return (cell){.type = CELL_TEXT, .text = text ? text : ""};
    }
    }
}

static int print_csv(printing *p)
{
    int status;
    for (int i = 0; i < p->columns; i++) {
        csv_write_text(stdout, sqlite3_column_name(p->from, i));
        putchar(i + 1 < p->columns ? ',' : '\n');
    }
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW)
        for (int i = 0; i < p->columns; i++) {
            cell c = cell_at(p->from, i);
            cell_write_csv(stdout, &c);
            putchar(i + 1 < p->columns ? ',' : '\n');
        }
    return status;
}

static void put_json_row(printing *p)
{
    pki_json_open(&p->json, NULL, '{');
    for (int i = 0; i < p->columns; i++) {
        cell c = cell_at(p->from, i);
        cell_write_json(&p->json, sqlite3_column_name(p->from, i), &c);
    }
    pki_json_close(&p->json, '}');
}

static int print_ndjson(printing *p)
{
    int status;
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW) {
        p->json = (pki_json){.file = stdout};
        put_json_row(p);
        putchar('\n');
    }
    return status;
}

static int print_json(printing *p)
{
    int status;
    p->json = (pki_json){.file = stdout, .rows = true};
    pki_json_open(&p->json, NULL, '[');
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW) {
        pki_json_row(&p->json);
        put_json_row(p);
    }
    pki_json_close(&p->json, ']');
    putchar('\n');
    return status;
}

/* Runs it and prints its rows. An error of SQLite's, SQLITE_DONE if there is none. */
static int query_print(sqlite3_stmt *statement, query_format format)
{
    printing p = {.from = statement, .columns = sqlite3_column_count(statement)};
    switch (format) {
    case QUERY_CSV:
        return print_csv(&p);
    case QUERY_NDJSON:
        return print_ndjson(&p);
    case QUERY_JSON:
        return print_json(&p);
    default:
        return print_table(&p, format == QUERY_MARKDOWN);
    }
}

/* ---- pk query ---- */

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
    {"--format", "FORMAT", "table (default), csv, ndjson, json or markdown", PKI_OPTION_WORD,
     .take = parse_format},
    {"--from", "FILE", "the SQL is in this file; \"-\": on the standard input", PKI_OPTION_FILE,
     .take = parse_from},
    {"--keep", "MIB",
     "the rows of files of so many MiB together are kept in memory (default: 1024); more files are\n"
     "read one after the other each time that a table is gone through",
     PKI_OPTION_WORD, option_number, .at = offsetof(wish, keep)},
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
    .options = {all_options, PKI_COUNT_OF(all_options)},
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
