#include "measure/steps/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "core/seats.h"
#include "measure/steps/cut.h"
#include "measure/steps/stages.h"
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

/* ---- what each stage of the loop took: blocks, growing, then halving ---- */

#define PKI_STAGES_KEPT 256 /* different ones; of those that come later nothing is known */

static void pki_stages_finish(pki_stages *s)
{
    for (size_t i = 0; i < s->room; i++)
        free(s->selves[i]);
    free(s->selves);
    free(s->blocks);
    *s = (pki_stages){0};
}

static void join_blocks(pki_stage_block *into, const pki_stage_block *from)
{
    into->steps += from->steps;
    into->time += from->time;
    into->items += from->items;
    into->no_processor += from->no_processor;
    into->told += from->told;
    pki_seats_join(&into->seats, &from->seats);
}

/* The first `alone` (0 or 1) of them stays as it is. */
static void halve_numbers(uint64_t *numbers, size_t used, size_t alone)
{
    for (size_t i = alone; i < used; i++) {
        size_t to = (i + alone) / 2;
        numbers[to] = (i + alone) % 2 ? numbers[to] + numbers[i] : numbers[i];
    }
    memset(numbers + used / 2 + alone, 0, (PKI_STAGE_BLOCKS - used / 2 - alone) * sizeof *numbers);
}

/* They are full: an even number. Steps that do not begin with 0 are joined as on ranks whose do. */
static void halve(pki_stages *s)
{
    size_t alone = s->blocks[0].index / s->stride % 2, used = s->used;
    for (size_t i = alone; i < used; i++) {
        size_t to = (i + alone) / 2;
        if ((i + alone) % 2)
            join_blocks(&s->blocks[to], &s->blocks[i]);
        else
            s->blocks[to] = s->blocks[i];
    }
    for (size_t id = 0; id < s->room; id++)
        if (s->selves[id])
            halve_numbers(s->selves[id], used, alone);
    s->used = used / 2 + alone;
    s->inside = alone ? s->stride : 2 * s->stride; /* the last one is half a block */
    s->stride *= 2;
}

/* The block that is added to, a new one if need be. */
static pki_stage_block *next_block(pki_stages *s, const pki_stage_block *block)
{
    if (!s->blocks && !(s->blocks = calloc(PKI_STAGE_BLOCKS, sizeof *s->blocks)))
        return NULL;
    s->stride = PKI_MAX(s->stride, 1);
    if (s->used == PKI_STAGE_BLOCKS && s->inside == s->stride)
        halve(s);
    if (s->used == 0 || s->inside == s->stride) {
        s->blocks[s->used++] = (pki_stage_block){.index = block->index, .start = block->start};
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

/* A step, or several that are known together only. */
static void pki_stages_add(pki_stages *s, const pki_stage_block *block, const pki_step_bit *bits,
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
    pki_steps *steps = pki_mem_zeroed(sizeof *steps);
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

/* A copy with bits of its own; with none where there is no memory for them. */
static pki_whole_step pki_whole_step_copy(const pki_whole_step *whole)
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

/* Into the slowest ones, slowest first, if it is one of them. */
static void pki_slowest_keep(pki_whole_step *slow, size_t *count, const pki_whole_step *whole)
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
                             .start = whole->step.start,
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

/* Those of that kind. The last place is for all kinds that come when there is no other. NULL
 * without memory. */
static pki_step_others *pki_steps_of_kind(pki_steps *steps, const char *kind)
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

/* ---- cutting ---- */

static size_t count_regions(const pki_steps *steps)
{
    size_t count = 0;
    for (size_t i = 0; i < steps->region_room; i++)
        count += steps->regions[i] && steps->regions[i]->self.moments.count > 0;
    return count;
}

/* Their names, before anything is moved. */
static bool copy_kinds(const pki_steps *steps, pki_steps_part *part)
{
    bool fits = true;
    for (size_t i = 0; fits && i < steps->other_count; i++) {
        if (steps->others[i].totals.durations.moments.count == 0)
            continue;
        part->others[part->other_count].kind = strdup(steps->others[i].kind);
        fits = part->others[part->other_count++].kind;
    }
    return fits;
}

static bool make_room(const pki_steps *steps, pki_steps_part *part)
{
    size_t regions = count_regions(steps), head = steps->head_count - steps->before.head_count;
    *part = (pki_steps_part){.span = steps->span};
    part->regions = calloc(regions + 1, sizeof *part->regions);
    part->head = calloc(head + 1, sizeof *part->head);
    part->slow = calloc(PKI_STEPS_SLOWEST, sizeof *part->slow);
    part->others = calloc(PKI_STEP_KINDS, sizeof *part->others);
    return part->regions && part->head && part->slow && part->others && copy_kinds(steps, part);
}

/* Without memory the run's figures lack these samples, as they do where a sample is refused. */
static void move(pki_tally *before, pki_tally *since, pki_tally *out)
{
    pki_tally_merge(before, since);
    *out = *since;
    *since = (pki_tally){0};
}

static void move_regions(pki_steps *steps, pki_steps_part *part)
{
    for (uint32_t id = 0; id < steps->region_room; id++) {
        pki_step_region *region = steps->regions[id];
        if (!region || region->self.moments.count == 0)
            continue;
        pki_steps_part_region *to = &part->regions[part->region_count++];
        to->id = id;
        to->kind = region->kind;
        move(&region->before, &region->self, &to->self);
    }
}

static void move_totals(pki_step_totals *before, pki_step_totals *since, pki_step_totals *out)
{
    pki_step_totals_merge(before, since);
    *out = *since;
    *since = (pki_step_totals){0};
}

static void move_others(pki_steps *steps, pki_steps_part *part)
{
    size_t at = 0;
    for (size_t i = 0; i < steps->other_count; i++)
        if (steps->others[i].totals.durations.moments.count)
            move_totals(&steps->others[i].before, &steps->others[i].totals,
                        &part->others[at++].totals);
    move_totals(&steps->before.between, &steps->between, &part->between);
}

static void move_tail(pki_steps *steps, pki_steps_part *part)
{
    move_totals(&steps->before.tail, &steps->tail, &part->tail);
    move(&steps->before.tail_untracked, &steps->tail_untracked, &part->untracked);
    move(&steps->before.late_warmup, &steps->late_warmup, &part->late_warmup);
    for (size_t i = 0; i < steps->slow_count; i++)
        pki_slowest_keep(steps->before.slow, &steps->before.slow_count, &steps->slow[i]);
    memcpy(part->slow, steps->slow, sizeof steps->slow);
    part->slow_count = steps->slow_count;
    steps->slow_count = 0;
}

bool pki_steps_cut(pki_steps *steps, pki_steps_part *part)
{
    if (!make_room(steps, part)) {
        pki_steps_part_finish(part);
        return false;
    }
    while (steps->before.head_count < steps->head_count)
        part->head[part->head_count++] =
            pki_whole_step_copy(&steps->head[steps->before.head_count++]);
    move_tail(steps, part);
    move_regions(steps, part);
    move_others(steps, part);
    steps->span = (pki_steps_span){0};
    return true;
}

void pki_steps_part_finish(pki_steps_part *part)
{
    for (size_t i = 0; i < part->head_count; i++)
        free(part->head[i].bits);
    for (size_t i = 0; i < part->slow_count; i++)
        free(part->slow[i].bits);
    for (size_t i = 0; i < part->region_count; i++)
        pki_tally_finish(&part->regions[i].self);
    for (size_t i = 0; i < part->other_count; i++) {
        free(part->others[i].kind);
        pki_tally_finish(&part->others[i].totals.durations);
    }
    free(part->others);
    pki_tally_finish(&part->between.durations);
    free(part->head);
    free(part->slow);
    free(part->regions);
    pki_tally_finish(&part->late_warmup);
    pki_tally_finish(&part->tail.durations);
    pki_tally_finish(&part->untracked);
    *part = (pki_steps_part){0};
}

/* ---- joining ---- */

static void join_head_step(pki_steps *steps, const pki_whole_step *whole)
{
    for (size_t i = 0; i < whole->bit_count; i++) {
        const pki_step_bit *bit = &whole->bits[i];
        pki_step_region *region = pki_steps_region(steps, bit->id, PK_OTHER);
        pki_steps_add_self(steps, bit->id, region ? region->kind : PK_OTHER, bit->self);
    }
    /* As they were: of bits that found no memory the kinds are still known. */
    memcpy(steps->kinds, whole->kinds, sizeof steps->kinds);
    pki_steps_add(steps, &whole->step);
}

static bool join_regions(pki_steps *steps, const pki_steps_part *part)
{
    bool fits = true;
    for (size_t i = 0; fits && i < part->region_count; i++) {
        const pki_steps_part_region *from = &part->regions[i];
        pki_step_region *region = pki_steps_region(steps, from->id, from->kind);
        fits = region && pki_tally_merge(&region->before, &from->self);
    }
    return fits;
}

static bool join_others(pki_steps *steps, const pki_steps_part *part)
{
    bool fits = true;
    for (size_t i = 0; fits && i < part->other_count; i++) {
        pki_step_others *others = pki_steps_of_kind(steps, part->others[i].kind);
        fits = others && pki_step_totals_merge(&others->before, &part->others[i].totals);
    }
    return fits && pki_step_totals_merge(&steps->before.between, &part->between);
}

static uint64_t ns_of(double ns)
{
    return ns > 0 && ns < 0x1p63 ? (uint64_t)ns : 0;
}

/* The steps of the tail are known together only: they are one block. */
static void join_stages(pki_steps *steps, const pki_steps_part *part)
{
    const pki_step_totals *tail = &part->tail;
    pki_stage_block block = {.index = part->span.first + part->head_count,
                             .steps = tail->durations.moments.count,
                             .time = ns_of(pki_moments_sum(&tail->durations.moments)),
                             .items = tail->items,
                             .start = UINT64_MAX};
    pki_step_bit *bits = calloc(part->region_count + 1, sizeof *bits);
    for (size_t i = 0; bits && i < part->region_count; i++)
        bits[i] = (pki_step_bit){part->regions[i].id,
                                 ns_of(pki_moments_sum(&part->regions[i].self.moments))};
    if (bits && block.steps)
        pki_stages_add(&steps->stages, &block, bits, part->region_count);
    free(bits);
}

bool pki_steps_join(pki_steps *steps, const pki_steps_part *part)
{
    pki_steps_before *before = &steps->before;
    for (size_t i = 0; i < part->head_count; i++)
        join_head_step(steps, &part->head[i]);
    join_stages(steps, part);
    steps->count += part->span.count - part->head_count;
    steps->serial += part->span.all + part->between.durations.moments.count;
    for (size_t i = 0; i < part->slow_count; i++)
        pki_slowest_keep(before->slow, &before->slow_count, &part->slow[i]);
    return pki_step_totals_merge(&before->tail, &part->tail) &&
           pki_tally_merge(&before->tail_untracked, &part->untracked) &&
           pki_tally_merge(&before->late_warmup, &part->late_warmup) && join_regions(steps, part) &&
           join_others(steps, part);
}

void pki_steps_without_beginning(pki_steps *steps)
{
    steps->no_beginning = true;
}

bool pki_steps_part_durations(const pki_steps_part *part, pki_tally *out)
{
    bool fits = true;
    *out = (pki_tally){0};
    for (size_t i = 0; fits && i < part->head_count; i++)
        fits = pki_tally_add(out, (double)part->head[i].step.duration, 1);
    return fits && pki_tally_merge(out, &part->late_warmup) &&
           pki_tally_merge(out, &part->tail.durations);
}

static void add_totals(const pki_step_totals *totals, uint64_t *items, uint64_t *kinds)
{
    *items += totals->items;
    for (int k = 0; k < PKI_SHARES; k++)
        kinds[k] += totals->kinds[k];
}

void pki_steps_so_far(const pki_steps *steps, uint64_t *items, uint64_t kinds[PKI_SHARES])
{
    add_totals(&steps->before.tail, items, kinds);
    add_totals(&steps->tail, items, kinds);
    for (size_t i = 0; i < steps->other_count; i++) {
        add_totals(&steps->others[i].before, items, kinds);
        add_totals(&steps->others[i].totals, items, kinds);
    }
    for (size_t i = 0; i < steps->head_count; i++) {
        *items += steps->head[i].step.items;
        for (int k = 0; k < PKI_SHARES; k++)
            kinds[k] += steps->head[i].kinds[k];
    }
}

pki_step_work pki_steps_work_so_far(const pki_steps *steps)
{
    pki_step_work all = steps->before.tail.work;
    pki_step_work_add(&all, &steps->tail.work);
    for (size_t i = 0; i < steps->head_count; i++)
        pki_step_work_add(&all, &steps->head[i].step.work);
    return all;
}
