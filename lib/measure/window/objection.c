/* lib/measure/window/objection.c - what a window cannot be, whatever its file says. */
#include <math.h>

#include "measure/window/window.h"

/* What is not finite has been written as null, and read as NaN. */
static bool is_sane(pki_tally *t)
{
    pki_moments *m = &t->moments;
    if (isnan(m->squares.high))
        m->squares = (pki_pair){INFINITY, 0};
    return isfinite(m->first) && isfinite(m->min) && isfinite(m->max) && isfinite(m->apart.high) &&
           isfinite(m->apart.low) && !isnan(m->squares.low);
}

static bool are_rows(const pki_whole_step *steps, size_t count, size_t rows)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < steps[i].bit_count; k++)
            if (steps[i].bits[k].id >= rows)
                return false;
    return true;
}

static bool refers_to_its_rows(const pki_window *w)
{
    const pki_steps_part *part = &w->steps.exact;
    bool known = are_rows(part->head, part->head_count, w->region_count) &&
                 are_rows(part->slow, part->slow_count, w->region_count);
    for (size_t i = 0; known && i < part->region_count; i++)
        known = part->regions[i].id < w->region_count;
    return known;
}

static bool has_sane_tallies(pki_window *w)
{
    pki_steps_part *part = &w->steps.exact;
    bool sane =
        is_sane(&part->tail.durations) && is_sane(&part->untracked) && is_sane(&part->late_warmup);
    sane = is_sane(&part->between.durations) && sane;
    for (size_t i = 0; i < part->other_count; i++)
        sane = is_sane(&part->others[i].totals.durations) && sane;
    for (size_t i = 0; i < part->region_count; i++)
        sane = is_sane(&part->regions[i].self) && sane;
    for (size_t i = 0; i < w->counter_count; i++)
        sane = is_sane(&w->counters[i].exact) && sane;
    return sane;
}

const char *pki_window_objection(pki_window *w)
{
    if (w->end < w->start || w->steps.count < w->steps.exact.head_count)
        return "has times or steps that cannot be";
    if (!refers_to_its_rows(w))
        return "refers to a region that it does not have";
    return has_sane_tallies(w) ? NULL : "has a distribution that is not finite";
}
