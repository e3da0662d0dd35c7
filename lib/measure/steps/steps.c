#include "measure/steps/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "stats/series.h"

/* ---- a training loop in numbers, whatever its length ---- */

/* ---- where in time a range of steps lies, for those who record only then ---- */

static pki_step_watch watch;

void pki_step_watch_start(uint64_t first, uint64_t last)
{
    watch = (pki_step_watch){.first = first,
                             .last = last,
                             .begin_ns = first == 0 ? 0 : PKI_NOT_YET,
                             .end_ns = PKI_NOT_YET};
}

/* Steps may be missing, where a ring was full. */
void pki_step_watch_see(uint64_t index, uint64_t start_ns, uint64_t duration_ns)
{
    uint64_t end_ns = start_ns + duration_ns;
    watch.usual_ns = watch.usual_ns ? (3 * watch.usual_ns + duration_ns) / 4 : duration_ns;
    watch.next = index + 1;
    watch.next_ns = end_ns;
    if (watch.begin_ns == PKI_NOT_YET && index + 1 >= watch.first)
        watch.begin_ns = index >= watch.first ? start_ns : end_ns;
    if (watch.end_ns == PKI_NOT_YET && index >= watch.last)
        watch.end_ns = index == watch.last ? end_ns : start_ns;
}

void pki_step_watch_wait(uint64_t begin_ns)
{
    watch.next_ns = begin_ns;
}

pki_step_watch pki_step_watch_now(void)
{
    return watch;
}

uint64_t pki_step_watch_expect(const pki_step_watch *w)
{
    uint64_t ahead = w->next < w->first ? w->first - w->next : 0;
    if (w->begin_ns != PKI_NOT_YET)
        return w->begin_ns;
    if (w->usual_ns == 0 || ahead > (UINT64_MAX - w->next_ns) / w->usual_ns - 1)
        return PKI_NOT_YET;
    return w->next_ns + ahead * w->usual_ns;
}

/* ---- where a training loop's warm-up ends ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

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

/* ---- portions ---- */

void pki_portions_expect(pki_portions *p, uint64_t every)
{
    if (p->every == every)
        return;
    *p = (pki_portions){.every = every};
}

/* One in which no usual step was is none. */
static void close_portion(pki_portions *p)
{
    if (p->open && p->now.steps) {
        if (p->count == PKI_PORTIONS_KEPT)
            memmove(p->whole, p->whole + 1, --p->count * sizeof *p->whole);
        p->whole[p->count++] = p->now;
    }
    p->open = false;
}

void pki_portions_reach(pki_portions *p, uint64_t index)
{
    if (!p->every || (p->open && p->now.number == index / p->every))
        return;
    close_portion(p);
    p->now = (pki_portion){.number = index / p->every};
    p->open = true;
}

static size_t index_of_stage(pki_portions *p, uint32_t id, uint32_t kind)
{
    for (size_t i = 0; i < p->stage_count; i++)
        if (p->ids[i] == id)
            return i;
    if (p->stage_count == PKI_PORTION_OWN)
        return kind == PK_COMM || kind == PK_WAIT ? PKI_PORTION_WAITS : PKI_PORTION_OWN;
    p->ids[p->stage_count] = id;
    p->kinds[p->stage_count] = kind;
    return p->stage_count++;
}

void pki_portions_add_self(pki_portions *p, uint32_t id, uint32_t kind, uint64_t self)
{
    if (p->every)
        p->now.selves[index_of_stage(p, id, kind)] += self;
}

void pki_portions_add(pki_portions *p, const pki_stage_block *step)
{
    if (!p->every)
        return;
    p->now.steps += step->steps;
    p->now.time += step->time;
    p->now.items += step->items;
    p->now.no_processor += step->no_processor;
    p->now.told += step->told;
    pki_seats_join(&p->now.seats, &step->seats);
    if ((step->index + 1) % p->every == 0)
        close_portion(p);
}

bool pki_portions_pop(pki_portions *p, pki_portion *out)
{
    if (!p->count)
        return false;
    *out = p->whole[0];
    memmove(p->whole, p->whole + 1, --p->count * sizeof *p->whole);
    return true;
}

/* ---- a training loop in numbers, whatever its length ---- */

/* What the head may keep: a loop with very many regions closes it early, but not before the longest
 * warm-up that can be found. */
#define HEAD_BITS_MOST (1u << 20)

pki_steps *pki_steps_create(void)
{
    pki_steps *steps = calloc(1, sizeof *steps);
    if (steps)
        steps->serial = 1;
    return steps;
}

void pki_steps_destroy(pki_steps *steps)
{
    if (!steps)
        return;
    for (size_t i = 0; i < steps->head_count; i++)
        free(steps->head[i].bits);
    for (size_t i = 0; i < steps->slow_count; i++)
        free(steps->slow[i].bits);
    for (size_t i = 0; i < steps->before.slow_count; i++)
        free(steps->before.slow[i].bits);
    for (size_t i = 0; i < steps->region_room; i++)
        if (steps->regions[i]) {
            pki_tally_finish(&steps->regions[i]->self);
            pki_tally_finish(&steps->regions[i]->before);
            free(steps->regions[i]);
        }
    for (size_t i = 0; i < steps->other_count; i++) {
        free(steps->others[i].kind);
        pki_stages_finish(&steps->others[i].stages);
        pki_tally_finish(&steps->others[i].totals.durations);
        pki_tally_finish(&steps->others[i].before.durations);
    }
    pki_tally_finish(&steps->between.durations);
    pki_tally_finish(&steps->before.between.durations);
    free(steps->regions);
    free(steps->bits);
    pki_tally_finish(&steps->late_warmup);
    pki_tally_finish(&steps->tail.durations);
    pki_tally_finish(&steps->tail_untracked);
    pki_tally_finish(&steps->before.late_warmup);
    pki_tally_finish(&steps->before.tail.durations);
    pki_tally_finish(&steps->before.tail_untracked);
    pki_series_finish(&steps->series.rows);
    pki_stages_finish(&steps->stages);
    free(steps);
}

void pki_steps_expect_warmup(pki_steps *steps, uint32_t warmup_steps)
{
    if (steps && steps->count == 0)
        steps->expected_warmup = warmup_steps;
}

pki_step_region *pki_steps_region(pki_steps *steps, uint32_t id, uint32_t kind)
{
    if (id >= PKI_STEPS_IDS || !pki_array_fit(&steps->regions, &steps->region_room, id + (size_t)1,
                                              sizeof *steps->regions))
        return NULL;
    if (!steps->regions[id]) {
        steps->regions[id] = calloc(1, sizeof(pki_step_region));
        if (steps->regions[id])
            steps->regions[id]->kind = kind;
    }
    return steps->regions[id];
}

void pki_steps_add_self(pki_steps *steps, uint32_t region_id, uint32_t kind, uint64_t self_ns)
{
    if (!steps || self_ns == 0)
        return;
    kind = kind < PKI_KINDS ? kind : PK_OTHER;
    steps->kinds[kind] += self_ns;
    pki_step_region *region = pki_steps_region(steps, region_id, kind);
    if (!region)
        return;
    if (region->serial == steps->serial) {
        steps->bits[region->bit].self += self_ns;
        return;
    }
    if (!pki_array_fit(&steps->bits, &steps->bit_room, steps->bit_count + 1, sizeof *steps->bits))
        return;
    region->serial = steps->serial;
    region->bit = steps->bit_count;
    steps->bits[steps->bit_count++] = (pki_step_bit){region_id, self_ns};
}

/* The current step, whole, borrowing its bits. */
static pki_whole_step current_of(const pki_steps *steps, const pki_step *step)
{
    pki_whole_step whole = {.step = *step};
    if (!step->broken_down)
        return whole;
    uint64_t tracked = 0;
    for (int k = 0; k < PKI_KINDS; k++) {
        whole.kinds[k] = steps->kinds[k];
        tracked += steps->kinds[k];
    }
    whole.kinds[PKI_UNTRACKED] = step->duration > tracked ? step->duration - tracked : 0;
    whole.bits = steps->bits;
    whole.bit_count = steps->bit_count;
    return whole;
}

pki_whole_step pki_whole_step_copy(const pki_whole_step *whole)
{
    pki_whole_step copy = *whole;
    copy.bits = whole->bit_count ? malloc(whole->bit_count * sizeof *copy.bits) : NULL;
    if (copy.bits)
        memcpy(copy.bits, whole->bits, whole->bit_count * sizeof *copy.bits);
    else
        copy.bit_count = 0;
    return copy;
}

static bool keep_in_head(pki_steps *steps, const pki_whole_step *whole)
{
    if (steps->head_closed)
        return false;
    steps->head[steps->head_count++] = pki_whole_step_copy(whole);
    steps->head_bits += whole->bit_count;
    steps->head_closed =
        steps->head_count == PKI_STEPS_HEAD ||
        (steps->head_bits > HEAD_BITS_MOST && steps->head_count > 2 * PKI_WARMUP_MOST);
    return true;
}

void pki_slowest_keep(pki_whole_step *slow, size_t *count, const pki_whole_step *whole)
{
    size_t place = *count;
    while (place && slow[place - 1].step.duration < whole->step.duration)
        place--;
    if (place == PKI_STEPS_SLOWEST)
        return;
    if (*count == PKI_STEPS_SLOWEST)
        free(slow[--*count].bits);
    memmove(&slow[place + 1], &slow[place], (*count - place) * sizeof *slow);
    slow[place] = pki_whole_step_copy(whole);
    ++*count;
}

pki_step_work pki_step_work_of(uint64_t duration, double model, double hardware)
{
    return hardware > 0 ? (pki_step_work){1, duration, model, hardware} : (pki_step_work){0};
}

void pki_step_work_add(pki_step_work *work, const pki_step_work *more)
{
    work->steps += more->steps;
    work->time += more->time;
    work->model += more->model;
    work->hardware += more->hardware;
}

static void add_to_totals(pki_step_totals *totals, const pki_whole_step *whole)
{
    pki_tally_add(&totals->durations, (double)whole->step.duration, 1);
    totals->items += whole->step.items;
    pki_step_work_add(&totals->work, &whole->step.work);
    if (!whole->step.broken_down)
        return;
    totals->broken_down++;
    for (int k = 0; k < PKI_SHARES; k++)
        totals->kinds[k] += whole->kinds[k];
}

static void add_to_tail(pki_steps *steps, const pki_whole_step *whole)
{
    add_to_totals(&steps->tail, whole);
    pki_slowest_keep(steps->slow, &steps->slow_count, whole);
    if (!whole->step.broken_down)
        return;
    pki_tally_add(&steps->tail_untracked, (double)whole->kinds[PKI_UNTRACKED], 1);
    for (size_t i = 0; i < whole->bit_count; i++)
        pki_tally_add(&steps->regions[whole->bits[i].id]->self, (double)whole->bits[i].self, 1);
}

static pki_stage_block block_of(const pki_whole_step *whole)
{
    pki_stage_block block = {.index = whole->step.index,
                             .steps = 1,
                             .time = whole->step.duration,
                             .items = whole->step.items,
                             .no_processor = whole->step.no_processor,
                             .told = whole->step.borders_told};
    pki_seats_add_seat(&block.seats, whole->step.seat);
    return block;
}

static void add_to_stages(pki_stages *stages, const pki_whole_step *whole)
{
    pki_stage_block block = block_of(whole);
    pki_stages_add(stages, &block, whole->bits, whole->bit_count);
}

static void add_to_series(pki_steps *steps, const pki_whole_step *whole)
{
    pki_series_row row = {.index = whole->step.index,
                          .start = whole->step.start,
                          .steps = 1,
                          .duration = whole->step.duration,
                          .longest = whole->step.duration,
                          .shortest = whole->step.duration,
                          .items = whole->step.items};
    memcpy(row.kinds, whole->kinds, sizeof row.kinds);
    pki_step_series_add(&steps->series, &row);
}

static void add_to_portions(pki_steps *steps, const pki_whole_step *whole)
{
    pki_stage_block step = block_of(whole);
    for (size_t i = 0; i < whole->bit_count; i++) {
        uint32_t id = whole->bits[i].id;
        pki_portions_add_self(&steps->portions, id, steps->regions[id]->kind, whole->bits[i].self);
    }
    pki_portions_add(&steps->portions, &step);
}

static void add_usual(pki_steps *steps, const pki_whole_step *whole)
{
    add_to_series(steps, whole);
    add_to_stages(&steps->stages, whole);
    add_to_portions(steps, whole);
    if (!keep_in_head(steps, whole)) {
        if (steps->count < steps->expected_warmup)
            pki_tally_add(&steps->late_warmup, (double)whole->step.duration, 1);
        else
            add_to_tail(steps, whole);
    }
    steps->count++;
}

static pki_step_others *find_kind(pki_steps *steps, const char *kind)
{
    for (size_t i = 0; i < steps->other_count; i++)
        if (strcmp(steps->others[i].kind, kind) == 0)
            return &steps->others[i];
    return NULL;
}

pki_step_others *pki_steps_of_kind(pki_steps *steps, const char *kind)
{
    pki_step_others *known = find_kind(steps, kind);
    if (known || steps->other_count == PKI_STEP_KINDS)
        return known ? known : &steps->others[PKI_STEP_KINDS - 1];
    bool last = steps->other_count == PKI_STEP_KINDS - 1;
    pki_step_others *place = &steps->others[steps->other_count];
    place->kind = strdup(last ? "(other kinds)" : kind);
    if (!place->kind)
        return NULL;
    steps->other_count++;
    return place;
}

static void add_other(pki_steps *steps, const pki_whole_step *whole)
{
    pki_step_others *others = pki_steps_of_kind(steps, whole->step.kind);
    if (!others)
        return;
    add_to_totals(&others->totals, whole);
    add_to_stages(&others->stages, whole);
}

static void note_span(pki_steps_span *span, const pki_step *step)
{
    if (span->all++ == 0) {
        span->first = step->index;
        span->start = step->start;
    }
    span->count += !step->kind;
    span->last = step->index;
    span->end = step->start + step->duration;
}

void pki_steps_add(pki_steps *steps, const pki_step *step)
{
    if (!steps)
        return;
    pki_whole_step whole = current_of(steps, step);
    if (!step->between) {
        note_span(&steps->span, step);
        pki_portions_reach(&steps->portions, step->index);
    }
    if (step->between)
        add_to_totals(&steps->between, &whole);
    else if (step->kind)
        add_other(steps, &whole);
    else
        add_usual(steps, &whole);
    steps->serial++;
    steps->bit_count = 0;
    memset(steps->kinds, 0, sizeof steps->kinds);
}

void pki_steps_expect_portions(pki_steps *steps, uint64_t every)
{
    if (steps)
        pki_portions_expect(&steps->portions, every);
}

bool pki_steps_pop_portion(pki_steps *steps, pki_portion *out)
{
    return steps && pki_portions_pop(&steps->portions, out);
}

bool pki_steps_portion_stage(const pki_steps *steps, size_t place, uint32_t *id, uint32_t *kind)
{
    const pki_portions *p = &steps->portions;
    if (place >= p->stage_count)
        return false;
    *id = p->ids[place];
    *kind = p->kinds[place];
    return true;
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

/* ---- where the warm-up ends ---- */

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
                          .items = whole->step.items};
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
