/* tools/query/functions.c - aggregates that SQLite does not have: percentiles and spreads, of
 * groups and of windows; and REGEXP.
 *
 * percentile(x, p) has p from 0 to 100, percentile_cont(x, p) from 0 to 1; both interpolate between
 * the two nearest values, as percentile_cont of other engines does.
 */
#include "query/query.h"

#include "bench/stats/samples.h"
#include "memory.h"
#include "stats/moments.h"
#include "stats/series.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of a group or a window. */
typedef struct numbers {
    double *values;
    size_t count, room;
    double part; /* of 0 .. 1; NaN until it is given */
    bool sorted; /* a window: kept in order */
    bool failed;
} numbers;

enum { PERCENT, PART, MEDIAN };

/* The first one that is not below. */
static size_t first_not_below(const numbers *n, double value)
{
    size_t low = 0, high = n->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (n->values[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_value(numbers *n, double value)
{
    memory_fit(&n->values, &n->room, n->count + 1, sizeof value);
    size_t at = n->sorted ? first_not_below(n, value) : n->count;
    memmove(n->values + at + 1, n->values + at, (n->count - at) * sizeof *n->values);
    n->values[at] = value;
    n->count++;
}

static void fail(sqlite3_context *context, numbers *n, const char *why)
{
    n->failed = true;
    sqlite3_result_error(context, why, -1);
}

static bool read_quantile(sqlite3_context *context, numbers *n, int argc, sqlite3_value **argv)
{
    intptr_t unit = (intptr_t)sqlite3_user_data(context);
    double most = unit == PERCENT ? 100 : 1, given = unit == MEDIAN ? 0.5 : NAN;
    if (argc > 1 && sqlite3_value_numeric_type(argv[1]) != SQLITE_NULL)
        given = sqlite3_value_double(argv[1]);
    if (!(given >= 0 && given <= most))
        fail(context, n,
             unit == PERCENT ? "percentile(x, p): p is a number from 0 to 100"
                             : "percentile_cont(x, p): p is a number from 0 to 1");
    n->part = given / most;
    return !n->failed;
}

static void step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    numbers *n = sqlite3_aggregate_context(context, sizeof *n);
    if (!n || n->failed)
        return;
    int type = sqlite3_value_numeric_type(argv[0]);
    if (!read_quantile(context, n, argc, argv) || type == SQLITE_NULL)
        return;
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        fail(context, n, "a percentile is of numbers");
    else
        add_value(n, sqlite3_value_double(argv[0]));
}

static void remove_value(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    numbers *n = sqlite3_aggregate_context(context, sizeof *n);
    (void)argc;
    if (!n || n->failed || sqlite3_value_numeric_type(argv[0]) == SQLITE_NULL)
        return;
    if (!n->sorted)
        pki_samples_sort(n->values, n->count);
    n->sorted = true;
    size_t at = first_not_below(n, sqlite3_value_double(argv[0]));
    if (at < n->count)
        memmove(n->values + at, n->values + at + 1, (--n->count - at) * sizeof *n->values);
}

static double smallest(const double *values, size_t count)
{
    double least = values[0];
    for (size_t i = 1; i < count; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

static void value(sqlite3_context *context)
{
    numbers *n = sqlite3_aggregate_context(context, 0);
    if (!n || n->failed || n->count == 0)
        return;
    double at = n->part * (double)(n->count - 1);
    size_t below = (size_t)at;
    if (!n->sorted)
        pki_select(n->values, n->count, below);
    double low = n->values[below], high = low;
    if (below + 1 < n->count)
        high = n->sorted ? n->values[below + 1]
                         : smallest(n->values + below + 1, n->count - below - 1);
    sqlite3_result_double(context, low + (high - low) * (at - (double)below));
}

static void finish(sqlite3_context *context)
{
    numbers *n = sqlite3_aggregate_context(context, 0);
    value(context);
    if (n)
        free(n->values);
}

/* ---- spread ---- */

static void spread_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    pki_moments *m = sqlite3_aggregate_context(context, sizeof *m);
    (void)argc;
    if (m && sqlite3_value_numeric_type(argv[0]) != SQLITE_NULL)
        pki_moments_add(m, sqlite3_value_double(argv[0]), 1);
}

static void spread_remove(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    pki_moments *m = sqlite3_aggregate_context(context, sizeof *m);
    (void)argc;
    if (m && sqlite3_value_numeric_type(argv[0]) != SQLITE_NULL)
        pki_moments_remove(m, sqlite3_value_double(argv[0]));
}

/* Of a sample (user data 1) or of all (0). */
static void spread_value(sqlite3_context *context)
{
    const pki_moments *m = sqlite3_aggregate_context(context, 0);
    uint64_t less = (uint64_t)(uintptr_t)sqlite3_user_data(context);
    if (m && m->count > less)
        sqlite3_result_double(context, pki_moments_deviation(m, less));
}

/* ---- x REGEXP pattern ---- */

static void free_pattern(void *pattern)
{
    regfree(pattern);
    sqlite3_free(pattern);
}

static void refuse_pattern(sqlite3_context *context, int error, const regex_t *pattern)
{
    char why[200] = "REGEXP: ";
    size_t length = strlen(why);
    regerror(error, pattern, why + length, sizeof why - length);
    sqlite3_result_error(context, why, -1);
}

static void regexp(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    const char *text = (const char *)sqlite3_value_text(argv[1]);
    const char *pattern = (const char *)sqlite3_value_text(argv[0]);
    (void)argc;
    if (!text || !pattern)
        return;
    regex_t *compiled = sqlite3_get_auxdata(context, 0);
    bool fresh = !compiled;
    if (fresh) {
        compiled = sqlite3_malloc(sizeof *compiled);
        int error = compiled ? regcomp(compiled, pattern, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
        if (error) {
            refuse_pattern(context, error, compiled);
            sqlite3_free(compiled);
            return;
        }
    }
    sqlite3_result_int(context, regexec(compiled, text, 0, NULL, 0) == 0);
    if (fresh) /* last: SQLite may free it at once */
        sqlite3_set_auxdata(context, 0, compiled, free_pattern);
}

#define FLAGS (SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS)

int query_add_functions(sqlite3 *db)
{
    static const struct {
        const char *name;
        int arguments;
        intptr_t unit;
    } percentiles[] = {{"percentile", 2, PERCENT},
                       {"percentile_cont", 2, PART},
                       {"median", 1, MEDIAN}},
      spreads[] = {{"stddev", 1, 1}, {"stddev_pop", 1, 0}};
    int error = SQLITE_OK;
    for (size_t i = 0; !error && i < sizeof percentiles / sizeof *percentiles; i++)
        error = sqlite3_create_window_function(db, percentiles[i].name, percentiles[i].arguments,
                                               FLAGS, (void *)percentiles[i].unit, step, finish,
                                               value, remove_value, NULL);
    for (size_t i = 0; !error && i < sizeof spreads / sizeof *spreads; i++)
        error = sqlite3_create_window_function(db, spreads[i].name, spreads[i].arguments, FLAGS,
                                               (void *)spreads[i].unit, spread_step, spread_value,
                                               spread_value, spread_remove, NULL);
    return error ? error
                 : sqlite3_create_function(db, "regexp", 2, FLAGS, NULL, regexp, NULL, NULL);
}
