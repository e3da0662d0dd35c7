#include "measure/fold.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "measure/step_watch.h"

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
    pki_steps_destroy(fold->steps);
    pki_device_destroy(fold->device);
    pki_collectives_destroy(fold->collectives);
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
    fold->collectives = pki_collectives_create();
    fold->last_resort = pki_table_add(registry->arena, &fold->totals, PKI_NAME_TOO_MANY);
    if (!fold->steps || !fold->device || !fold->collectives || !fold->last_resort ||
        !pki_table_add(registry->arena, &fold->totals, PKI_NAME_STEP)) {
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

static pki_arena *arena_of(const pki_fold *fold)
{
    return fold->registry->arena;
}

/* Without memory: in the table of all one that is shared, in others none. */
static pki_slot *slot_in(pki_fold *fold, pki_table *table, uint32_t id)
{
    pki_slot *slot = pki_table_slot(table, id);
    if (PKI_UNLIKELY(!slot))
        slot = pki_table_add(arena_of(fold), table, id);
    if (PKI_LIKELY(slot))
        return slot;
    if (table == &fold->totals)
        return fold->last_resort;
    fold->starved = true;
    return NULL;
}

static void fold_call(pki_fold *fold, pki_table *table, const pki_record *r)
{
    pki_slot *slot = slot_in(fold, table, pki_what_id(r->what));
    if (PKI_UNLIKELY(!slot))
        return;
    pki_bump(&slot->self, pki_not_negative(r->extra));
    pki_table_count(arena_of(fold), table, slot, pki_not_negative(r->value));
}

static void fold_work(pki_fold *fold, pki_table *table, uint32_t id, const pki_record *work)
{
    pki_slot *slot = slot_in(fold, table, id);
    if (!slot)
        return;
    pki_bump(&slot->bytes, work->start);
    pki_bump(&slot->flops, work->value);
}

static void fold_own(pki_fold *fold, pki_table *table, const pki_record *r)
{
    pki_slot *slot = slot_in(fold, table, pki_what_id(r->what));
    if (slot)
        pki_bump(&slot->self, r->value);
}

/* Own time of calls without a record, which is in the step but not in the table for all. */
static void fold_step_self(pki_fold *fold, pki_table *table, const pki_record *r)
{
    pki_slot *slot = slot_in(fold, table, pki_what_id(r->what));
    if (slot)
        slot->self_mark -= r->value;
}

/* Tells the report which thread is busy with what, and its verdicts whether a loader is. */
static void count_kind(pki_thread_fold *alone, const pki_record *r, uint64_t own)
{
    const pki_name *name = pki_name_at(pki_what_id(r->what));
    if (name && name->kind < PKI_KINDS)
        alone->kinds[name->kind] += own;
}

static void fold_value(pki_fold *fold, const pki_record *r)
{
    double value;
    pki_slot *slot = slot_in(fold, &fold->totals, pki_what_id(r->what));
    memcpy(&value, &r->value, sizeof value);
    if (slot != fold->last_resort)
        pki_values_add(arena_of(fold), &fold->totals, (pki_values *)slot, value, r->start);
}

static uint64_t in_ns(uint64_t ticks, double unit_ns)
{
    return (uint64_t)llround((double)ticks * unit_ns);
}

/* The own time of every region of this thread since its last step. Each is rounded so that the sum
 * is the sum of all, rounded: no more than the step has. */
static void feed_own_times(pki_fold *fold, pki_table *calls, double unit_ns)
{
    uint64_t ticks = 0;
    for (pki_slot *s = calls->first; s; s = pki_table_next(s)) {
        uint64_t own = s->self - s->self_mark, before = in_ns(ticks, unit_ns);
        const pki_name *name = pki_name_at(s->id);
        s->self_mark = s->self;
        ticks += own;
        if (own)
            pki_steps_add_self(fold->steps, s->id, name ? name->kind : PK_OTHER,
                               in_ns(ticks, unit_ns) - before);
    }
}

static void fold_step(pki_fold *fold, pki_thread_fold *alone, const pki_record *r,
                      const pki_record *more)
{
    uint64_t ticks = pki_not_negative(r->value);
    double unit_ns = pki_clock_unit_ns(&arena_of(fold)->header->clock);
    bool known = alone->tracked && !alone->partial && !fold->starved &&
                 !(pki_what_flags(r->what) & PKI_FLAG_UNKNOWN);
    pki_table_count(arena_of(fold), &fold->totals, slot_in(fold, &fold->totals, PKI_NAME_STEP),
                    ticks);
    feed_own_times(fold, &alone->calls, unit_ns);
    alone->partial = false;
    pki_step step = {.index = more->start,
                     .start = pki_clock_ns(&arena_of(fold)->header->clock, r->start),
                     .duration = in_ns(ticks, unit_ns),
                     .items = more->value,
                     .broken_down = known};
    pki_steps_add(fold->steps, &step);
    pki_step_watch_see(step.index, step.start, step.duration);
    pki_device_step(fold->device, step.start,
                    pki_clock_ns(&arena_of(fold)->header->clock, r->start + ticks));
}

static void fold_record(pki_fold *fold, pki_thread_fold *alone, pki_thread *t, const pki_record *r,
                        const pki_record *more)
{
    pki_table *mine = alone->tracked ? &alone->calls : NULL;
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_REGION_WORK:
        pki_fold_collective(fold, r, more);
        fold_work(fold, &fold->totals, pki_what_id(r->what), more);
        if (mine)
            fold_work(fold, mine, pki_what_id(r->what), more);
        /* fall through */
    case PKI_RECORD_REGION:
        pki_bump(&t->recorded, 1);
        fold_call(fold, &fold->totals, r);
        count_kind(alone, r, pki_not_negative(r->extra));
        if (mine)
            fold_call(fold, mine, r);
        break;
    case PKI_RECORD_STEP_OPEN:
        fold_own(fold, &fold->totals, r);
        count_kind(alone, r, r->value);
        if (mine)
            fold_own(fold, mine, r);
        break;
    case PKI_RECORD_STEP_SELF: /* the step's; the region has it in the table of lost calls */
        if (mine)
            fold_step_self(fold, mine, r);
        break;
    case PKI_RECORD_STEP:
        fold_step(fold, alone, r, more);
        break;
    case PKI_RECORD_COLLECTIVE:
        pki_fold_collective(fold, r, more);
        break;
    case PKI_RECORD_COUNTER:
        fold_value(fold, r);
        break;
    default:
        break;
    }
}

static pki_thread_fold *alone_of(pki_fold *fold, const pki_thread *t)
{
    if (t->index < fold->thread_count)
        return &fold->threads[t->index];
    uint32_t count = PKI_MAX(64u, 2 * (t->index + 1));
    pki_thread_fold *more = realloc(fold->threads, count * sizeof *more);
    if (!more)
        return &fold->nobody;
    memset(more + fold->thread_count, 0, (count - fold->thread_count) * sizeof *more);
    fold->threads = more;
    fold->thread_count = count;
    return &more[t->index];
}

/* Whoever makes steps is followed alone, and the first thread from the start, since it most often
 * will. */
static void decide_tracking(const pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    bool first = t->index == 0 || fold->per_thread;
    if (alone->tracked || alone == &fold->nobody || (!first && !pki_load_acquire(&t->steps)))
        return;
    alone->tracked = true;
    alone->partial = !first;
}

void pki_fold_one(pki_fold *fold, pki_thread *t)
{
    uint32_t at = t->folded, head = pki_thread_head(t);
    if (at == head)
        return;
    pki_thread_fold *alone = alone_of(fold, t);
    decide_tracking(fold, alone, t);
    fold->starved = alone->starved;
    while (at != head) {
        const pki_record *r = pki_record_at(t, at);
        at = pki_ring_next(t, at);
        const pki_record *more = pki_record_at(t, at);
        if (pki_record_slots(r->what) == 2)
            at = pki_ring_next(t, at);
        fold_record(fold, alone, t, r, more);
    }
    alone->starved = fold->starved;
    pki_store_release(&t->folded, at); /* pairs with the acquire in the collector's take */
}

void pki_fold_all(pki_fold *fold)
{
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++)
        pki_fold_one(fold, pki_registry_block(fold->registry, i));
}

void pki_fold_extra(pki_fold *fold, pki_thread *t, const pki_record record[2])
{
    fold_record(fold, alone_of(fold, t), t, &record[0], &record[1]);
    pki_registry_lock();
    arena_of(fold)->header->ended.unbalanced++;
    pki_registry_unlock();
}

void pki_fold_range(pki_fold *fold, uint32_t id, uint64_t ticks, uint64_t bytes, uint64_t flops)
{
    const pki_record call = {0, ticks, PKI_WHAT(id, PKI_RECORD_REGION, 0), 0};
    const pki_record work = {bytes, flops, 0, 0};
    if (!fold)
        return;
    fold_call(fold, &fold->totals, &call);
    if (bytes || flops)
        fold_work(fold, &fold->totals, id, &work);
}

void pki_fold_point(pki_fold *fold, const pki_record *record)
{
    if (fold)
        fold_value(fold, record);
}

/* The slots of a block's lost calls, into a table. */
static void merge_lost(pki_fold *fold, pki_table *to, const pki_thread *t)
{
    pki_slot *rest = t->last_resort.count ? slot_in(fold, to, PKI_NAME_TOO_MANY) : NULL;
    pki_table_merge(arena_of(fold), to, &t->lost);
    if (rest)
        pki_table_merge_slot(arena_of(fold), to, rest, &t->last_resort);
}

/* Those that found no room there share one, as all calls without room do. */
static void merge_the_rest(pki_fold *fold, const pki_thread *t)
{
    for (const pki_slot *s = t->lost.first; s; s = pki_table_next(s))
        if (!pki_table_slot(&fold->totals, s->id) && pki_name_at(s->id)->kind <= PK_WAIT)
            pki_table_merge_slot(arena_of(fold), &fold->totals, fold->last_resort, s);
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

static void take_leave(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    pki_ended_thread *ended = ended_of(fold, t);
    ended->recorded += pki_load(&t->recorded);
    ended->dropped += pki_load(&t->dropped);
    for (int k = 0; k < PKI_KINDS; k++)
        ended->kinds[k] += alone->kinds[k];
    memset(alone->kinds, 0, sizeof alone->kinds);
    if (fold->per_thread) {
        merge_lost(fold, &ended->calls, t);
        pki_table_merge(arena_of(fold), &ended->calls, &alone->calls);
    }
}

void pki_fold_recycle(pki_fold *fold, pki_thread *t)
{
    pki_thread_fold *alone = alone_of(fold, t);
    merge_lost(fold, &fold->totals, t);
    merge_the_rest(fold, t);
    take_leave(fold, alone, t);
    pki_table_reset(arena_of(fold), &alone->calls);
    alone->tracked = alone->starved = false;
    pki_registry_lock();
    pki_registry_recycle(fold->registry, t);
    pki_registry_unlock();
}

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

bool pki_fold_values(const pki_fold *fold, uint32_t id, pki_value_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    if (slot)
        pki_value_stats_add(stats, (const pki_values *)slot);
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_slot *lost = pki_table_slot(&pki_registry_block(fold->registry, i)->lost, id);
        if (lost)
            pki_value_stats_add(stats, (const pki_values *)lost);
    }
    pki_registry_unlock();
    return stats->count > 0;
}
