#include "job/figures/counted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "job/forms/json.h"
#include "job/forms/text.h"
#include "measure/figure.h"
#include "memory.h"

#define SHOWN 8
#define NAME 20
#define FIGURE 14

void job_counted_move(job_rank *rank, pki_summary *from)
{
    rank->counted_count = from->events.row_count;
    rank->counted = from->events.rows;
    from->events.row_count = 0;
    from->events.rows = NULL;
}

void job_counted_forget(job_rank *rank)
{
    for (size_t i = 0; i < rank->counted_count; i++)
        free(rank->counted[i].region);
    free(rank->counted);
    rank->counted = NULL;
    rank->counted_count = 0;
}

/* ---- over the ranks ---- */

/* Of all ranks: rows[region * ranks + rank], NULL of a rank that does not have it. */
typedef struct counted {
    const job *of;
    table regions;
    const pki_events_row **rows;
    double *values; /* one of each rank */
} counted;

static const pki_events_row *row_of(const counted *all, size_t region, size_t rank)
{
    return all->rows[region * all->of->rank_count + rank];
}

static counted sum_over_ranks(const job *j)
{
    counted all = {.of = j, .values = memory_zeroed(j->rank_count, sizeof *all.values)};
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].counted_count; i++)
            table_add(&all.regions, j->ranks[r].counted[i].region);
    all.rows = memory_zeroed(all.regions.count * j->rank_count, sizeof *all.rows);
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].counted_count; i++) {
            const pki_events_row *row = &j->ranks[r].counted[i];
            all.rows[table_add(&all.regions, row->region) * j->rank_count + r] = row;
        }
    return all;
}

/* What a rank's figure weighs by: what it is divided by. */
static double weight_of(const pki_events_row *row, pki_event_figure figure)
{
    double calls = (double)row->calls;
    if (pki_event_figure_is_share(figure))
        return calls * row->value[PKI_EVENT_SLOTS];
    switch (figure) {
    case PKI_FIGURE_IPC:
        return calls * row->value[PKI_EVENT_CYCLES];
    case PKI_FIGURE_CACHE:
    case PKI_FIGURE_BRANCH:
        return calls * row->value[PKI_EVENT_INSTRUCTIONS];
    default:
        return calls;
    }
}

typedef struct sum {
    double weight, value, squares;
    bool unknown; /* a rank's error */
} sum;

static void add(sum *to, const pki_events_row *row, pki_event_figure figure)
{
    double weight = weight_of(row, figure), error = pki_event_error_of(row, figure);
    to->weight += weight;
    to->value += weight * pki_event_figure_of(row, figure);
    to->squares += weight * error * weight * error;
    to->unknown |= error < 0;
}

static void fill_figure(counted *all, size_t region, pki_event_figure figure, job_counted *c)
{
    sum of = {.weight = 0};
    for (size_t r = 0; r < all->of->rank_count; r++) {
        const pki_events_row *row = row_of(all, region, r);
        all->values[r] = row ? pki_event_figure_of(row, figure) : -1;
        if (all->values[r] >= 0)
            add(&of, row, figure);
    }
    bool known = of.weight > 0;
    c->by[figure] = job_spread_of(all->of, all->values);
    c->value[figure] = known ? of.value / of.weight : -1;
    c->error[figure] = known && !of.unknown ? sqrt(of.squares) / of.weight : -1;
}

static job_counted counted_of(counted *all, size_t region)
{
    job_counted c = {.region = ""};
    for (size_t r = 0; r < all->of->rank_count; r++) {
        const pki_events_row *row = row_of(all, region, r);
        if (!row)
            continue;
        c.region = row->region;
        c.calls += row->calls;
        c.sampled += row->sampled;
        c.time += (double)row->time;
    }
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++)
        fill_figure(all, region, f, &c);
    return c;
}

static int by_time(const void *x, const void *y)
{
    const job_counted *a = x, *b = y;
    if (a->time != b->time)
        return a->time < b->time ? 1 : -1;
    return strcmp(a->region, b->region);
}

job_counted *job_counted_of(const job *j, size_t *count)
{
    counted all = sum_over_ranks(j);
    job_counted *out = memory_zeroed(all.regions.count, sizeof *out);
    for (size_t i = 0; i < all.regions.count; i++)
        out[i] = counted_of(&all, i);
    *count = all.regions.count;
    if (*count)
        qsort(out, *count, sizeof *out, by_time);
    table_finish(&all.regions);
    free(all.rows);
    free(all.values);
    return out;
}

/* ---- as text ---- */

static void put_figure(const job_counted *c, pki_event_figure figure, const char *region, FILE *to)
{
    char rank[16];
    const job_spread *by = &c->by[figure];
    double value = c->value[figure], error = c->error[figure];
    job_text_left(to, region, NAME);
    pki_put_left(to, pki_event_figure_name(figure), FIGURE);
    pki_put_cell(to, pki_event_figure_shown(figure, value).text, 7);
    pki_put_cell(to, pki_event_error_shown(figure, value, error).text, 7);
    pki_put_cell(to, pki_event_figure_shown(figure, by->min).text, 7);
    pki_put_cell(to, pki_event_figure_shown(figure, by->max).text, 7);
    pki_put_cell(to, job_text_rank(rank, by->max_rank), 4);
    fputc('\n', to);
}

static void put_region(const job_counted *c, FILE *to)
{
    const char *region = c->region;
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (c->value[f] < 0)
            continue;
        put_figure(c, f, region, to);
        region = "";
    }
}

void job_counted_text(const job *j, FILE *to)
{
    size_t count;
    job_counted *all = job_counted_of(j, &count);
    if (count) {
        fputs("\nEvents a call, of sampled calls of all ranks (misses: in 1,000 instructions; +-:\n"
              "95 % of samples would be as near), and the least and the most of a rank\n",
              to);
        job_text_left(to, "region", NAME);
        pki_put_left(to, "figure", FIGURE);
        fputs("   value       +-      min      max  rank\n", to);
    }
    for (size_t i = 0; i < PKI_MIN(count, SHOWN); i++)
        put_region(&all[i], to);
    if (count > SHOWN)
        fprintf(to, "  ... and %zu regions more (--json has all)\n", count - SHOWN);
    free(all);
}

/* ---- for machines ---- */

static void put_known(pki_json *j, const char *key, double value)
{
    pki_json_real(j, key, value < 0 ? NAN : value);
}

static void put_json(const job_counted *c, pki_json *to)
{
    pki_json_row(to);
    pki_json_open(to, NULL, '{');
    pki_json_text(to, "region", c->region);
    pki_json_uint(to, "calls", c->calls);
    pki_json_uint(to, "sampled", c->sampled);
    pki_json_real(to, "time", c->time);
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (c->value[f] < 0)
            continue;
        pki_json_open(to, pki_event_figure_key(f), '{');
        pki_json_real(to, "value", c->value[f]);
        put_known(to, "error", c->error[f]);
        job_json_spread(to, "by_rank", &c->by[f]);
        pki_json_close(to, '}');
    }
    pki_json_close(to, '}');
}

void job_counted_json(const job *j, size_t most, pki_json *to)
{
    size_t count;
    job_counted *all = job_counted_of(j, &count);
    if (count) {
        pki_json_row(to);
        pki_json_open(to, "events", '[');
        for (size_t i = 0; i < PKI_MIN(count, most); i++)
            put_json(&all[i], to);
        pki_json_close(to, ']');
    }
    free(all);
}
