/* tools/job/forms/heat.c - ranks x steps as cells: each rank's step beside the median of all
 * ranks'.
 *
 * Where there are more ranks or blocks of steps than cells, a cell is of several and has the
 * largest of their figures: one rank that is late in one step is seen among 10,000 ranks.
 */
#include "job/forms/page.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"
#include "memory.h"

#define MOST 4095 /* thousandths of the median that two characters hold */

typedef struct grid {
    const job *of;
    const job_loop *loop;
    bool by_work;
    size_t rows, columns, per_row, per_column;
} grid;

typedef double cell_figure(const grid *g, size_t cell);

/* Below 0: the rank is not in that block. */
static double step_figure(const grid *g, size_t cell)
{
    return g->loop->steps[cell] > 0 ? g->loop->time[cell] / g->loop->steps[cell] : -1;
}

static double own_figure(const grid *g, size_t cell)
{
    double work = g->by_work ? g->loop->items[cell] : g->loop->steps[cell];
    return work > 0 ? g->loop->own[cell] / work : -1;
}

static double median_of(const grid *g, size_t block, cell_figure *figure, double *scratch)
{
    size_t count = 0;
    for (size_t r = 0; r < g->of->rank_count; r++) {
        double v = figure(g, job_cell(g->of, block, r));
        if (v >= 0)
            scratch[count++] = v;
    }
    return count ? pki_samples_select_median(scratch, count) : 0;
}

/* 0: nobody was there. */
static unsigned thousandths(double figure, double median)
{
    if (figure < 0 || !(median > 0))
        return 0;
    double rounded = floor(1000 * figure / median + 0.5);
    return rounded < 1 ? 1 : rounded > MOST ? MOST : (unsigned)rounded;
}

/* Two characters a cell, 64 x the first's place in the alphabet + the second's: as numbers the
 * cells would be most of the page. */
static void put_cells(pki_json *to, const char *key, const unsigned *cells, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = memory_zeroed(2 * count + 1, 1);
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[cells[i] / 64];
        text[2 * i + 1] = digits[cells[i] % 64];
    }
    pki_json_text(to, key, text);
    free(text);
}

static void put_figures(pki_json *to, const char *key, const grid *g, cell_figure *figure)
{
    size_t ranks = g->of->rank_count;
    unsigned *cells = memory_zeroed(g->rows * g->columns, sizeof *cells);
    double *scratch = memory_zeroed(ranks, sizeof *scratch);
    for (size_t b = 0; b < g->loop->block_count; b++) {
        double median = median_of(g, b, figure, scratch);
        for (size_t r = 0; r < ranks; r++) {
            unsigned v = thousandths(figure(g, job_cell(g->of, b, r)), median);
            unsigned *cell = &cells[r / g->per_row * g->columns + b / g->per_column];
            *cell = PKI_MAX(*cell, v);
        }
    }
    put_cells(to, key, cells, g->rows * g->columns);
    free(scratch);
    free(cells);
}

/* ---- what rows and columns are of ---- */

static uint64_t last_step(const grid *g)
{
    size_t block = g->loop->block_count - 1;
    double steps = 1;
    for (size_t r = 0; r < g->of->rank_count; r++)
        steps = PKI_MAX(steps, g->loop->steps[job_cell(g->of, block, r)]);
    return g->loop->first[block] + (uint64_t)steps - 1;
}

static void put_columns(pki_json *to, const grid *g)
{
    pki_json_open(to, "first_steps", '[');
    for (size_t c = 0; c < g->columns; c++)
        pki_json_uint(to, NULL, g->loop->first[c * g->per_column]);
    pki_json_close(to, ']');
    pki_json_uint(to, "last_step", last_step(g));
}

static size_t latest_of(const job_lateness *l, size_t from, size_t to)
{
    size_t latest = from;
    for (size_t r = from + 1; r < to; r++)
        latest = l->by[r] > l->by[latest] || isnan(l->by[latest]) ? r : latest;
    return latest;
}

/* Of each row its first rank, its last one and its latest. */
static void put_rows(pki_json *to, const grid *g, const job_lateness *l)
{
    const job_rank *ranks = g->of->ranks;
    pki_json_open(to, "ranks", '[');
    for (size_t row = 0; row < g->rows; row++) {
        size_t from = row * g->per_row, end = PKI_MIN(from + g->per_row, g->of->rank_count);
        pki_json_open(to, NULL, '[');
        pki_json_int(to, NULL, ranks[from].rank);
        pki_json_int(to, NULL, ranks[end - 1].rank);
        pki_json_int(to, NULL, ranks[latest_of(l, from, end)].rank);
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
}

static size_t ceiling(size_t count, size_t by)
{
    return (count + by - 1) / by;
}

void job_page_heat(const job_findings *f, const char *key, pki_json *to)
{
    grid g = {.of = f->of, .loop = job_usual(f->of), .by_work = f->lateness.by_work};
    if (!g.loop)
        return;
    g.per_row = ceiling(f->of->rank_count, JOB_PAGE_HEIGHT);
    g.per_column = ceiling(g.loop->block_count, JOB_PAGE_BLOCKS);
    g.rows = ceiling(f->of->rank_count, g.per_row);
    g.columns = ceiling(g.loop->block_count, g.per_column);
    pki_json_open(to, key, '{');
    pki_json_uint(to, "ranks_per_row", g.per_row);
    pki_json_uint(to, "blocks_per_column", g.per_column);
    pki_json_bool(to, "by_work", g.by_work);
    put_columns(to, &g);
    put_rows(to, &g, &f->lateness);
    put_figures(to, "step", &g, step_figure);
    put_figures(to, "own", &g, own_figure);
    pki_json_close(to, '}');
}
