#include "measure/steps/cut.h"

#include <stdlib.h>
#include <string.h>

bool pki_step_totals_merge(pki_step_totals *into, const pki_step_totals *from)
{
    into->items += from->items;
    into->broken_down += from->broken_down;
    for (int k = 0; k < PKI_SHARES; k++)
        into->kinds[k] += from->kinds[k];
    pki_step_work_add(&into->work, &from->work);
    return pki_tally_merge(&into->durations, &from->durations);
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
                             .items = tail->items};
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
