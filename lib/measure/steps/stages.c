#include "measure/steps/stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "core/seats.h"
#include "measure/steps/steps.h"
#include "measure/summary.h"

/* ---- what each stage of the loop took ---- */

/* ---- what each stage of the loop took, step by step, in bounded room ---- */

#define PKI_STAGE_BLOCKS 128 /* of a kind of steps: a power of two */
#define PKI_STAGES_KEPT 256  /* different ones; of those that come later nothing is known */
#define PKI_STAGES_TOLD 16   /* those with the most time; others are added up by their kind */
/* Numbers in all that is told, so that the file of a rank stays small. */
#define PKI_STAGE_NUMBERS 1536

typedef struct pki_stages_of {
    const char *kind; /* of steps; NULL: the usual one */
    const pki_stages *stages;
} pki_stages_of;

void pki_stages_finish(pki_stages *s)
{
    for (size_t i = 0; i < s->room; i++)
        free(s->selves[i]);
    free(s->selves);
    free(s->blocks);
    *s = (pki_stages){0};
}

/* ---- growing, then halving ---- */

static void join_blocks(pki_stage_block *into, const pki_stage_block *from)
{
    into->steps += from->steps;
    into->time += from->time;
    into->items += from->items;
    into->no_processor += from->no_processor;
    into->told += from->told;
    pki_seats_join(&into->seats, &from->seats);
}

static void halve_numbers(uint64_t *numbers, size_t used)
{
    for (size_t i = 0; i < used / 2; i++)
        numbers[i] = numbers[2 * i] + numbers[2 * i + 1];
    memset(numbers + used / 2, 0, (PKI_STAGE_BLOCKS - used / 2) * sizeof *numbers);
}

/* They are full: an even number. */
static void halve(pki_stages *s)
{
    for (size_t i = 0; i < s->used / 2; i++) {
        s->blocks[i] = s->blocks[2 * i];
        join_blocks(&s->blocks[i], &s->blocks[2 * i + 1]);
    }
    for (size_t id = 0; id < s->room; id++)
        if (s->selves[id])
            halve_numbers(s->selves[id], s->used);
    s->used /= 2;
    s->stride *= 2;
}

/* The block that is added to, a new one if need be. */
static pki_stage_block *next_block(pki_stages *s, const pki_stage_block *block)
{
    if (!s->blocks && !(s->blocks = calloc(PKI_STAGE_BLOCKS, sizeof *s->blocks)))
        return NULL;
    s->stride = PKI_MAX(s->stride, 1);
    if (s->used == 0 || s->inside == s->stride) {
        if (s->used == PKI_STAGE_BLOCKS)
            halve(s);
        s->blocks[s->used++] = (pki_stage_block){.index = block->index};
        s->inside = 0;
    }
    s->inside++;
    return &s->blocks[s->used - 1];
}

static uint64_t *selves_of(pki_stages *s, uint32_t id)
{
    if (id >= s->room && !pki_array_fit(&s->selves, &s->room, id + (size_t)1, sizeof *s->selves))
        return NULL;
    if (!s->selves[id] && s->kept < PKI_STAGES_KEPT) {
        s->selves[id] = calloc(PKI_STAGE_BLOCKS, sizeof **s->selves);
        s->kept += s->selves[id] != NULL;
    }
    return s->selves[id];
}

void pki_stages_add(pki_stages *s, const pki_stage_block *block, const pki_step_bit *bits,
                    size_t count)
{
    pki_stage_block *at = next_block(s, block);
    if (!at)
        return;
    join_blocks(at, block);
    for (size_t i = 0; i < count; i++) {
        uint64_t *selves = selves_of(s, bits[i].id);
        if (selves)
            selves[s->used - 1] += bits[i].self;
    }
}

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
static void consider(choice *c, const candidate *next)
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
            consider(c, &next);
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

/* Block `i` is in row `i / joined`. */
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

/* Not there where nobody told it of any step: 0 is something else. */
static bool fill_no_processor(const pki_stages *s, size_t joined, size_t rows, pki_loop_row *row)
{
    uint64_t any = 0;
    for (size_t i = 0; i < s->used; i++)
        any += s->blocks[i].told;
    row->no_processor = any ? calloc(rows, sizeof *row->no_processor) : NULL;
    row->no_processor_count = row->no_processor ? rows : 0;
    for (size_t i = 0; row->no_processor && i < s->used; i++)
        row->no_processor[i / joined] += s->blocks[i].no_processor;
    return !any || row->no_processor;
}

/* The same. */
static bool fill_seats(const pki_stages *s, size_t joined, size_t rows, pki_loop_row *row)
{
    pki_seats seats = {0}, any = {0};
    for (size_t i = 0; i < s->used; i++)
        pki_seats_join(&any, &s->blocks[i].seats);
    row->seats = any.all ? calloc(2 * rows, sizeof *row->seats) : NULL;
    row->seat_count = row->seats ? 2 * rows : 0;
    for (size_t i = 0; row->seats && i < s->used; i++) {
        pki_seats_join(&seats, &s->blocks[i].seats);
        if ((i + 1) % joined != 0 && i + 1 < s->used)
            continue;
        pki_seat most = pki_seats_most(&seats);
        row->seats[i / joined * 2] = most ? pki_seat_processor(most) : 0;
        row->seats[i / joined * 2 + 1] = pki_seat_share(most);
        seats = (pki_seats){0};
    }
    return !any.all || row->seats;
}

static bool fill_loop(const choice *c, const pki_stages_of *of, uint64_t width, pki_loop_row *row)
{
    const pki_stages *s = of->stages;
    size_t joined = 1;
    while ((s->used + joined - 1) / joined > c->blocks_most)
        joined *= 2;
    size_t rows = (s->used + joined - 1) / joined;
    row->name = strdup(of->kind ? of->kind : "");
    row->numbers = calloc(rows * width + 1, sizeof *row->numbers);
    if (!row->name || !row->numbers)
        return false;
    row->number_count = rows * width;
    for (size_t i = 0; i < s->used; i++)
        add_block(c, s, i, row->numbers + i / joined * width);
    return fill_no_processor(s, joined, rows, row) && fill_seats(s, joined, rows, row);
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

bool pki_steps_fill_stages(const pki_steps *steps, uint64_t warmup, pki_steps_name *name,
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

static void add_to(pki_series_row *row, const pki_series_row *next)
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
    add_to(&row->row, &next->row);
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
        add_to(&at->row, step);
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
