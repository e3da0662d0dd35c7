#include "measure/window/complete.h"

#include <stdlib.h>
#include <string.h>

#include "core/names.h"
#include "measure/window/utilisation.h"

/* ---- ids to rows ---- */

/* Rows by id, counted from 1; and how many rows there is room for. */
typedef struct finder {
    pki_window *window;
    uint32_t *rows;
    uint32_t ids;
    size_t room;
} finder;

static bool open_finder(finder *f, pki_window *w)
{
    *f = (finder){.window = w, .ids = pki_name_count(), .room = w->region_count};
    f->rows = calloc(f->ids, sizeof *f->rows);
    for (size_t i = 0; f->rows && i < w->region_count; i++)
        f->rows[w->regions[i].id] = (uint32_t)i + 1;
    return f->rows;
}

/* A step that was cut in two by time has self time of calls that are in the window before. */
static bool add_row(finder *f, uint32_t id)
{
    pki_window *w = f->window;
    if (w->region_count == f->room) {
        size_t room = 2 * f->room + 16;
        pki_window_region *more = realloc(w->regions, room * sizeof *more);
        if (!more)
            return false;
        w->regions = more;
        f->room = room;
    }
    w->regions[w->region_count] = (pki_window_region){.id = id, .kind = pki_name_kind(id)};
    f->rows[id] = (uint32_t)++w->region_count;
    return true;
}

static bool to_row(finder *f, uint32_t *id)
{
    if (!f->rows[*id] && !add_row(f, *id))
        return false;
    *id = f->rows[*id] - 1;
    return true;
}

static bool bits_to_rows(finder *f, pki_whole_step *steps, size_t count)
{
    bool fits = true;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; fits && k < steps[i].bit_count; k++)
            fits = to_row(f, &steps[i].bits[k].id);
    return fits;
}

static bool ids_to_rows(pki_window *w)
{
    finder f;
    pki_steps_part *part = &w->steps.exact;
    bool fits = open_finder(&f, w) && bits_to_rows(&f, part->head, part->head_count) &&
                bits_to_rows(&f, part->slow, part->slow_count);
    for (size_t i = 0; fits && i < part->region_count; i++)
        fits = to_row(&f, &part->regions[i].id);
    free(f.rows);
    return fits;
}

/* ---- the steps ---- */

static void add_head_steps(pki_window_steps *steps)
{
    for (size_t i = 0; i < steps->exact.head_count; i++) {
        const pki_whole_step *whole = &steps->exact.head[i];
        steps->items += whole->step.items;
        steps->broken_down += whole->step.broken_down;
        for (int k = 0; k < PKI_SHARES; k++)
            steps->kinds[k] += whole->kinds[k];
    }
}

static bool complete_steps(pki_window_steps *steps)
{
    pki_tally durations;
    bool fits = pki_steps_part_durations(&steps->exact, &durations);
    const pki_step_totals *tail = &steps->exact.tail;
    steps->count = steps->exact.span.count;
    steps->of_all_kinds = steps->exact.span.all;
    steps->first = steps->exact.span.first;
    steps->last = steps->exact.span.last;
    steps->time = pki_tally_dist(&durations);
    steps->items = tail->items;
    steps->broken_down = tail->broken_down;
    memcpy(steps->kinds, tail->kinds, sizeof steps->kinds);
    add_head_steps(steps);
    pki_window_work(steps);
    if (steps->time.sum > 0)
        steps->items_per_second = (double)steps->items / (steps->time.sum / 1e9);
    pki_tally_finish(&durations);
    return fits;
}

/* Of the steps behind the run's first ones, which stand in `exact` one by one. */
static void complete_selves(pki_window *w)
{
    const pki_steps_part *part = &w->steps.exact;
    for (size_t i = 0; i < part->region_count; i++)
        w->regions[part->regions[i].id].step_self = pki_tally_dist(&part->regions[i].self);
}

/* ---- names ---- */

static bool name_rows(pki_window *w)
{
    bool fits = true;
    for (size_t i = 0; i < w->region_count; i++) {
        const pki_name *name = pki_name_at(w->regions[i].id);
        w->regions[i].name = strndup(name->name, name->length);
        fits = w->regions[i].name && fits;
    }
    for (size_t i = 0; i < w->counter_count; i++) {
        const pki_name *name = pki_name_at(w->counters[i].id);
        w->counters[i].name = strndup(name->name, name->length);
        w->counters[i].unit = strndup(name->key, name->key_length);
        fits = w->counters[i].name && w->counters[i].unit && fits;
    }
    return fits;
}

bool pki_window_complete(pki_window *w)
{
    if (!ids_to_rows(w) || !complete_steps(&w->steps) || !name_rows(w))
        return false;
    complete_selves(w);
    return true;
}
