#include "measure/steps/stages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "core/seats.h"
#include "measure/steps/cut.h"
#include "measure/steps/steps.h"
#include "measure/summary.h"
#include "stats/series.h"

/* ---- what each stage of the loop took, step by step, in bounded room ---- */

#define PKI_STAGES_TOLD 16 /* those with the most time; others are added up by their kind */
/* Numbers in all that is told, so that the file of a rank stays small. */
#define PKI_STAGE_NUMBERS 1536

typedef struct pki_stages_of {
    const char *kind; /* of steps; NULL: the usual one */
    const pki_stages *stages;
} pki_stages_of;

/* ---- what is told of them ---- */

/* A stage while it is chosen, and its place among those that are told. */
typedef struct candidate {
    uint32_t id, kind;
    const char *name;
    uint64_t total;
} candidate;

typedef struct choice {
    const pki_stages_of *all;
    size_t count, told, blocks_most;
    candidate stages[PKI_STAGES_TOLD + PKI_KINDS]; /* behind those that are told all others */
    uint32_t *places;                              /* by id: from 1; 0: not there */
    uint32_t ids;
    pki_stage_name *name;
    void *user;
} choice;

static uint64_t total_of(const choice *c, uint32_t id)
{
    uint64_t total = 0;
    for (size_t k = 0; k < c->count; k++) {
        const pki_stages *s = c->all[k].stages;
        for (size_t i = 0; id < s->room && s->selves[id] && i < s->used; i++)
            total += s->selves[id][i];
    }
    return total;
}

/* Among the longest, of equal ones the earlier; then the one that has no room any more is left. */
static void consider_place(choice *c, const candidate *next)
{
    size_t least = 0;
    if (c->told < PKI_STAGES_TOLD) {
        c->stages[c->told++] = *next;
        return;
    }
    for (size_t i = 1; i < c->told; i++)
        if (c->stages[i].total <= c->stages[least].total)
            least = i;
    if (c->stages[least].total >= next->total)
        return;
    memmove(&c->stages[least], &c->stages[least + 1], (c->told - 1 - least) * sizeof *c->stages);
    c->stages[c->told - 1] = *next;
}

static const char *others_of(uint32_t kind)
{
    static const char *const names[PKI_KINDS] = {"(others)",     "(other compute)",
                                                 "(other data)", "(other comm)",
                                                 "(other io)",   "(other waits)"};
    return names[kind];
}

static uint32_t index_of_others(choice *c, uint32_t kind)
{
    size_t i = c->told;
    while (i < PKI_STAGES_TOLD + PKI_KINDS && c->stages[i].name && c->stages[i].kind != kind)
        i++;
    c->stages[i].name = others_of(kind);
    c->stages[i].kind = kind;
    return (uint32_t)i + 1;
}

static bool choose(choice *c)
{
    for (size_t k = 0; k < c->count; k++)
        c->ids = (uint32_t)PKI_MAX(c->ids, c->all[k].stages->room);
    c->places = calloc(c->ids + (size_t)1, sizeof *c->places);
    if (!c->places)
        return false;
    for (uint32_t id = 0; id < c->ids; id++) {
        candidate next = {.id = id, .total = total_of(c, id)};
        if (next.total && c->name(c->user, id, &next.name, &next.kind))
            consider_place(c, &next);
    }
    for (size_t i = 0; i < c->told; i++)
        c->places[c->stages[i].id] = (uint32_t)i + 1;
    for (uint32_t id = 0; id < c->ids; id++) {
        candidate other = {0};
        if (!c->places[id] && total_of(c, id) && c->name(c->user, id, &other.name, &other.kind))
            c->places[id] = index_of_others(c, other.kind < PKI_KINDS ? other.kind : PK_OTHER);
    }
    return true;
}

static size_t stages_of(const choice *c)
{
    size_t count = c->told;
    while (count < PKI_STAGES_TOLD + PKI_KINDS && c->stages[count].name)
        count++;
    return count;
}

static bool fill_names(const choice *c, size_t count, pki_stage_summary *out)
{
    out->stages = calloc(count + 1, sizeof *out->stages);
    for (size_t i = 0; out->stages && i < count; i++) {
        out->stages[i] = (pki_stage_row){strdup(c->stages[i].name), c->stages[i].kind};
        out->stage_count = i + 1;
        if (!out->stages[i].name)
            return false;
    }
    return out->stages;
}

static void add_block(const choice *c, const pki_stages *s, size_t i, uint64_t *row)
{
    const pki_stage_block *b = &s->blocks[i];
    if (row[PKI_BLOCK_STEPS] == 0)
        row[PKI_BLOCK_INDEX] = b->index;
    row[PKI_BLOCK_STEPS] += b->steps;
    row[PKI_BLOCK_TIME] += b->time;
    row[PKI_BLOCK_ITEMS] += b->items;
    for (uint32_t id = 0; id < s->room; id++)
        if (s->selves[id] && c->places[id])
            row[PKI_BLOCK_HEAD + c->places[id] - 1] += s->selves[id][i];
}

/* Blocks in rows, as they join when there are too many: `missing` of the first row's are not there,
 * where steps do not begin with 0. */
typedef struct block_rows {
    size_t joined, missing, count;
} block_rows;

static size_t row_of(const block_rows *rows, size_t block)
{
    return (block + rows->missing) / rows->joined;
}

static block_rows rows_of(const pki_stages *s, size_t most)
{
    block_rows rows = {.joined = 1, .count = s->used};
    while (rows.count > most) {
        rows.joined *= 2;
        rows.missing = (size_t)(s->blocks[0].index / s->stride % rows.joined);
        rows.count = row_of(&rows, s->used - 1) + 1;
        if (rows.joined > 2 * PKI_STAGE_BLOCKS) /* two rows at least */
            break;
    }
    return rows;
}

/* Not there where nobody told it of any step: 0 is something else. */
static bool fill_no_processor(const pki_stages *s, const block_rows *rows, pki_loop_row *row)
{
    uint64_t any = 0;
    for (size_t i = 0; i < s->used; i++)
        any += s->blocks[i].told;
    row->no_processor = any ? calloc(rows->count, sizeof *row->no_processor) : NULL;
    row->no_processor_count = row->no_processor ? rows->count : 0;
    for (size_t i = 0; row->no_processor && i < s->used; i++)
        row->no_processor[row_of(rows, i)] += s->blocks[i].no_processor;
    return !any || row->no_processor;
}

/* The same. */
static bool fill_seats(const pki_stages *s, const block_rows *rows, pki_loop_row *row)
{
    pki_seats seats = {0}, any = {0};
    for (size_t i = 0; i < s->used; i++)
        pki_seats_join(&any, &s->blocks[i].seats);
    row->seats = any.all ? calloc(2 * rows->count, sizeof *row->seats) : NULL;
    row->seat_count = row->seats ? 2 * rows->count : 0;
    for (size_t i = 0; row->seats && i < s->used; i++) {
        pki_seats_join(&seats, &s->blocks[i].seats);
        size_t at = row_of(rows, i);
        if (i + 1 < s->used && row_of(rows, i + 1) == at)
            continue;
        pki_seat most = pki_seats_most(&seats);
        row->seats[at * 2] = most ? pki_seat_processor(most) : 0;
        row->seats[at * 2 + 1] = pki_seat_share(most);
        seats = (pki_seats){0};
    }
    return !any.all || row->seats;
}

/* The same. Of a row that of its first block. */
static bool fill_starts(const pki_stages *s, const block_rows *rows, pki_loop_row *row)
{
    for (size_t i = 0; i < s->used; i++)
        if (s->blocks[i].start == UINT64_MAX)
            return true;
    row->starts = calloc(rows->count + 1, sizeof *row->starts);
    row->start_count = row->starts ? rows->count : 0;
    for (size_t i = s->used; row->starts && i-- > 0;)
        row->starts[row_of(rows, i)] = s->blocks[i].start;
    return row->starts;
}

static bool fill_loop(const choice *c, const pki_stages_of *of, uint64_t width, pki_loop_row *row)
{
    const pki_stages *s = of->stages;
    const block_rows rows = rows_of(s, c->blocks_most);
    row->name = strdup(of->kind ? of->kind : "");
    row->numbers = calloc(rows.count * width + 1, sizeof *row->numbers);
    if (!row->name || !row->numbers)
        return false;
    row->number_count = rows.count * width;
    for (size_t i = 0; i < s->used; i++)
        add_block(c, s, i, row->numbers + row_of(&rows, i) * width);
    return fill_no_processor(s, &rows, row) && fill_seats(s, &rows, row) &&
           fill_starts(s, &rows, row);
}

static bool fill(choice *c, pki_stage_summary *out)
{
    size_t stages = stages_of(c), width = PKI_BLOCK_HEAD + stages;
    out->width = width;
    out->loops = calloc(c->count + 1, sizeof *out->loops);
    if (!fill_names(c, stages, out) || !out->loops)
        return false;
    for (size_t k = 0; k < c->count; k++) {
        /* The usual kind has three quarters of the room. */
        size_t others = PKI_MAX(c->count, 2) - 1;
        size_t room = k == 0 ? PKI_STAGE_NUMBERS * 3 / 4 : PKI_STAGE_NUMBERS / 4 / others;
        c->blocks_most = PKI_MAX(room / width, 1);
        out->loop_count = k + 1;
        if (!fill_loop(c, &c->all[k], width, &out->loops[k]))
            return false;
    }
    return true;
}

/* `out` is empty before, and after a failure: without memory. */
static bool pki_stages_fill(const pki_stages_of *all, size_t count, pki_stage_name *name,
                            void *user, pki_stage_summary *out)
{
    choice c = {.all = all, .count = count, .name = name, .user = user};
    *out = (pki_stage_summary){0};
    bool fits = choose(&c) && fill(&c, out);
    free(c.places);
    if (!fits)
        pki_stage_summary_finish(out);
    return fits;
}

/* ---- the stages of the loop, for the summary and from a window ---- */

typedef struct source {
    const pki_steps *steps;
    pki_steps_name *name;
    void *user;
} source;

static bool region_of(void *user, uint32_t id, const char **name, uint32_t *kind)
{
    const source *s = user;
    const pki_step_region *region = id < s->steps->region_room ? s->steps->regions[id] : NULL;
    *name = region ? s->name(s->user, id) : NULL;
    *kind = region ? region->kind : PK_OTHER;
    return *name;
}

/* Into an empty `out`. False without memory: it is empty then. */
static bool pki_steps_fill_stages(const pki_steps *steps, uint64_t warmup, pki_steps_name *name,
                                  void *user, pki_stage_summary *out)
{
    source s = {steps, name, user};
    pki_stages_of all[1 + PKI_STEP_KINDS] = {{NULL, &steps->stages}};
    size_t count = 1;
    for (size_t i = 0; i < steps->other_count; i++)
        all[count++] = (pki_stages_of){steps->others[i].kind, &steps->others[i].stages};
    *out = (pki_stage_summary){0};
    if (!pki_stages_fill(all, count, region_of, &s, out))
        return false;
    out->warmup = warmup;
    return true;
}

/* ---- how the steps went over the run, in bounded room ---- */

typedef struct series_row {
    pki_series_row row; /* but for its median */
    pki_some some;      /* if it is full */
} series_row;

void pki_series_row_join(pki_series_row *row, const pki_series_row *next)
{
    row->steps += next->steps;
    row->duration += next->duration;
    row->items += next->items;
    row->longest = PKI_MAX(row->longest, next->longest);
    row->shortest = PKI_MIN(row->shortest, next->shortest);
    for (int k = 0; k < PKI_SHARES; k++)
        row->kinds[k] += next->kinds[k];
}

/* Two full rows. */
static void join(void *into, const void *from)
{
    series_row *row = into;
    const series_row *next = from;
    row->some = pki_some_join(&row->some, &next->some, row->row.steps);
    pki_series_row_join(&row->row, &next->row);
}

static const pki_series_kind series_steps = {.row_bytes = sizeof(series_row),
                                             .first_room = 64,
                                             .most = PKI_STEP_SERIES_MOST,
                                             .first_stride = 1,
                                             .join = join};

bool pki_step_series_add(pki_step_series *series, const pki_series_row *step)
{
    series_row *at = pki_series_next(&series->rows, &series_steps);
    if (!at)
        return false;
    if (at->row.steps) {
        pki_series_row_join(&at->row, step);
    } else {
        at->row = *step;
        series->last = (pki_medians){0};
    }
    pki_medians_add(&series->last, step->duration);
    if (at->row.steps == series->rows.stride)
        at->some = pki_medians_some(&series->last, series->rows.stride);
    return true;
}

void pki_step_series_rows(const pki_step_series *series, pki_series_row *rows)
{
    const series_row *from = series->rows.rows;
    for (size_t i = 0; i < series->rows.used; i++) {
        rows[i] = from[i].row;
        rows[i].median = rows[i].steps == series->rows.stride
                             ? pki_some_median(&from[i].some, rows[i].steps)
                             : pki_medians_median(&series->last);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_step(const series_row *rows, size_t count)
{
    double times[PKI_STEP_SERIES_MOST / 3];
    for (size_t i = 0; i < count; i++)
        times[i] = (double)rows[i].row.duration / (double)rows[i].row.steps;
    qsort(times, count, sizeof *times, by_size);
    return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

bool pki_step_series_thirds(const pki_step_series *series, uint64_t skip, double *first,
                            double *last)
{
    /* An entry that holds a step to skip is skipped whole. */
    const series_row *rows = series->rows.rows;
    size_t used = series->rows.used, from = 0;
    for (uint64_t passed = 0; from < used && passed < skip; from++)
        passed += rows[from].row.steps;
    size_t left = used - from, third = left / 3;
    if (left < PKI_THIRDS_LEAST)
        return false;
    *first = median_step(rows + from, third);
    *last = median_step(rows + used - third, third);
    return true;
}

/* ---- the steps of a run in parts: what each adds to the run's figures ---- */

bool pki_step_totals_merge(pki_step_totals *into, const pki_step_totals *from)
{
    into->items += from->items;
    into->broken_down += from->broken_down;
    for (int k = 0; k < PKI_SHARES; k++)
        into->kinds[k] += from->kinds[k];
    pki_step_work_add(&into->work, &from->work);
    return pki_tally_merge(&into->durations, &from->durations);
}

/* ---- fill ---- */

/* The steps without the first `warmup`, while they are being summed up. */
typedef struct steady {
    const pki_steps *steps;
    uint64_t warmup;
    pki_tally warm;
    pki_step_totals totals;
    pki_tally untracked;
    pki_tally *selves;    /* by region id, with a 0 for each step without it */
    double tracked_total; /* step time that has a breakdown */
    pki_steps_name *name;
    void *user;
} steady;

/* ---- where a training loop's warm-up ends ---- */

/* Sorts; nearest rank. */
static double quantile_of(double *values, size_t count, double q)
{
    qsort(values, count, sizeof *values, by_size);
    size_t rank = (size_t)ceil(q * (double)count);
    return values[rank ? rank - 1 : 0];
}

static double deviation_of(double *values, size_t count, double median)
{
    for (size_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - median);
    /* 1.4826: from the median absolute deviation to the standard deviation of a normal
     * distribution. */
    return 1.4826 * quantile_of(values, count, 0.5);
}

static double threshold_of(const uint64_t *durations, size_t count)
{
    double values[PKI_WARMUP_KNOWN];
    for (size_t i = 0; i < count; i++)
        values[i] = (double)durations[i];
    double median = quantile_of(values, count, 0.5);
    double high = quantile_of(values, count, 0.9);
    double spread = deviation_of(values, count, median);
    return PKI_MAX(PKI_MAX(1.25 * median, median + 5 * spread), 1.05 * high);
}

uint64_t pki_warmup_find(const uint64_t *durations, size_t known, uint64_t count)
{
    known = PKI_MIN(known, PKI_WARMUP_KNOWN);
    if (count < 2 || known < 2)
        return 0;
    uint64_t most = PKI_MIN(count / 10, PKI_WARMUP_MOST);
    if (most < 2 || known <= most)
        return 1;
    double threshold = threshold_of(durations + most, known - most);
    uint64_t found = 1;
    while (found < most && (double)durations[found] > threshold)
        found++;
    return found;
}

static uint64_t find_warmup(const pki_steps *steps)
{
    uint64_t durations[PKI_STEPS_HEAD];
    for (size_t i = 0; i < steps->head_count; i++)
        durations[i] = steps->head[i].step.duration;
    return pki_warmup_find(durations, steps->head_count, steps->count);
}

static uint64_t warmup_of(const pki_steps *steps, uint64_t given)
{
    uint64_t late = steps->before.late_warmup.moments.count + steps->late_warmup.moments.count;
    if (steps->no_beginning)
        return 0;
    if (late)
        return steps->head_count + late;
    if (given)
        return PKI_MIN(given, steps->head_count);
    return find_warmup(steps);
}

/* ---- sums ---- */

static bool add_head_step(steady *s, const pki_whole_step *whole)
{
    s->totals.items += whole->step.items;
    pki_step_work_add(&s->totals.work, &whole->step.work);
    bool fits = pki_tally_add(&s->totals.durations, (double)whole->step.duration, 1);
    if (!whole->step.broken_down)
        return fits;
    s->totals.broken_down++;
    for (int k = 0; k < PKI_SHARES; k++)
        s->totals.kinds[k] += whole->kinds[k];
    fits = fits && pki_tally_add(&s->untracked, (double)whole->kinds[PKI_UNTRACKED], 1);
    for (size_t i = 0; i < whole->bit_count; i++)
        fits = fits && pki_tally_add(&s->selves[whole->bits[i].id], (double)whole->bits[i].self, 1);
    return fits;
}

/* What was added up before the last cut, and what since. */
static bool merge_tail(steady *s)
{
    const pki_steps *steps = s->steps;
    const pki_steps_before *before = &steps->before;
    bool fits = pki_step_totals_merge(&s->totals, &before->tail) &&
                pki_step_totals_merge(&s->totals, &steps->tail) &&
                pki_tally_merge(&s->untracked, &before->tail_untracked) &&
                pki_tally_merge(&s->untracked, &steps->tail_untracked) &&
                pki_tally_merge(&s->warm, &before->late_warmup) &&
                pki_tally_merge(&s->warm, &steps->late_warmup);
    for (size_t i = 0; i < steps->region_room; i++)
        if (steps->regions[i])
            fits = fits && pki_tally_merge(&s->selves[i], &steps->regions[i]->before) &&
                   pki_tally_merge(&s->selves[i], &steps->regions[i]->self);
    return fits;
}

/* Steps that a region was not in count as 0. */
static bool fill_up(steady *s)
{
    bool fits = true;
    for (size_t i = 0; i < s->steps->region_room; i++) {
        pki_tally *self = &s->selves[i];
        if (self->moments.count && self->moments.count < s->totals.broken_down)
            fits = fits && pki_tally_add(self, 0, s->totals.broken_down - self->moments.count);
    }
    return fits;
}

static bool sum_up(steady *s)
{
    const pki_steps *steps = s->steps;
    s->selves = calloc(PKI_MAX(steps->region_room, 1), sizeof *s->selves);
    if (!s->selves || !merge_tail(s))
        return false;
    for (size_t i = 0; i < steps->head_count; i++) {
        const pki_whole_step *whole = &steps->head[i];
        bool fits = i < s->warmup ? pki_tally_add(&s->warm, (double)whole->step.duration, 1)
                                  : add_head_step(s, whole);
        if (!fits)
            return false;
    }
    for (int k = 0; k < PKI_SHARES; k++)
        s->tracked_total += (double)s->totals.kinds[k];
    return fill_up(s);
}

static void finish(steady *s)
{
    for (size_t i = 0; s->selves && i < s->steps->region_room; i++)
        pki_tally_finish(&s->selves[i]);
    free(s->selves);
    pki_tally_finish(&s->warm);
    pki_tally_finish(&s->totals.durations);
    pki_tally_finish(&s->untracked);
}

/* ---- the slowest steps, and why ---- */

typedef struct suspect {
    uint32_t id, kind;
    uint64_t self;
    double usual;
} suspect;

static void consider(suspect *found, size_t *count, suspect next)
{
    double excess = (double)next.self - next.usual;
    size_t place = *count;
    while (place && (double)found[place - 1].self - found[place - 1].usual < excess)
        place--;
    if (excess <= 0 || place == PKI_STEP_PARTS)
        return;
    size_t moved = PKI_MIN(*count, PKI_STEP_PARTS - 1) - place;
    memmove(&found[place + 1], &found[place], moved * sizeof *found);
    found[place] = next;
    *count = PKI_MIN(*count + 1, PKI_STEP_PARTS);
}

static size_t find_suspects(const steady *s, const pki_whole_step *whole, suspect *found)
{
    size_t count = 0;
    if (!whole->step.broken_down)
        return 0;
    consider(found, &count,
             (suspect){0, PKI_UNTRACKED, whole->kinds[PKI_UNTRACKED],
                       pki_tally_quantile(&s->untracked, 0.5)});
    for (size_t i = 0; i < whole->bit_count; i++) {
        uint32_t id = whole->bits[i].id;
        consider(found, &count,
                 (suspect){id, s->steps->regions[id]->kind, whole->bits[i].self,
                           pki_tally_quantile(&s->selves[id], 0.5)});
    }
    return count;
}

static const char *name_of(const steady *s, uint32_t id, uint32_t kind)
{
    const char *name = kind == PKI_UNTRACKED ? pki_kind_names[kind] : s->name(s->user, id);
    return name ? name : "(unknown)";
}

static bool fill_slow_row(const steady *s, const pki_whole_step *whole, pki_step_row *row)
{
    *row = (pki_step_row){.index = whole->step.index,
                          .start = whole->step.start,
                          .duration = whole->step.duration,
                          .items = whole->step.items,
                          .processor = {.told = whole->step.borders_told,
                                        .ready = whole->step.no_processor,
                                        .off = whole->step.off}};
    memcpy(row->kinds, whole->kinds, sizeof row->kinds);
    suspect found[PKI_STEP_PARTS];
    size_t count = find_suspects(s, whole, found);
    row->parts = calloc(PKI_MAX(count, 1), sizeof *row->parts);
    if (!row->parts)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *name = name_of(s, found[i].id, found[i].kind);
        row->parts[i] = (pki_step_part){strdup(name), found[i].kind, found[i].self, found[i].usual};
        row->part_count = i + 1;
        if (!row->parts[i].name)
            return false;
    }
    return true;
}

static int slower_first(const void *a, const void *b)
{
    const pki_step *x = &(*(const pki_whole_step *const *)a)->step;
    const pki_step *y = &(*(const pki_whole_step *const *)b)->step;
    if (x->duration != y->duration)
        return x->duration < y->duration ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool fill_slowest(const steady *s, pki_step_summary *out)
{
    const pki_whole_step *candidates[PKI_STEPS_HEAD + 2 * PKI_STEPS_SLOWEST];
    size_t count = 0;
    for (size_t i = s->warmup; i < s->steps->head_count; i++)
        candidates[count++] = &s->steps->head[i];
    for (size_t i = 0; i < s->steps->before.slow_count; i++)
        candidates[count++] = &s->steps->before.slow[i];
    for (size_t i = 0; i < s->steps->slow_count; i++)
        candidates[count++] = &s->steps->slow[i];
    qsort(candidates, count, sizeof *candidates, slower_first);
    count = PKI_MIN(count, PKI_STEPS_SLOWEST);
    out->slowest = calloc(PKI_MAX(count, 1), sizeof *out->slowest);
    if (!out->slowest)
        return false;
    for (size_t i = 0; i < count; i++) {
        out->slowest_count = i + 1;
        if (!fill_slow_row(s, candidates[i], &out->slowest[i]))
            return false;
    }
    return true;
}

/* ---- into the summary ---- */

static bool fill_series(const steady *s, pki_step_summary *out)
{
    const pki_step_series *series = &s->steps->series;
    out->series = malloc(PKI_MAX(series->rows.used, 1) * sizeof *out->series);
    if (!out->series)
        return false;
    pki_step_series_rows(series, out->series);
    out->series_count = series->rows.used;
    if (pki_step_series_thirds(series, s->warmup, &out->first_third, &out->last_third) &&
        out->first_third > 0)
        out->drift = out->last_third / out->first_third - 1;
    return true;
}

static bool fill_durations(steady *s, pki_step_summary *out)
{
    out->steady = pki_tally_dist(&s->totals.durations);
    out->warm = pki_tally_dist(&s->warm);
    bool fits = pki_histogram_of_tally(&s->totals.durations, &out->histogram) &&
                pki_tally_merge(&s->warm, &s->totals.durations);
    out->all = pki_tally_dist(&s->warm);
    return fits;
}

/* ---- steps of other kinds, and what lies between steps ---- */

static bool fill_totals(const pki_step_totals *before, const pki_step_totals *since,
                        pki_step_kind_row *row)
{
    pki_step_totals all = {0};
    bool fits = pki_step_totals_merge(&all, before) && pki_step_totals_merge(&all, since);
    *row = (pki_step_kind_row){
        .time = pki_tally_dist(&all.durations), .items = all.items, .broken_down = all.broken_down};
    memcpy(row->kinds, all.kinds, sizeof row->kinds);
    pki_tally_finish(&all.durations);
    return fits;
}

static int most_time_first(const void *a, const void *b)
{
    const pki_step_kind_row *x = a, *y = b;
    if (x->time.sum != y->time.sum)
        return x->time.sum < y->time.sum ? 1 : -1;
    return strcmp(x->name, y->name);
}

static bool fill_kinds(const pki_steps *steps, pki_step_summary *out)
{
    out->step_kinds = calloc(PKI_MAX(steps->other_count, 1), sizeof *out->step_kinds);
    if (!out->step_kinds)
        return false;
    for (size_t i = 0; i < steps->other_count; i++) {
        const pki_step_others *others = &steps->others[i];
        bool fits = fill_totals(&others->before, &others->totals, &out->step_kinds[i]);
        out->step_kind_count = i + 1;
        if (!fits || !(out->step_kinds[i].name = strdup(others->kind)))
            return false;
    }
    qsort(out->step_kinds, out->step_kind_count, sizeof *out->step_kinds, most_time_first);
    return fill_totals(&steps->before.between, &steps->between, &out->between);
}

/* ---- all of it ---- */

static bool fill_steps(steady *s, pki_step_summary *out)
{
    out->count = s->steps->count;
    out->warmup = s->warmup;
    out->items = s->totals.items;
    out->utilisation = (pki_utilisation){.steps = s->totals.work.steps,
                                         .time = s->totals.work.time,
                                         .model = s->totals.work.model,
                                         .hardware = s->totals.work.hardware};
    out->broken_down = s->totals.broken_down;
    memcpy(out->kinds, s->totals.kinds, sizeof out->kinds);
    if (!fill_durations(s, out) || !fill_slowest(s, out) || !fill_series(s, out) ||
        !fill_kinds(s->steps, out))
        return false;
    if (out->steady.sum > 0)
        out->items_per_second = (double)out->items / (out->steady.sum / 1e9);
    return true;
}

static int by_name_and_kind(const void *a, const void *b)
{
    const pki_region_row *x = *(pki_region_row *const *)a, *y = *(pki_region_row *const *)b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->kind > y->kind) - (x->kind < y->kind);
}

static bool fill_regions(const steady *s, pki_summary *out)
{
    pki_region_row **rows = malloc(PKI_MAX(out->region_count, 1) * sizeof(pki_region_row *));
    if (!rows)
        return false;
    for (size_t i = 0; i < out->region_count; i++)
        rows[i] = &out->regions[i];
    qsort(rows, out->region_count, sizeof(pki_region_row *), by_name_and_kind);
    for (uint32_t id = 0; id < s->steps->region_room; id++) {
        if (s->selves[id].moments.count == 0)
            continue;
        pki_region_row key = {.name = (char *)(uintptr_t)name_of(s, id, 0),
                              .kind = s->steps->regions[id]->kind};
        pki_region_row *wanted = &key;
        pki_region_row **row =
            bsearch(&wanted, rows, out->region_count, sizeof(pki_region_row *), by_name_and_kind);
        if (!row)
            continue;
        (*row)->step_self = pki_tally_dist(&s->selves[id]);
        (*row)->step_share =
            s->tracked_total > 0 ? pki_moments_sum(&s->selves[id].moments) / s->tracked_total : 0;
    }
    free(rows);
    return true;
}

bool pki_steps_fill(const pki_steps *steps, uint32_t warmup_steps, pki_steps_name *name, void *user,
                    pki_summary *out)
{
    pki_step_summary_finish(&out->steps);
    pki_stage_summary_finish(&out->stages);
    if (!steps || steps->serial == 1)
        return true;
    uint64_t given = warmup_steps ? warmup_steps : steps->expected_warmup;
    steady s = {.steps = steps, .warmup = warmup_of(steps, given), .name = name, .user = user};
    pki_step_summary filled = {.warmup_given = given != 0};
    bool fits = sum_up(&s) && fill_steps(&s, &filled) && fill_regions(&s, out) &&
                pki_steps_fill_stages(steps, s.warmup, name, user, &out->stages);
    finish(&s);
    if (!fits) {
        pki_step_summary_finish(&filled);
        return false;
    }
    out->steps = filled;
    return true;
}
