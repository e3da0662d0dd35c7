/* tools/query/tables.c - rows as tables of SQLite.
 *
 * Nothing is copied: a cell is made when SQLite asks for it. Groups and orders by columns, and rows
 * that a join looks for, come from permutations (rows/order.h), which are made once for each set of
 * columns. SQLite can do neither by itself for tables that are not its own.
 */
#include "query/query.h"

#include "base/compiler.h"
#include "memory.h"
#include "rows/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORDERS_MOST 8 /* of a table; beyond it, the oldest one goes if nobody reads it */

/* The ways to go through a table: idxNum, with the columns in idxStr. */
enum { ALL, ORDERED, FOUND };

typedef struct kept_order {
    order o;
    unsigned readers;
} kept_order;

typedef struct sheet {
    sqlite3_vtab base;
    query_tables *from;
    rows_table of;
    kept_order *orders[ORDERS_MOST];
    size_t order_count;
} sheet;

typedef struct cursor {
    sqlite3_vtab_cursor base;
    kept_order *by; /* NULL: in the rows' own order */
    size_t at, end;
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

static int disconnect(sqlite3_vtab *table)
{
    sheet *s = (sheet *)table;
    for (size_t i = 0; i < s->order_count; i++)
        free_order(s->orders[i]);
    free(s);
    return SQLITE_OK;
}

/* ---- the way to take ---- */

static double count_of(const sheet *s)
{
    return s->from->rows ? (double)rows_count(s->from->rows, s->of) : 1e6;
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

/* idxStr: a letter for each column, from 'A' on; small ones are descending from '\x80' on. */
static int put_columns(sqlite3_index_info *info, const char *columns)
{
    info->idxStr = sqlite3_mprintf("%s", columns);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

#define DESCENDING 0x40 /* beside the column's number + 1 */

static bool put_order(sqlite3_index_info *info, char columns[ORDER_COLUMNS + 1])
{
    if (info->nOrderBy == 0 || info->nOrderBy > ORDER_COLUMNS)
        return false;
    for (int i = 0; i < info->nOrderBy; i++) {
        if (info->aOrderBy[i].iColumn < 0)
            return false;
        columns[i] = (char)(info->aOrderBy[i].iColumn + 1);
        if (info->aOrderBy[i].desc)
            columns[i] = (char)(columns[i] | DESCENDING);
    }
    columns[info->nOrderBy] = '\0';
    return true;
}

static int choose(sqlite3_vtab *table, sqlite3_index_info *info)
{
    sheet *s = (sheet *)table;
    char columns[ORDER_COLUMNS + 1] = "";
    double each, count = count_of(s);
    int join = choose_join(s, info, &each);
    wish_for(s, info);
    info->estimatedCost = count;
    info->estimatedRows = (sqlite3_int64)PKI_MAX(count, 1);
    if (join >= 0) {
        info->aConstraintUsage[join].argvIndex = 1;
        info->idxNum = FOUND;
        info->estimatedCost = 10 + each;
        info->estimatedRows = (sqlite3_int64)each;
        columns[0] = (char)(info->aConstraint[join].iColumn + 1);
        return put_columns(info, columns);
    }
    if (!put_order(info, columns))
        return SQLITE_OK;
    info->idxNum = ORDERED;
    info->orderByConsumed = 1;
    return put_columns(info, columns);
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
        by.descending[by.count] = (column & DESCENDING) != 0;
        by.columns[by.count] = (uint8_t)((column & (DESCENDING - 1)) - 1);
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

static kept_order *order_for(sheet *s, const char *columns)
{
    order_by by = order_from(s->of, columns);
    for (size_t i = 0; i < s->order_count; i++)
        if (is_same(&s->orders[i]->o.by, &by))
            return s->orders[i];
    make_room(s);
    kept_order *fresh = s->order_count < ORDERS_MOST ? calloc(1, sizeof *fresh) : NULL;
    if (!fresh || !order_make(&fresh->o, s->from->rows, &by)) {
        free(fresh);
        return NULL;
    }
    return s->orders[s->order_count++] = fresh;
}

/* ---- going through it ---- */

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
    (void)table;
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

static int close_cursor(sqlite3_vtab_cursor *at)
{
    release_order((cursor *)at);
    free(at);
    return SQLITE_OK;
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
    c->at = 0;
    c->end = s->from->rows ? (size_t)rows_count(s->from->rows, s->of) : 0;
    if (way == ALL || c->end == 0)
        return SQLITE_OK;
    c->by = order_for(s, columns);
    if (!c->by)
        return SQLITE_NOMEM;
    c->by->readers++;
    if (way == FOUND && argc == 1) {
        const rows_column *column = &rows_about_table(s->of)->columns[columns[0] - 1];
        cell value = cell_for(rows_column_type(column), argv[0]);
        order_find(&c->by->o, s->from->rows, &value, &c->at, &c->end);
    }
    return SQLITE_OK;
}

static int next(sqlite3_vtab_cursor *at)
{
    ((cursor *)at)->at++;
    return SQLITE_OK;
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
    cell c = rows_cell(s->from->rows, s->of, row_of((cursor *)at), (unsigned)i);
    if (c.type == CELL_INTEGER)
        sqlite3_result_int64(context, c.integer);
    else if (c.type == CELL_REAL)
        sqlite3_result_double(context, c.real);
    else if (c.type == CELL_TEXT)
        sqlite3_result_text(context, c.text, -1, SQLITE_STATIC);
    return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *at, sqlite3_int64 *id)
{
    *id = (sqlite3_int64)row_of((cursor *)at) + 1;
    return SQLITE_OK;
}

static const sqlite3_module module = {.xConnect = connect,
                                      .xBestIndex = choose,
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
