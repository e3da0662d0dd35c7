#include "measure/fold/fold.h"

#include <pk/request.h>
#include <pk/stats.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "core/frames.h"
#include "measure/fold/walk.h"

/* ---- the counters' timelines, by the id of their name ---- */

/* All zero is empty, too. */
static void pki_timelines_finish(pki_timelines *timelines)
{
    for (size_t i = 0; i < timelines->room; i++) {
        if (timelines->by_id[i])
            pki_series_finish(&timelines->by_id[i]->parts);
        free(timelines->by_id[i]);
    }
    free(timelines->by_id);
    *timelines = (pki_timelines){0};
}

bool pki_timelines_fill(const pki_timelines *timelines, uint32_t id, pki_counter_row *row)
{
    if (id >= timelines->room || !timelines->by_id[id])
        return true;
    return pki_timeline_fill(timelines->by_id[id], row);
}

/* ---- from records to distributions ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pki_fold *now;

void pki_fold_lock(void)
{
    pthread_mutex_lock(&lock);
}

void pki_fold_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

pki_fold *pki_fold_now(void)
{
    return now;
}

static void destroy(pki_fold *fold)
{
    if (!fold)
        return;
    for (size_t i = 0; i < fold->thread_count; i++)
        free(fold->threads[i].work);
    pki_steps_destroy(fold->steps);
    pki_device_destroy(fold->device);
    pki_comm_figures_destroy(fold->collectives);
    pki_timelines_finish(&fold->timelines);
    pki_spans_finish_counter(&fold->spans);
    free(fold->requests);
    free(fold->threads);
    free(fold);
}

static pki_fold *create(pki_registry *registry, bool per_thread, uint32_t warmup_steps)
{
    pki_fold *fold = calloc(1, sizeof *fold);
    if (!fold)
        return NULL;
    fold->registry = registry;
    fold->per_thread = per_thread;
    fold->steps = pki_steps_create();
    fold->device = pki_device_create(PKI_DEVICE_ITEMS);
    fold->collectives = pki_comm_figures_create();
    pki_spans *spans = &registry->arena->spans;
    fold->last_resort = pki_table_add(spans, &fold->totals, PKI_NAME_TOO_MANY, PK_OTHER);
    if (!fold->steps || !fold->device || !fold->collectives || !fold->last_resort ||
        !pki_table_add(spans, &fold->totals, PKI_NAME_STEP, PKI_KIND_INTERNAL)) {
        destroy(fold);
        return NULL;
    }
    pki_steps_expect_warmup(fold->steps, warmup_steps);
    pki_device_expect_warmup(fold->device, warmup_steps);
    return fold;
}

bool pki_fold_open(pki_registry *registry, bool per_thread, uint32_t warmup_steps)
{
    pki_fold *fold = registry ? create(registry, per_thread, warmup_steps) : NULL;
    pki_fold_lock();
    destroy(now);
    now = fold;
    pki_fold_unlock();
    return fold || !registry;
}

void pki_fold_after_fork(void)
{
    if (pthread_mutex_trylock(&lock) == 0) {
        destroy(now); /* else somebody was at it, and it may be half of something */
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_init(&lock, NULL);
    now = NULL; /* its tables lie in the parent's arena */
}

pki_thread_fold *pki_fold_thread(pki_fold *fold, const pki_thread *t)
{
    if (!pki_array_fit(&fold->threads, &fold->thread_count, t->index + (size_t)1,
                       sizeof *fold->threads))
        return &fold->nobody;
    return &fold->threads[t->index];
}

/* ---- what is left of a thread that has ended ---- */

/* The slots of a block's lost calls, into a table. */
static void merge_lost(pki_fold *fold, pki_table *to, const pki_thread *t)
{
    pki_spans *spans = &fold->registry->arena->spans;
    pki_slot *rest =
        t->last_resort.count ? pki_table_add(spans, to, PKI_NAME_TOO_MANY, PK_OTHER) : NULL;
    pki_table_merge(spans, to, &t->lost);
    if (rest)
        pki_slot_merge(spans, &to->pool, rest, &t->last_resort);
}

/* Those that found no room there share one, as all calls without room do. */
static void merge_the_rest(pki_fold *fold, const pki_thread *t)
{
    for (const pki_slot *s = t->lost.first; s; s = pki_table_next(s))
        if (!pki_table_slot(&fold->totals, s->id) && s->kind <= PK_WAIT)
            pki_slot_merge(&fold->registry->arena->spans, &fold->totals.pool, fold->last_resort, s);
}

static pki_ended_thread *ended_of(pki_fold *fold, const pki_thread *t)
{
    if (fold->ended_count == PKI_ENDED_MOST)
        return &fold->ended_others;
    pki_ended_thread *ended = &fold->ended[fold->ended_count++];
    memcpy(ended->name, t->name, sizeof ended->name);
    ended->name[sizeof ended->name - 1] = '\0';
    ended->tid = t->tid;
    return ended;
}

static void record_ended(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    pki_ended_thread *ended = ended_of(fold, t);
    ended->recorded += pki_load(&t->recorded);
    ended->dropped += pki_load(&t->dropped);
    for (int k = 0; k < PKI_KINDS; k++)
        ended->kinds[k] += alone->kinds[k];
    memset(alone->kinds, 0, sizeof alone->kinds);
    if (fold->per_thread) {
        merge_lost(fold, &ended->calls, t);
        pki_table_merge(&fold->registry->arena->spans, &ended->calls, &alone->calls);
    }
}

static void fold_ended_thread(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    merge_lost(fold, &fold->totals, t);
    merge_the_rest(fold, t);
    record_ended(fold, alone, t);
    pki_table_reset(&fold->registry->arena->spans, &alone->calls);
}

void pki_fold_recycle(pki_fold *fold, pki_thread *t)
{
    pki_spare_bring_home(t);
    pki_fold_one(fold, t); /* calls may have been lost since */
    pki_fold_pending(fold, t);
    pki_fold_settle(t);
    pki_thread_fold *alone = pki_fold_thread(fold, t);
    fold_ended_thread(fold, alone, t);
    alone->tracked = alone->starved = false;
    pki_registry_lock();
    pki_registry_recycle(fold->registry, t);
    pki_registry_unlock();
}

/* ---- one name's distribution: what has been folded, and what threads keep ---- */

bool pki_fold_stats(const pki_fold *fold, uint32_t id, pk_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    if (slot)
        pki_stats_add_slot(stats, slot);
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_thread *t = pki_registry_block(fold->registry, i);
        const pki_slot *lost = pki_table_slot(&t->lost, id);
        if (lost)
            pki_stats_add_slot(stats, lost);
        if (id == PKI_NAME_TOO_MANY)
            pki_stats_add_slot(stats, &t->last_resort);
    }
    pki_registry_unlock();
    return stats->count > 0;
}

static void add_sums(pki_fold_sum *sum, const pki_slot *slot)
{
    if (!slot)
        return;
    sum->count += pki_load(&slot->count);
    sum->sum += pki_load(&slot->sum);
    sum->self += pki_load(&slot->self);
    sum->bytes += pki_load(&slot->bytes);
    sum->untimed += pki_load(&slot->untimed);
}

bool pki_fold_sums(const pki_fold *fold, uint32_t id, pki_fold_sum *sum)
{
    *sum = (pki_fold_sum){0};
    add_sums(sum, pki_table_slot(&fold->totals, id));
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++)
        add_sums(sum, pki_table_slot(&pki_registry_block(fold->registry, i)->lost, id));
    pki_registry_unlock();
    return sum->count > 0;
}

bool pki_fold_values(const pki_fold *fold, uint32_t id, pki_value_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    bool fits = !slot || pki_value_stats_add(stats, (const pki_values *)slot);
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_slot *lost = pki_table_slot(&pki_registry_block(fold->registry, i)->lost, id);
        if (lost)
            fits = pki_value_stats_add(stats, (const pki_values *)lost) && fits;
    }
    pki_registry_unlock();
    return fits;
}

double pki_fold_threads(const pki_fold *fold, uint32_t id)
{
    uint64_t sum = 0, most = 0;
    for (size_t i = 0; i < fold->thread_count; i++) {
        const pki_thread_fold *t = &fold->threads[i];
        uint64_t ns = id < t->work_room ? t->work[id] : 0;
        sum += ns;
        most = PKI_MAX(most, ns);
    }
    return most ? (double)sum / (double)most : 0;
}

/* ---- pk/stats.h: what has been folded, to the caller ---- */

/* Macros, for callers that leave the size to them. */
#undef pk_region_stats
#undef pk_step_stats

/* For callers that want the first members alone, or a quantile; under the fold lock. */
static pk_stats whole;

static pk_status answer(pki_stats_find *find, uint32_t id, pk_stats *stats)
{
    uint32_t size = stats->size;
    pk_stats *all = size == sizeof *stats ? stats : &whole;
    pki_fold *fold = pki_fold_now();
    pki_stats_begin(all);
    bool any = fold && find(fold, id, all);
    pki_stats_finish(all, 1);
    pki_stats_hand_out(all);
    if (all != stats)
        memcpy(stats, all, size);
    stats->size = size;
    return any ? PK_OK : fold ? PK_ENOENT : PK_EOFF;
}

/* Into *stats; or where that is NULL quantile q into *ns. */
static pk_status answer_alone(pki_stats_find *find, uint32_t id, pk_stats *stats, double q,
                              uint64_t *ns)
{
    int saved = errno;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pki_fold_lock();
    whole.size = sizeof whole;
    pk_status status = answer(find, id, stats ? stats : &whole);
    if (!stats && !status)
        *ns = pk_stats_quantile(&whole, q);
    pki_fold_unlock();
    pki_inside_leave();
    errno = saved;
    return status;
}

pk_status pki_stats_answer(pki_stats_find *find, uint32_t id, pk_stats *stats)
{
    if (stats->size < 8 || stats->size > sizeof *stats)
        return pki_fail(PK_EINVAL, "pk_stats.size has to be sizeof(pk_stats)");
    return answer_alone(find, id, stats, 0, NULL);
}

static bool fold_and_find(pki_fold *fold, uint32_t id, pk_stats *stats)
{
    pki_fold_all(fold);
    return id && pki_fold_stats(fold, id, stats);
}

static uint32_t id_of(const pk_region *region)
{
    uint32_t id = pki_load(&region->id);
    return id ? id : pki_region_id_of(region);
}

pk_status pk_region_stats(const pk_region *region, pk_stats *stats)
{
    if (!region || !stats)
        return PK_EINVAL;
    return pki_stats_answer(fold_and_find, id_of(region), stats);
}

pk_status pk_region_quantile(const pk_region *region, double q, uint64_t *ns)
{
    if (!region || !ns)
        return PK_EINVAL;
    *ns = 0;
    return answer_alone(fold_and_find, id_of(region), NULL, q, ns);
}

pk_status pk_step_stats(pk_stats *stats)
{
    return stats ? pki_stats_answer(fold_and_find, PKI_NAME_STEP, stats) : PK_EINVAL;
}

/* ---- pk/span.h and pk/request.h: what has been counted, to the caller ---- */

pki_span_summary pki_fold_span_summary(const pki_fold *fold)
{
    const pki_span_counter *c = &fold->spans;
    pki_span_tally t;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    uint64_t begun = c->all.begun - c->unbegun + t.begins_dropped;
    uint64_t ended = c->all.ended + t.ends_lost;
    pki_span_summary s = {.begun = begun,
                          .ended = ended,
                          .unfinished = begun - PKI_MIN(begun, ended),
                          .marks = c->all.marks + t.marks_dropped,
                          .dropped = t.begins_dropped + t.marks_dropped + t.ends_dropped,
                          .ended_twice = t.ended_twice + c->open.ended + c->again,
                          .of_earlier = t.of_earlier};
    s.events = s.begun + s.marks + s.ended_twice + s.of_earlier;
    return s;
}

bool pki_fold_next_open_span(const pki_fold *fold, size_t *at, pki_open_span *out)
{
    const pki_open_spans *open = &fold->spans.open;
    while (*at < open->room) {
        const pki_open_span *s = &open->cells[(*at)++];
        if (s->state == PKI_SPAN_OPEN) {
            *out = *s;
            return true;
        }
    }
    return false;
}

size_t pki_fold_open_spans(const pki_fold *fold, pki_open_span *out, size_t most)
{
    const pki_open_spans *open = &fold->spans.open;
    size_t n = 0;
    for (size_t i = 0; i < open->room && n < most; i++)
        if (open->cells[i].state == PKI_SPAN_OPEN)
            out[n++] = open->cells[i];
    return n;
}

bool pki_fold_requests(const pki_fold *fold, pki_request_summary *out)
{
    uint64_t ttft, tpot;
    pki_span_tally t;
    *out = (pki_request_summary){0};
    if (!fold->requests)
        return true;
    pki_registry_lock();
    pki_registry_span_tally(fold->registry, &t);
    pki_registry_unlock();
    pki_request_limits(&ttft, &tpot);
    return pki_requests_fill(fold->requests, ttft, tpot, t.requests_dropped, out);
}

/* Fills in `out`, under the fold lock; what it answers is the call's. */
typedef pk_status filler(const pki_fold *fold, uint32_t size, void *out);

static pk_status fill_spans(const pki_fold *fold, uint32_t size, void *out)
{
    pki_span_summary s = pki_fold_span_summary(fold);
    pk_span_counts all = {.size = size,
                          .begun = s.begun,
                          .ended = s.ended,
                          .open = s.unfinished,
                          .dropped = s.dropped,
                          .ended_twice = s.ended_twice,
                          .of_earlier = s.of_earlier};
    memcpy(out, &all, size);
    return PK_OK;
}

static pk_status fill_requests(const pki_fold *fold, uint32_t size, void *out)
{
    pki_request_summary s;
    if (!pki_fold_requests(fold, &s))
        return pki_fail(PK_ENOMEM, "no memory for the requests");
    pk_request_counts all = {.size = size,
                             .finished = s.finished,
                             .cancelled = s.cancelled,
                             .failed = s.failed,
                             .good = s.good,
                             .tokens = s.tokens,
                             .preemptions = s.preemptions,
                             .dropped = s.dropped};
    free(s.slowest);
    memcpy(out, &all, size);
    return PK_OK;
}

static pk_status answer_filled(filler *fill, uint32_t size, void *out)
{
    int saved = errno;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold)
        pki_fold_all(fold);
    pk_status status = fold ? fill(fold, size, out) : PK_EOFF;
    pki_fold_unlock();
    pki_inside_leave();
    errno = saved;
    return status;
}

pk_status(pk_get_span_counts)(pk_span_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_span_counts.size has to be sizeof(pk_span_counts)");
    return answer_filled(fill_spans, counts->size, counts);
}

pk_status(pk_get_request_counts)(pk_request_counts *counts)
{
    if (!counts || counts->size < 8 || counts->size > sizeof *counts)
        return pki_fail(PK_EINVAL, "pk_request_counts.size has to be sizeof(pk_request_counts)");
    return answer_filled(fill_requests, counts->size, counts);
}
