#include "core/registry.h"

#include <pthread.h>

#include "base/memory.h"
#include "core/frames.h"
#include "core/ring.h"

#define PATIENCE_NS 1000000000u

uint32_t pk_gate_;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool entered; /* by who holds it, with pki_enter: it was in no slow path before */
static pki_registry *now;
static uint32_t opened;   /* so many, ever */
static pki_registry *all; /* that anybody holds on to */
/* What threads without a block could not record in this session. */
static uint64_t refused_regions, refused_points;

void pki_registry_lock(void)
{
    bool outermost = pki_enter(); /* a handler that interrupts us must not want it, too */
    pthread_mutex_lock(&lock);
    entered = outermost;
}

bool pki_registry_is_responsive(void)
{
    bool outermost = pki_enter(), locked = pki_lock_within(&lock, PATIENCE_NS);
    if (locked)
        pthread_mutex_unlock(&lock);
    if (outermost)
        pki_leave();
    return locked;
}

void pki_registry_unlock(void)
{
    bool outermost = entered;
    pthread_mutex_unlock(&lock);
    if (outermost)
        pki_leave();
}

pki_registry *pki_registry_now(void)
{
    return now;
}

uint32_t pki_registry_serial(void)
{
    return pki_load(&opened);
}

void pki_registry_refuse_region(void)
{
    if (pki_load(&pk_gate_))
        pki_fetch_add(&refused_regions, 1);
}

void pki_registry_refuse_point(void)
{
    if (pki_load(&pk_gate_))
        pki_fetch_add(&refused_points, 1);
}

/* Names that earlier sessions have used will be used again without passing through here. */
static bool mirror_all_names(pki_arena *arena)
{
    for (uint32_t id = PKI_NAME_TOO_MANY; id < pki_name_count(); id++)
        if (!pki_arena_mirror_name(arena, id))
            return false;
    return true;
}

/* Makes a new name known in the arena of the running session. */
static void mirror_name(uint32_t id)
{
    pki_registry_lock();
    if (now && !now->over)
        pki_arena_mirror_name(now->arena,
                              id); /* without room: "(unknown)" after a kill, and only then */
    pki_registry_unlock();
}

void pki_registry_on_drain(pki_registry *r, void (*drain)(void))
{
    r->drain = drain;
}

void pki_registry_on_step(pki_registry *r, unsigned which, pki_at_step *at_step)
{
    pki_store_release(&r->at_step[which], at_step);
}

static pki_registry *make(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    pki_registry *r = mirror_all_names(arena) ? pki_mem_private(sizeof *r) : NULL;
    if (!r)
        return NULL;
    r->arena = arena;
    r->ring_records = ring_records;
    r->monotonic = monotonic;
    r->references = 1;
    r->step_start = pki_ticks(monotonic);
    return r;
}

pki_registry *pki_registry_open(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    pki_registry *before = NULL;
    pki_names_on_new(mirror_name);
    pki_registry_lock();
    pki_registry *r = make(arena, ring_records, monotonic);
    if (r) {
        before = now;
        r->next = all;
        all = now = r;
        r->serial = opened + 1;
        pki_store(&opened, opened + 1);
        before = before ? pki_registry_drop(before) : NULL;
        pki_store(&refused_regions, (uint64_t)0);
        pki_store(&refused_points, (uint64_t)0);
    }
    pki_registry_unlock();
    pki_registry_destroy(before);
    return r;
}

void pki_registry_admit(void)
{
    pki_registry_lock();
    pki_store_release(&pk_gate_, 1u);
    pki_registry_unlock();
}

pki_registry *pki_registry_drop(pki_registry *r)
{
    if (--r->references > 0)
        return NULL;
    pki_registry **link = &all;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    return r;
}

void pki_registry_destroy(pki_registry *r)
{
    if (!r)
        return;
    pki_arena_destroy(r->arena);
    pki_mem_unmap(r, sizeof *r);
}

void pki_registry_close(pki_registry *r)
{
    pki_registry_lock();
    pki_store(&pk_gate_, 0u);
    r->over = true;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++) {
        pki_thread *t = pki_registry_block(r, i);
        pki_store(&t->ended, 1u);
        pki_store(&t->limit, 0u);
    }
    pki_registry_unlock();
}

void pki_registry_discard(pki_registry *r)
{
    pki_registry_close(r);
    pki_registry_lock();
    now = NULL;
    pki_registry *last = pki_registry_drop(r);
    pki_registry_unlock();
    pki_registry_destroy(last);
}

uint32_t pki_registry_blocks(const pki_registry *r)
{
    return pki_load_acquire(
        &r->arena->header->block_count); /* pairs with the release in new_block */
}

pki_thread *pki_registry_block(const pki_registry *r, uint32_t i)
{
    return pki_arena_at(r->arena, (uint64_t)r->arena->header->blocks[i] * PKI_PAGE);
}

/* The owner stores laps, turn, state, laps_behind and turn_behind in this order when its ring wraps
 * or a turn begins (the turn only then). If the outer ones have not changed meanwhile, state was
 * read before that, behind it, or, if they differ, within: then it is near the end of the old round
 * or near the start of the new one, and they are as far apart as the round was long. */
pki_position pki_thread_position(const pki_thread *t)
{
    uint64_t behind, laps, state, offset, others;
    uint32_t turn_behind, turn;
    if (pki_load(&t->sealed))
        return (pki_position){t->sealed, t->sealed_bytes, t->sealed_others, t->sealed_turn};
    do {
        others =
            pki_load_acquire(&t->others); /* some may have been pushed that are not in it yet */
        turn_behind = pki_load_acquire(&t->turn_behind); /* pairs with the release in ring.c */
        behind = pki_load_acquire(&t->laps_behind);      /* pairs with the releases in ring.c */
        laps = pki_load_acquire(&t->laps);
        turn = pki_load_acquire(&t->turn);
        state = pki_load_acquire(&t->state);
    } while (pki_load(&t->laps) != laps || pki_load(&t->laps_behind) != behind ||
             pki_load(&t->turn) != turn || pki_load(&t->turn_behind) != turn_behind ||
             pki_load(&t->others) != others);
    offset = state >> 32;
    return (pki_position){state, (offset > (laps - behind) / 2 ? behind : laps) + offset, others,
                          turn == turn_behind ? turn : pki_turn_of(state, turn, turn_behind)};
}

void pki_thread_seal(pki_thread *t)
{
    pki_position at = pki_thread_position(t);
    t->sealed_bytes = at.bytes;
    t->sealed_others = at.others;
    t->sealed_turn = at.turn;
    pki_store(&t->sealed, at.state);
}

void pki_thread_counts(const pki_thread *t, pk_counts *c)
{
    uint64_t recorded = pki_load_acquire(&t->recorded), dropped = pki_load_acquire(&t->dropped);
    uint64_t untimed = pki_load(&t->untimed_counted);
    pki_position at = pki_thread_position(t); /* behind them: more may have been begun since */
    c->begun +=
        at.bytes / sizeof(pki_record) - at.others + pki_depth_in(at.state) + dropped + untimed;
    c->recorded += recorded;
    c->dropped += dropped;
    c->untimed += untimed;
    c->unbalanced += pki_load(&t->unbalanced);
    c->too_deep += pki_load(&t->too_deep);
    c->stray_ends += pki_load(&t->stray_ends);
    c->points += pki_load(&t->points);
    c->points_dropped += pki_load(&t->points_dropped);
    c->not_finite += pki_load(&t->not_finite);
}

void pki_registry_counts(const pki_registry *r, pk_counts *c)
{
    *c = r->arena->header->ended;
    uint64_t none = pki_load(&refused_regions);
    c->begun += none;
    c->dropped += none;
    c->points_dropped += pki_load(&r->steps_missed) + pki_load(&refused_points);
    c->threads = (uint32_t)r->arena->header->joined;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        pki_thread_counts(pki_registry_block(r, i), c);
    c->steps = pki_load(&r->arena->header->steps);
    c->memory_bytes = pki_load(&r->arena->header->used);
}

static void add_span_tally(pki_span_tally *sum, const pki_span_tally *t)
{
    sum->begins_dropped += pki_load(&t->begins_dropped);
    sum->marks_dropped += pki_load(&t->marks_dropped);
    sum->ends_dropped += pki_load(&t->ends_dropped);
    sum->ends_lost += pki_load(&t->ends_lost);
    sum->ended_twice += pki_load(&t->ended_twice);
    sum->of_earlier += pki_load(&t->of_earlier);
    sum->requests_dropped += pki_load(&t->requests_dropped);
}

void pki_registry_span_tally(const pki_registry *r, pki_span_tally *tally)
{
    *tally = r->arena->header->ended_spans;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        add_span_tally(tally, &pki_registry_block(r, i)->spans);
}

/* The ring goes on where it is, so that what the collector knows of it stays true. */
static void forget_counters(pki_thread *t)
{
    t->others = t->sealed_others = t->folded_others =
        pki_thread_position(t).bytes / sizeof(pki_record);
    t->points_pushed = t->recorded = t->untimed_counted = t->dropped = t->unbalanced = t->too_deep =
        t->stray_ends = t->points = t->points_dropped = t->not_finite = 0;
    t->spans = (pki_span_tally){0};
}

void pki_registry_recycle(pki_registry *r, pki_thread *t)
{
    pki_thread_counts(t, &r->arena->header->ended);
    add_span_tally(&r->arena->header->ended_spans, &t->spans);
    forget_counters(t);
    pki_table_reset(&r->arena->spans, &t->lost);
    t->counted = NULL; /* that was in the same pool */
    t->counted_size = t->pending_counted = 0;
    pki_slot_clear(&t->last_resort, PKI_NAME_TOO_MANY);
    pki_thread *gone = t; /* another thread may be making a step meanwhile: its word stands */
    __atomic_compare_exchange_n(&r->stepper, &gone, NULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    pki_ready_forget(&r->ready, t);
    pki_store_release(&t->life, (uint32_t)PKI_THREAD_FREE);
    t->next_free = r->free;
    r->free = t;
    r->waiting--;
}

void pki_registry_after_fork(pki_arena *unlisted)
{
    pthread_mutex_init(&lock, NULL);
    entered = false;
    pk_gate_ = 0;
    now = NULL;
    while (all) { /* the parent's memory, shared: out of reach from here on */
        pki_registry *r = all;
        all = r->next;
        unlisted = r->arena == unlisted ? NULL : unlisted;
        pki_registry_destroy(r);
    }
    pki_arena_destroy(unlisted);
}
