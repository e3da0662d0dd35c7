#include "measure/steps/state.h"

#include "base/compiler.h"
#include "stats/series.h"

#include <stdlib.h>
#include <string.h>

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
