#include "measure/window/seal.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/names.h"
#include "measure/window/difference.h"

#define WAITING_MOST 64u                      /* windows */
#define WAITING_BYTES_MOST ((size_t)16 << 20) /* of them all, about; but one may always wait */

typedef struct waiting {
    struct waiting *next;
    size_t bytes;
    pki_window window;
} waiting;

static struct {
    pki_fold *fold; /* NULL: no windows */
    uint64_t steps, ns;
    uint64_t index, start;
    size_t held_count;
    pki_held *held; /* by id */
    waiting *first, **end;
    size_t count, bytes;
} seal;

/* ---- a window's rows ---- */

static bool any_lost(void)
{
    uint32_t used = 0;
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(seal.fold->registry); i++) {
        const pki_thread *t = pki_registry_block(seal.fold->registry, i);
        used += pki_load(&t->lost.used) + (pki_load(&t->last_resort.count) > 0);
    }
    pki_registry_unlock();
    return used > 0;
}

typedef struct rows {
    pki_window *to;
    size_t region_room, counter_room;
    bool lost;
} rows;

static void add_region(rows *r, uint32_t id, pki_held *h)
{
    pki_window *w = r->to;
    pki_slot *slot = pki_table_slot(&seal.fold->totals, id);
    if (pki_held_is_idle_region(h, slot, r->lost) ||
        !pki_array_fit(&w->regions, &r->region_room, w->region_count + 1, sizeof *w->regions))
        return;
    pki_window_region *row = &w->regions[w->region_count];
    const pki_window_sum *sum = &row->exact;
    if (pki_held_cut_region(h, seal.fold, id, slot, w->last, row) &&
        (sum->count || sum->buckets.used || row->self || row->bytes || row->flops))
        w->region_count++;
    else
        pki_shape_finish(&pki_window_region_shape, row);
}

static void add_counter(rows *r, uint32_t id, pki_held *h)
{
    pki_window *w = r->to;
    pki_values *v = (pki_values *)pki_table_slot(&seal.fold->totals, id);
    if (pki_held_is_idle_counter(h, v, r->lost) ||
        !pki_array_fit(&w->counters, &r->counter_room, w->counter_count + 1, sizeof *w->counters))
        return;
    pki_window_counter *row = &w->counters[w->counter_count];
    if (pki_held_cut_counter(h, seal.fold, id, v, w->last, row) &&
        (row->exact.moments.count || row->exact.used))
        w->counter_count++;
    else
        pki_shape_finish(&pki_window_counter_shape, row);
}

static void add_rows(pki_window *window)
{
    rows r = {.to = window, .lost = any_lost()};
    uint32_t names = pki_name_count();
    if (!pki_array_fit(&seal.held, &seal.held_count, names, sizeof *seal.held))
        names = (uint32_t)PKI_MIN(names, seal.held_count);
    for (uint32_t id = PKI_NAME_TOO_MANY; id < names; id++)
        if (pki_name_kind(id) == PKI_KIND_COUNTER)
            add_counter(&r, id, &seal.held[id]);
        else if (pki_name_kind(id) <= PK_WAIT)
            add_region(&r, id, &seal.held[id]);
}

/* About what it takes: to bound the queue, not to the byte. */
static size_t bytes_of(const pki_window *w)
{
    size_t bytes = sizeof *w + w->region_count * 2 * sizeof *w->regions;
    for (size_t i = 0; i < w->region_count; i++)
        bytes += w->regions[i].exact.buckets.room * sizeof(pki_tally_bucket);
    for (size_t i = 0; i < w->counter_count; i++)
        bytes += w->counters[i].exact.room * sizeof(pki_tally_bucket);
    for (size_t i = 0; i < w->steps.exact.region_count; i++)
        bytes += w->steps.exact.regions[i].self.room * sizeof(pki_tally_bucket);
    for (size_t i = 0; i < w->steps.exact.head_count; i++)
        bytes += sizeof(pki_whole_step) + w->steps.exact.head[i].bit_count * sizeof(pki_step_bit);
    return bytes;
}

static void enqueue(waiting *w)
{
    w->bytes = bytes_of(&w->window);
    *seal.end = w;
    seal.end = &w->next;
    seal.count++;
    seal.bytes += w->bytes;
}

static bool has_room(void)
{
    return seal.count == 0 || (seal.count < WAITING_MOST && seal.bytes < WAITING_BYTES_MOST);
}

/* The steps first: without memory for them the window goes on, with all that is in it. */
static bool cut(uint64_t end, bool last)
{
    waiting *w = calloc(1, sizeof *w);
    if (!w || !pki_steps_cut(seal.fold->steps, &w->window.steps.exact)) {
        free(w);
        return false;
    }
    w->window.index = seal.index++;
    w->window.start = seal.start;
    w->window.end = PKI_MAX(end, seal.start);
    w->window.last = last;
    add_rows(&w->window);
    seal.start = w->window.end;
    enqueue(w);
    return true;
}

/* By the steps' own numbers, so that all ranks cut at the same ones. */
static bool is_due(const pki_step *step, const pki_steps_span *span)
{
    bool by_steps = seal.steps && (step->index + 1) / seal.steps != span->first / seal.steps;
    return by_steps || (seal.ns && span->end >= seal.start + seal.ns);
}

static void see_step(pki_fold *fold, const pki_step *step)
{
    if (is_due(step, &fold->steps->span) && has_room())
        cut(fold->steps->span.end, false);
}

void pki_seal_poll(pki_fold *fold, uint64_t now_ns)
{
    if (!seal.ns || seal.fold != fold || !has_room())
        return;
    /* A loop's next step ends soon. */
    uint64_t patience = fold->steps->count ? 2 * seal.ns : seal.ns;
    if (now_ns >= seal.start + patience)
        cut(now_ns, false);
}

void pki_seal_last(pki_fold *fold, uint64_t now_ns)
{
    if (seal.fold == fold)
        cut(now_ns, true);
    fold->on_step = NULL;
}

static waiting *dequeue(void)
{
    waiting *w = seal.first;
    if (!w)
        return NULL;
    seal.first = w->next;
    seal.end = w->next ? seal.end : &seal.first;
    seal.count--;
    seal.bytes -= w->bytes;
    return w;
}

bool pki_seal_pop(pki_window *window)
{
    pki_fold_lock();
    waiting *w = dequeue();
    pki_fold_unlock();
    if (!w)
        return false;
    *window = w->window;
    free(w);
    return true;
}

static void forget(void)
{
    waiting *w;
    while ((w = dequeue())) {
        pki_window_finish(&w->window);
        free(w);
    }
    for (size_t i = 0; i < seal.held_count; i++)
        pki_held_finish(&seal.held[i]);
    free(seal.held);
    memset(&seal, 0, sizeof seal);
    seal.end = &seal.first;
}

void pki_seal_start(pki_fold *fold, uint64_t steps, uint64_t ns)
{
    seal.end = seal.first ? seal.end : &seal.first;
    forget();
    if (!steps && !ns)
        return;
    seal.fold = fold;
    seal.steps = steps;
    seal.ns = ns;
    fold->on_step = see_step;
}

/* What is there may be half of something. */
void pki_seal_after_fork(void)
{
    memset(&seal, 0, sizeof seal);
    seal.end = &seal.first;
}
