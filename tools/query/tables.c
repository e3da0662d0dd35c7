/* tools/query/tables.c - rows as tables of SQLite */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/text.h"
#include "complaint.h"
#include "memory.h"
#include "query/query.h"

/* ---- how SQLite is to go through a table ---- */

/* Its files are read one after the other. */
static bool sheet_is_streamed(const sheet *s)
{
    return !s->from->rows && s->from->files.count;
}

/* Of what is not kept it is guessed: what matters is which table is larger. */
static double count_of(const sheet *s)
{
    static const double guesses[ROWS_TABLES] = {
        [ROWS_CALLS] = 1e6,       [ROWS_KERNELS] = 1e6,    [ROWS_MEMCPYS] = 1e5,
        [ROWS_COLLECTIVES] = 1e5, [ROWS_MESSAGES] = 1e5,   [ROWS_COUNTERS] = 1e5,
        [ROWS_MARKS] = 1e5,       [ROWS_NOTES] = 1e5,      [ROWS_ACTIVITIES] = 1e6,
        [ROWS_SPANS] = 1e5,       [ROWS_SPAN_MARKS] = 1e5, [ROWS_REQUESTS] = 1e5,
        [ROWS_STEPS] = 1e4};
    if (!sheet_is_streamed(s))
        return s->from->rows ? (double)rows_count(s->from->rows, s->of) : 1e6;
    return guesses[s->of] > 0 ? guesses[s->of] : 1e3;
}

static void wish_for(sheet *s, const sqlite3_index_info *info)
{
    uint64_t used = info->colUsed & ROWS_ALL;
    s->from->wish.columns[s->of] |= used | ROWS_COUNTED;
}

/* A constant is sooner compared with all rows than looked up in an order that has to be made; but
 * what a join asks for is asked often. */
static bool is_join(sqlite3_index_info *info, int i)
{
    sqlite3_value *constant;
    return info->aConstraint[i].usable && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ &&
           info->aConstraint[i].iColumn >= 0 &&
           sqlite3_vtab_rhs_value(info, i, &constant) != SQLITE_OK &&
           !sqlite3_vtab_in(info, i, -1) && strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0;
}

/* The column by which rows are found: of several the one with the most values, as far as its name
 * tells. -1: none. */
static int choose_join(const sheet *s, sqlite3_index_info *info, double *rows_each)
{
    static const struct {
        const char *name;
        double share;
    } guesses[] = {{"id", 0},      {"correlation", 0}, {"parent", 1e-6},  {"step", 1e-3},
                   {"name", 0.05}, {"sequence", 1e-3}, {"start_ns", 1e-6}};
    const rows_about *about = rows_about_table(s->of);
    int chosen = -1;
    double least = INFINITY;
    for (int i = 0; i < info->nConstraint; i++) {
        if (!is_join(info, i))
            continue;
        double share = 0.2;
        for (size_t g = 0; g < PKI_COUNT_OF(guesses); g++)
            if (strcmp(about->columns[info->aConstraint[i].iColumn].name, guesses[g].name) == 0)
                share = guesses[g].share;
        if (share < least) {
            least = share;
            chosen = i;
        }
    }
    *rows_each = 1 + (chosen < 0 ? 1 : least) * count_of(s);
    return chosen;
}

static int put_columns(sqlite3_index_info *info, const char *columns)
{
    info->idxStr = sqlite3_mprintf("%s", columns);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static bool put_order(sqlite3_index_info *info, char columns[ORDER_COLUMNS + 1])
{
    if (info->nOrderBy == 0 || info->nOrderBy > ORDER_COLUMNS)
        return false;
    for (int i = 0; i < info->nOrderBy; i++) {
        if (info->aOrderBy[i].iColumn < 0)
            return false;
        columns[i] = (char)(info->aOrderBy[i].iColumn + 1);
        if (info->aOrderBy[i].desc)
            columns[i] = (char)(columns[i] | SHEET_DESCENDING);
    }
    columns[info->nOrderBy] = '\0';
    return true;
}

/* Chooses the way to take, and has the columns that are asked for added to the wish. */
static int sheet_choose(sqlite3_vtab *of, sqlite3_index_info *info)
{
    sheet *s = (sheet *)of;
    char columns[ORDER_COLUMNS + 1] = "";
    double each, count = count_of(s);
    int join = choose_join(s, info, &each);
    wish_for(s, info);
    info->estimatedCost = count;
    info->estimatedRows = (sqlite3_int64)PKI_MAX(count, 1);
    if (join >= 0) {
        info->aConstraintUsage[join].argvIndex = 1;
        info->idxNum = SHEET_FOUND;
        /* The table would have to be kept: rather the smaller one. */
        info->estimatedCost = 10 + each + (sheet_is_streamed(s) ? count * count / 1e6 : 0);
        info->estimatedRows = (sqlite3_int64)each;
        columns[0] = (char)(info->aConstraint[join].iColumn + 1);
        return put_columns(info, columns);
    }
    if (sheet_is_streamed(s) || !put_order(info, columns))
        return SQLITE_OK;
    info->idxNum = SHEET_ORDERED;
    info->orderByConsumed = 1;
    return put_columns(info, columns);
}

/* ---- the rows of many files, one file's at a time ---- */

#define GZ_RATIO 12u /* of a trace, to what gzip makes of it */

bool stream_is_worth(const stream_files *files, uint64_t bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < files->count; i++) {
        struct stat about;
        if (stat(files->paths[i], &about) || !S_ISREG(about.st_mode))
            return false;
        sum += (uint64_t)about.st_size * (pki_ends_with(files->paths[i], ".gz") ? GZ_RATIO : 1);
    }
    return files->count > 1 && sum > bytes;
}

/* What is asked of this table alone. */
static rows *make_rows(rows_table of, const rows_wish *wish)
{
    rows_wish one = {.lenient = wish->lenient};
    one.columns[of] = wish->columns[of];
    return rows_create(&one);
}

static void stream_begin(stream *s, const stream_files *from, rows_table of, const rows_wish *wish)
{
    *s = (stream){.from = from, .of = of, .rows = make_rows(of, wish)};
}

static bool add(rows *r, const stream_files *from, size_t i, complaint *why)
{
    complaint said = {""};
    return rows_add_file(r, from->paths[i], true, &said) ||
           complaint_set(why, "%s: %s", from->paths[i], said.text);
}

/* The rows of the next file that has some: *count of them, 0 behind the last file. False, and why.
 */
static bool stream_next(stream *s, size_t *count, complaint *why)
{
    for (*count = 0; *count == 0 && s->next < s->from->count; s->next++) {
        rows_forget(s->rows);
        if (!add(s->rows, s->from, s->next, why))
            return false;
        *count = (size_t)rows_count(s->rows, s->of);
    }
    return true;
}

/* Those of all files, for who has to find them. NULL, and why. */
static rows *stream_whole(const stream_files *from, rows_table of, const rows_wish *wish,
                          complaint *why)
{
    rows *r = make_rows(of, wish);
    for (size_t i = 0; i < from->count; i++)
        if (!add(r, from, i, why)) {
            rows_destroy(r);
            return NULL;
        }
    return r;
}

/* ---- rows as tables of SQLite ---- */

/* Rows that are not kept come file by file (query/query.h). Of those that are, nothing is copied:
 * a cell is made when SQLite asks for it. Groups and orders by columns, and rows that a join looks
 * for, come from permutations (rows/rows.h), which are made once for each set of columns. SQLite
 * can do neither by itself for tables that are not its own. */

#define PASSES_MOST 4 /* through a table that is not kept, in one statement: then it is */

typedef struct cursor {
    sqlite3_vtab_cursor base;
    rows *rows;     /* among which it goes; NULL: there are none */
    kept_order *by; /* NULL: in the rows' own order */
    size_t at, end;
    bool passes; /* file by file */
    stream files;
} cursor;

/* ---- what there is ---- */

static int declare(sqlite3 *db, rows_table of)
{
    char sql[ROWS_SQL];
    rows_write_sql(of, "x", sql);
    return sqlite3_declare_vtab(db, sql);
}

/* A table's place among them is the module's, by its name. */
static rows_table table_named(const char *name)
{
    unsigned of = 0;
    while (of + 1 < ROWS_TABLES && strcmp(name, rows_about_table((rows_table)of)->name) != 0)
        of++;
    return (rows_table)of;
}

static int connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                   char **why)
{
    (void)argc;
    (void)why;
    sheet *s = memory_zeroed(1, sizeof *s);
    *s = (sheet){.from = aux, .of = table_named(argv[0])};
    *out = &s->base;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    int error = declare(db, s->of);
    if (error)
        free(s);
    return error;
}

static void free_order(kept_order *k)
{
    order_finish(&k->o);
    free(k);
}

static int disconnect(sqlite3_vtab *of)
{
    sheet *s = (sheet *)of;
    for (size_t i = 0; i < s->order_count; i++)
        free_order(s->orders[i]);
    rows_destroy(s->whole);
    free(s);
    return SQLITE_OK;
}

/* ---- orders ---- */

static bool is_same(const order_by *a, const order_by *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->columns[i] != b->columns[i] || a->descending[i] != b->descending[i])
            return false;
    return true;
}

static order_by order_from(rows_table of, const char *columns)
{
    order_by by = {.of = of};
    for (; columns[by.count]; by.count++) {
        unsigned column = (unsigned char)columns[by.count];
        by.descending[by.count] = (column & SHEET_DESCENDING) != 0;
        by.columns[by.count] = (uint8_t)((column & (SHEET_DESCENDING - 1)) - 1);
    }
    return by;
}

/* Room for one more: the first that nobody reads goes. */
static void make_room(sheet *s)
{
    for (size_t i = 0; s->order_count == ORDERS_MOST && i < ORDERS_MOST; i++)
        if (!s->orders[i]->readers) {
            free_order(s->orders[i]);
            s->orders[i] = s->orders[--s->order_count];
        }
}

static kept_order *order_for(sheet *s, rows *of, const char *columns)
{
    order_by by = order_from(s->of, columns);
    for (size_t i = 0; i < s->order_count; i++)
        if (is_same(&s->orders[i]->o.by, &by))
            return s->orders[i];
    make_room(s);
    kept_order *fresh = s->order_count < ORDERS_MOST ? calloc(1, sizeof *fresh) : NULL;
    if (!fresh || !order_make(&fresh->o, of, &by)) {
        free(fresh);
        return NULL;
    }
    return s->orders[s->order_count++] = fresh;
}

/* ---- going through it ---- */

static int open_cursor(sqlite3_vtab *of, sqlite3_vtab_cursor **out)
{
    (void)of;
    cursor *c = memory_zeroed(1, sizeof *c);
    *out = &c->base;
    return SQLITE_OK;
}

static void release_order(cursor *c)
{
    if (c->by)
        c->by->readers--;
    c->by = NULL;
}

/* SQLite may hold texts of its rows until the statement has ended. */
static void end_pass(cursor *c)
{
    query_tables *t = ((sheet *)c->base.pVtab)->from;
    if (!c->files.rows)
        return;
    t->passed = memory_resized(t->passed, (t->passed_count + 1) * sizeof(rows *));
    t->passed[t->passed_count++] = c->files.rows;
    rows_forget(c->files.rows);
    c->files.rows = NULL;
}

void query_end_statement(query_tables *t)
{
    for (size_t i = 0; i < t->passed_count; i++)
        rows_destroy(t->passed[i]);
    free(t->passed);
    t->passed = NULL;
    t->passed_count = 0;
    memset(t->passes, 0, sizeof t->passes);
}

static int close_cursor(sqlite3_vtab_cursor *at)
{
    release_order((cursor *)at);
    end_pass((cursor *)at);
    free(at);
    return SQLITE_OK;
}

static int refuse(sqlite3_vtab *of, const complaint *why)
{
    sqlite3_free(of->zErrMsg);
    of->zErrMsg = sqlite3_mprintf("%s", why->text);
    return SQLITE_ERROR;
}

/* The next file's rows. */
static int pass_on(cursor *c)
{
    complaint why = {""};
    c->at = 0;
    return stream_next(&c->files, &c->end, &why) ? SQLITE_OK : refuse(c->base.pVtab, &why);
}

/* From the first file on. Who has to find rows, or goes through them again and again, has them
 * kept.
 */
static int choose_rows(cursor *c, sheet *s, int way)
{
    complaint why = {""};
    c->rows = s->from->rows;
    if (!sheet_is_streamed(s))
        return SQLITE_OK;
    c->passes = way == SHEET_ALL && !s->whole && s->from->passes[s->of]++ < PASSES_MOST;
    if (c->passes) {
        end_pass(c);
        stream_begin(&c->files, &s->from->files, s->of, &s->from->wish);
        c->rows = c->files.rows;
        return SQLITE_OK;
    }
    if (!s->whole)
        s->whole = stream_whole(&s->from->files, s->of, &s->from->wish, &why);
    c->rows = s->whole;
    return s->whole ? SQLITE_OK : refuse(&s->base, &why);
}

/* The value as one of the column's type; CELL_NULL: no row has it. */
static cell cell_for(cell_type type, sqlite3_value *v)
{
    cell c = {.type = CELL_NULL};
    int given = sqlite3_value_type(v);
    if (given == SQLITE_NULL)
        return c;
    if (type == CELL_TEXT) {
        c.text = (const char *)sqlite3_value_text(v);
        c.type = c.text ? CELL_TEXT : CELL_NULL;
        return c;
    }
    given = sqlite3_value_numeric_type(v);
    double real = sqlite3_value_double(v);
    bool whole = given == SQLITE_INTEGER || (real == floor(real) && fabs(real) < 0x1p63);
    if ((given != SQLITE_INTEGER && given != SQLITE_FLOAT) || (type == CELL_INTEGER && !whole))
        return c;
    c.integer = given == SQLITE_INTEGER ? sqlite3_value_int64(v) : whole ? (int64_t)real : 0;
    c.real = real;
    c.type = type;
    return c;
}

static int filter(sqlite3_vtab_cursor *at, int way, const char *columns, int argc,
                  sqlite3_value **argv)
{
    cursor *c = (cursor *)at;
    sheet *s = (sheet *)at->pVtab;
    release_order(c);
    int error = choose_rows(c, s, way);
    if (error || c->passes)
        return error ? error : pass_on(c);
    c->at = 0;
    c->end = c->rows ? (size_t)rows_count(c->rows, s->of) : 0;
    if (way == SHEET_ALL || c->end == 0)
        return SQLITE_OK;
    c->by = order_for(s, c->rows, columns);
    if (!c->by)
        return SQLITE_NOMEM;
    c->by->readers++;
    if (way == SHEET_FOUND && argc == 1) {
        const rows_column *column = &rows_about_table(s->of)->columns[columns[0] - 1];
        cell value = cell_for(rows_column_type(column), argv[0]);
        order_find(&c->by->o, c->rows, &value, &c->at, &c->end);
    }
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *at)
{
    cursor *c = (cursor *)at;
    c->at++;
    return c->passes && c->at == c->end ? pass_on(c) : SQLITE_OK;
}

static int is_at_end(sqlite3_vtab_cursor *at)
{
    const cursor *c = (cursor *)at;
    return c->at >= c->end;
}

static size_t row_of(const cursor *c)
{
    return c->by ? c->by->o.places[c->at] : c->at;
}

static int column(sqlite3_vtab_cursor *at, sqlite3_context *context, int i)
{
    const sheet *s = (sheet *)at->pVtab;
    cell c = rows_cell(((cursor *)at)->rows, s->of, row_of((cursor *)at), (unsigned)i);
    if (c.type == CELL_INTEGER)
        sqlite3_result_int64(context, c.integer);
    else if (c.type == CELL_REAL)
        sqlite3_result_double(context, c.real);
    else if (c.type == CELL_TEXT)
        sqlite3_result_text(context, c.text, -1, SQLITE_STATIC);
    return SQLITE_OK;
}

#define ROWS_OF_FILE 40 /* bits of a row's id: its place among its file's; the file's is above */

static int row_id(sqlite3_vtab_cursor *at, sqlite3_int64 *id)
{
    const cursor *c = (const cursor *)at;
    uint64_t file = c->passes ? c->files.next : 0;
    *id = (sqlite3_int64)((file << ROWS_OF_FILE) + row_of(c) + 1);
    return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = connect,
                                      .xBestIndex = sheet_choose,
                                      .xDisconnect = disconnect,
                                      .xOpen = open_cursor,
                                      .xClose = close_cursor,
                                      .xFilter = filter,
                                      .xNext = next,
                                      .xEof = is_at_end,
                                      .xColumn = column,
                                      .xRowid = row_id};

/* A table declares its columns at its first use, which is forbidden later. */
static int declare_columns(sqlite3 *db, const char *name)
{
    sqlite3_stmt *statement = NULL;
    char sql[64];
    snprintf(sql, sizeof sql, "SELECT 1 FROM %s", name);
    int error = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    sqlite3_finalize(statement);
    return error;
}

int query_add_tables(sqlite3 *db, query_tables *tables)
{
    int error = SQLITE_OK;
    for (unsigned of = 0; !error && of < ROWS_TABLES; of++) {
        const char *name = rows_about_table((rows_table)of)->name;
        error = sqlite3_create_module(db, name, &module, tables);
        error = error ? error : declare_columns(db, name);
    }
    tables->wish = (rows_wish){.columns = {0}};
    return error;
}
