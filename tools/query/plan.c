/* tools/query/plan.c - how SQLite is to go through a table. */
#include "query/sheet.h"

#include "base/compiler.h"

#include <math.h>
#include <string.h>

bool sheet_is_streamed(const sheet *s)
{
    return !s->from->rows && s->from->files.count;
}

/* Of what is not kept it is guessed: what matters is which table is larger. */
static double count_of(const sheet *s)
{
    static const double guesses[ROWS_TABLES] = {
        [ROWS_CALLS] = 1e6,       [ROWS_KERNELS] = 1e6,    [ROWS_MEMCPYS] = 1e5,
        [ROWS_COLLECTIVES] = 1e5, [ROWS_MESSAGES] = 1e5,   [ROWS_COUNTERS] = 1e5,
        [ROWS_MARKS] = 1e5,       [ROWS_ACTIVITIES] = 1e6, [ROWS_SPANS] = 1e5,
        [ROWS_SPAN_MARKS] = 1e5,  [ROWS_REQUESTS] = 1e5,   [ROWS_STEPS] = 1e4};
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

int sheet_choose(sqlite3_vtab *table, sqlite3_index_info *info)
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
