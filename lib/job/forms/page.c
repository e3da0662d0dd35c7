#include "job/forms/forms.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/samples.h"
#include "job/verdicts/verdicts.h"
#include "out/json_write.h"

#define RANKS_MOST 4096
#define ROWS_MOST 200    /* of each table */
#define LOOPS_MOST 8     /* kinds of steps */
#define BLOCKS_MOST 512  /* the heat map: at most so many columns... */
#define HEIGHT_MOST 400  /* ...and rows; a cell of several has their maximum */
#define MATRIX_MOST 128  /* who talks to whom: at most so many rows and columns */
#define CELLS_MOST 40000 /* ranks x regions, and ranks x stages */

/* ---- ranks x steps as cells: each rank's step beside the median of all ranks' ---- */

/* Where there are more ranks or blocks of steps than cells, a cell is of several and has the
 * largest of their figures: one rank that is late in one step is seen among 10,000 ranks. */

#define MOST 4095 /* thousandths of the median that two characters hold */

typedef struct grid {
    const pki_job *of;
    const pki_job_loop *loop;
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
        double v = figure(g, pki_job_cell(g->of, block, r));
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
static bool put_cells(pki_json *to, const char *key, const unsigned *cells, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = pki_array_zeroed(2 * count + 1, 1);
    if (!text)
        return false;
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[cells[i] / 64];
        text[2 * i + 1] = digits[cells[i] % 64];
    }
    pki_json_text(to, key, text);
    free(text);
    return true;
}

static bool put_figures(pki_json *to, const char *key, const grid *g, cell_figure *figure)
{
    size_t ranks = g->of->rank_count;
    unsigned *cells = pki_array_zeroed(g->rows * g->columns, sizeof *cells);
    double *scratch = pki_array_zeroed(ranks, sizeof *scratch);
    for (size_t b = 0; cells && scratch && b < g->loop->block_count; b++) {
        double median = median_of(g, b, figure, scratch);
        for (size_t r = 0; r < ranks; r++) {
            unsigned v = thousandths(figure(g, pki_job_cell(g->of, b, r)), median);
            unsigned *cell = &cells[r / g->per_row * g->columns + b / g->per_column];
            *cell = PKI_MAX(*cell, v);
        }
    }
    bool ok = cells && scratch && put_cells(to, key, cells, g->rows * g->columns);
    free(scratch);
    free(cells);
    return ok;
}

/* ---- what rows and columns are of ---- */

static uint64_t last_step(const grid *g)
{
    size_t block = g->loop->block_count - 1;
    double steps = 1;
    for (size_t r = 0; r < g->of->rank_count; r++)
        steps = PKI_MAX(steps, g->loop->steps[pki_job_cell(g->of, block, r)]);
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

static size_t latest_of(const pki_job_lateness *l, size_t from, size_t to)
{
    size_t latest = from;
    for (size_t r = from + 1; r < to; r++)
        latest = l->by[r] > l->by[latest] || isnan(l->by[latest]) ? r : latest;
    return latest;
}

/* Of each row its first rank, its last one and its latest. */
static void put_rows(pki_json *to, const grid *g, const pki_job_lateness *l)
{
    const pki_job_rank *ranks = g->of->ranks;
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

static bool put_heat(const pki_job_findings *f, const char *key, pki_json *to)
{
    grid g = {.of = f->of, .loop = pki_job_usual(f->of), .by_work = f->lateness.by_work};
    if (!g.loop)
        return true;
    g.per_row = ceiling(f->of->rank_count, HEIGHT_MOST);
    g.per_column = ceiling(g.loop->block_count, BLOCKS_MOST);
    g.rows = ceiling(f->of->rank_count, g.per_row);
    g.columns = ceiling(g.loop->block_count, g.per_column);
    pki_json_open(to, key, '{');
    pki_json_uint(to, "ranks_per_row", g.per_row);
    pki_json_uint(to, "blocks_per_column", g.per_column);
    pki_json_bool(to, "by_work", g.by_work);
    put_columns(to, &g);
    put_rows(to, &g, &f->lateness);
    bool ok = put_figures(to, "step", &g, step_figure) && put_figures(to, "own", &g, own_figure);
    pki_json_close(to, '}');
    return ok;
}

/* ---- who talks to whom, for the page ---- */

/* Senders x receivers. Beyond MATRIX_MOST ranks a cell is of a block of them, and has the sum
 * of what they sent. */

typedef struct cell {
    double messages, bytes;
} cell;

static cell *cells_of(const pki_job_exchange *e, size_t per_block, size_t blocks)
{
    cell *cells = pki_array_zeroed(blocks * blocks, sizeof *cells);
    for (size_t i = 0; cells && i < e->pair_count; i++) {
        const pki_job_pair *p = &e->pairs[i];
        cell *to = &cells[p->from / per_block * blocks + p->to / per_block];
        to->messages += p->messages;
        to->bytes += p->bytes;
    }
    return cells;
}

/* The first and the last rank of each. */
static void put_ranks(const pki_job *j, size_t per_block, pki_json *to)
{
    pki_json_open(to, "ranks", '[');
    for (size_t r = 0; r < j->rank_count; r += per_block) {
        size_t last = PKI_MIN(r + per_block, j->rank_count) - 1;
        pki_json_open(to, NULL, '[');
        pki_json_int(to, NULL, j->ranks[r].rank);
        pki_json_int(to, NULL, j->ranks[last].rank);
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
}

static bool put_matrix(const pki_job_findings *f, const char *key, pki_json *to)
{
    const pki_job *j = f->of;
    size_t per_block = (j->rank_count + MATRIX_MOST - 1) / MATRIX_MOST;
    if (!f->exchange.pair_count)
        return true;
    size_t blocks = (j->rank_count + per_block - 1) / per_block;
    cell *cells = cells_of(&f->exchange, per_block, blocks);
    if (!cells)
        return false;
    pki_json_open(to, key, '{');
    pki_json_uint(to, "ranks_per_block", per_block);
    put_ranks(j, per_block, to);
    pki_json_open(to, "cells", '[');
    for (size_t i = 0; i < blocks * blocks; i++) {
        if (!(cells[i].messages > 0))
            continue;
        pki_json_open(to, NULL, '[');
        pki_json_uint(to, NULL, i / blocks);
        pki_json_uint(to, NULL, i % blocks);
        pki_json_real(to, NULL, cells[i].messages);
        pki_json_real(to, NULL, cells[i].bytes);
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
    pki_json_close(to, '}');
    free(cells);
    return true;
}

/* ---- what the page of a job holds: its JSON, and what is drawn beside it ---- */

/* ---- the latest ranks ---- */

typedef struct ordered {
    double by;
    size_t at;
} ordered;

static int most_first(const void *x, const void *y)
{
    const ordered *a = x, *b = y;
    if (a->by != b->by)
        return a->by < b->by ? 1 : -1;
    return (a->at > b->at) - (a->at < b->at);
}

static int by_place(const void *x, const void *y)
{
    const size_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* The places of the `most` largest values, in order; NULL without memory. */
static size_t *largest(ordered *all, size_t count, size_t most)
{
    size_t *out = pki_array_zeroed(most, sizeof *out);
    if (!out)
        return NULL;
    qsort(all, count, sizeof *all, most_first);
    for (size_t i = 0; i < most; i++)
        out[i] = all[i].at;
    qsort(out, most, sizeof *out, by_place);
    return out;
}

static size_t *latest_ranks(const pki_job_findings *f, size_t most)
{
    size_t count = f->of->rank_count;
    ordered *all = pki_array_zeroed(count, sizeof *all);
    for (size_t r = 0; all && r < count; r++)
        all[r] = (ordered){isnan(f->lateness.by[r]) ? -1 : f->lateness.by[r], r};
    size_t *out = all ? largest(all, count, most) : NULL;
    free(all);
    return out;
}

/* ---- where files are, seen from the page ---- */

static bool folder_of(const char *path, char *folder)
{
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 1;
    if (length >= sizeof name)
        return false;
    memcpy(name, slash ? path : ".", length);
    name[length] = '\0';
    return realpath(name, folder) != NULL;
}

static void end_with_slash(char *folder)
{
    size_t length = strlen(folder);
    if (length && folder[length - 1] != '/')
        memcpy(folder + length, "/", 2);
}

/* "", "../", "../../runs/": what stands before a relative path of a file; NULL without memory. */
static char *base_of(const char *path)
{
    char page[PATH_MAX + 1], here[PATH_MAX + 1];
    if (strcmp(path, "-") == 0 || !getcwd(here, PATH_MAX) || !folder_of(path, page))
        return strdup("");
    end_with_slash(page);
    end_with_slash(here);
    size_t common = 0;
    for (size_t i = 0; page[i] && page[i] == here[i]; i++)
        common = page[i] == '/' ? i + 1 : common;
    char *out = pki_array_zeroed(3 * strlen(page) + strlen(here) + 1, 1), *to = out;
    if (!out)
        return NULL;
    for (const char *p = page + common; *p; p++)
        if (*p == '/') {
            memcpy(to, "../", 3);
            to += 3;
        }
    memcpy(to, here + common, strlen(here + common) + 1);
    return out;
}

bool pki_job_page_of(pki_job_page *p, const pki_job_findings *f, const char *path)
{
    *p = (pki_job_page){.found = f, .base = base_of(path)};
    p->rank_count = PKI_MIN(f->of->rank_count, (size_t)RANKS_MOST);
    p->ranks = latest_ranks(f, p->rank_count);
    return p->base && p->ranks;
}

void pki_job_page_finish(pki_job_page *p)
{
    free(p->base);
    free(p->ranks);
}

/* ---- what a rank did, for each that is listed ---- */

/* ns; null: it does not have that. */
static void put_ns(pki_json *to, double ns)
{
    if (ns < 0)
        pki_json_real(to, NULL, NAN);
    else
        pki_json_uint(to, NULL, (uint64_t)(ns + 0.5));
}

static size_t most_of(const pki_job_page *p, size_t count)
{
    size_t most = CELLS_MOST / PKI_MAX(p->rank_count, 1);
    return PKI_MIN(count, PKI_MIN(most, (size_t)ROWS_MOST));
}

/* The stages with the most time, as places; NULL without memory. */
static size_t *longest_stages(const pki_job *j, const pki_job_loop *loop, size_t most)
{
    ordered *all = pki_array_zeroed(j->stage_count, sizeof *all);
    for (size_t k = 0; all && k < j->stage_count; k++)
        all[k] = (ordered){pki_job_spread_of_stage(j, loop, k).mean_all, k};
    size_t *out = all ? largest(all, j->stage_count, most) : NULL;
    free(all);
    return out;
}

static bool put_stages(const pki_job_page *p, pki_json *to)
{
    const pki_job *j = p->found->of;
    const pki_job_loop *loop = pki_job_usual(j);
    size_t most = loop ? most_of(p, j->stage_count) : 0;
    size_t *stages = most ? longest_stages(j, loop, most) : NULL;
    if (most && !stages)
        return false;
    pki_json_open(to, "stages", '[');
    for (size_t k = 0; k < most; k++)
        pki_json_uint(to, NULL, stages[k]);
    pki_json_close(to, ']');
    pki_json_open(to, "rank_stages", '[');
    for (size_t i = 0; i < p->rank_count; i++) {
        pki_json_open(to, NULL, '[');
        for (size_t k = 0; k < most; k++)
            put_ns(to, pki_job_stage_of_rank(loop, stages[k], p->ranks[i]));
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
    free(stages);
    return true;
}

/* Of the first regions of the list. */
static void put_regions(const pki_job_page *p, pki_json *to)
{
    const pki_job *j = p->found->of;
    size_t most = most_of(p, j->region_count);
    pki_json_open(to, "rank_regions", '[');
    for (size_t i = 0; i < p->rank_count; i++) {
        pki_json_open(to, NULL, '[');
        for (size_t k = 0; k < most; k++)
            put_ns(to, pki_job_self_of_rank(&j->ranks[p->ranks[i]], &j->regions[k]));
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
}

/* How many there are of what may be listed in part. */
static void put_totals(const pki_job_findings *f, pki_json *to)
{
    size_t late = 0;
    for (size_t i = 0; i < f->lateness.count; i++)
        late += !f->lateness.late[i].host;
    pki_json_open(to, "totals", '{');
    pki_json_bool(to, "judged", !f->lateness.why_not);
    pki_json_uint(to, "late", late);
    pki_json_uint(to, "stages", f->of->stage_count);
    pki_json_uint(to, "loops", f->of->loop_count);
    pki_json_uint(to, "regions", f->of->region_count);
    pki_json_uint(to, "communicators", f->links.comm_count);
    pki_json_uint(to, "operations", f->links.operation_count);
    pki_json_uint(to, "missing", f->missing_count);
    pki_json_uint(to, "cut_off", f->cut_count);
    pki_json_uint(to, "notes", f->of->notes.count);
    pki_json_close(to, '}');
}

int pki_job_page_job(const void *page, FILE *file)
{
    const pki_job_page *p = page;
    const pki_job_json_most most = {ROWS_MOST, LOOPS_MOST, RANKS_MOST, p->ranks, p->rank_count};
    pki_json to = {.file = file};
    pki_json_open(&to, NULL, '{');
    pki_json_text(&to, "format", PKI_JOB_FORMAT);
    pki_json_uint(&to, "schema", PKI_JOB_SCHEMA);
    bool ok = pki_job_json_members(&to, p->found, &most);
    if (p->against)
        pki_against_json(p->against, p->other, ROWS_MOST, &to);
    pki_json_close(&to, '}');
    return ok ? 0 : -ENOMEM;
}

int pki_job_page_drawn(const void *page, FILE *file)
{
    const pki_job_page *p = page;
    pki_json to = {.file = file};
    pki_json_open(&to, NULL, '{');
    pki_json_text(&to, "base", p->base);
    bool ok = pki_job_json_grouped_verdicts(&to, p->found);
    put_totals(p->found, &to);
    ok &= put_heat(p->found, "heat", &to);
    ok &= put_matrix(p->found, "matrix", &to);
    ok &= put_stages(p, &to);
    put_regions(p, &to);
    pki_json_close(&to, '}');
    return ok ? 0 : -ENOMEM;
}
