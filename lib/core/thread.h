/* lib/core/thread.h - a recording thread's block: frame stack, ring, distributions.
 *
 * A thread's pki_self points to its block, or, before it has one, to the sentinel, whose frame stack is full
 * and whose slot table is empty: "not joined", "too deep", "the session is over" and "first use here" all come
 * out of the tests that the fast path makes anyway, and are told apart on the slow path.
 *
 * Who writes what:
 *   the owner      everything in the first three lines, its frames, slots and ring records
 *   the collector  taken[] and released (how far the ring has been read), state on recycling
 *   pk_stop        limit = NULL, then waits until nobody is `inside` (see lib/base/quiesce.h)
 *
 * Hand-over: the owner's release of head pairs with the collector's acquire (records before it are whole);
 * the collector's release of `released` pairs with the owner's acquire in make_room (slots before it may be overwritten).
 *
 * The distribution of a call is added while the clock is read for the end of the next one ("pending"): the bucket
 * depends on the time just read, and waiting for it would cost a quarter of the whole. Readers add the
 * pending call themselves; its pointer is cleared before it is folded in, so that they miss it at worst and
 * never count it twice.
 */
#ifndef PKI_CORE_THREAD_H
#define PKI_CORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "core/hist.h"
#include "core/record.h"

#define PKI_DEPTH_MAX 64
#define PKI_DEEP_KEPT 64 /* regions beyond PKI_DEPTH_MAX whose ids are kept, so that their ends are recognised */
#define PKI_NOBODY UINT32_MAX

/* An open region. `what` is the record's, without flags. */
typedef struct pki_frame {
    pki_slot *slot;
    uint64_t start;
    uint64_t child; /* ticks in regions inside it, and own ticks already credited to a step */
    uint64_t what;
} pki_frame;

typedef struct pki_work {
    uint64_t bytes, flops;
} pki_work;

enum pki_thread_state {
    PKI_THREAD_FREE,
    PKI_THREAD_LIVE, /* owned by a thread */
    PKI_THREAD_LEFT, /* the thread has ended; to be drained, merged into the retired block and freed */
    PKI_THREAD_RETIRED /* owned by nobody: holds the statistics of threads that have ended */
};

struct pki_registry;

typedef struct pki_thread {
    /* read and written by every region */
    pki_frame *top;   /* innermost open one; frames[0] if none */
    pki_frame *limit; /* last usable frame; NULL when the session is over */
    pki_slot **slots; /* by name id */
    uint32_t slot_count;
    uint32_t monotonic;
    pki_slot *pending;
    uint64_t pending_ticks;
    uint64_t head; /* records written, ever */
    uint64_t room; /* head may grow to this without looking */

    pki_record *ring;
    uint64_t mask;
    uint64_t begun;
    uint32_t inside; /* 1 while the owner is in a recording call */
    uint32_t over;   /* open regions beyond the limit */
    uint64_t dropped;
    uint64_t unbalanced;
    uint64_t too_deep;
    uint64_t stray_ends;

    uint64_t points;
    uint64_t points_dropped;
    pki_slot *first_slot;
    char *spare; /* slot memory left in the current span, up to spare_end */
    char *spare_end;
    uint64_t slots_used;
    uint64_t pad[2];

    /* the collector's */
    uint64_t taken[2]; /* by generation; see lib/core/arena.h */
    uint64_t released;
    uint64_t recorded;  /* region records taken */
    uint64_t populated; /* ring bytes brought in */
    uint64_t spans;     /* offset of this block's first slot span; each starts with the next one's offset */
    uint64_t span_now;  /* the one in use */
    uint64_t pad2;

    struct pki_registry *registry;
    uint32_t state;
    uint32_t tid;
    uint32_t index;
    uint32_t name_version; /* grows when name changes; the collector writes it out again */
    uint32_t name_written;
    uint32_t named;   /* by pk_thread_name */
    uint32_t starved; /* no memory for more slots: their calls go to the slot of PKI_NAME_TOO_MANY */
    char name[64];
    uint32_t deep[PKI_DEEP_KEPT];
    pki_work work[PKI_DEPTH_MAX + 2];
    pki_frame frames[PKI_DEPTH_MAX + 2]; /* [0] and the last are guards that match no region */
} PKI_ALIGNED pki_thread;

_Static_assert(offsetof(pki_thread, ring) == PKI_LINE, "the first line is what every region touches");

/* In libpk.so too a fixed distance from the thread pointer: one load. */
extern _Thread_local pki_thread *pki_self;

/* Inside: pk_stop waits for us from here on, or we see that it has begun. */
static inline void pki_enter(pki_thread *t)
{
    pki_store(&t->inside, 1);
    pki_compiler_fence(); /* pairs with pki_quiesce_fence in pki_registry_close */
}

static inline void pki_leave(pki_thread *t)
{
    pki_store_release(&t->inside, 0); /* pairs with the acquire in wait_until_outside */
}

/* Ticks between, 0 if the clock of another core lags. */
static inline uint64_t pki_elapsed(uint64_t from, uint64_t to)
{
    return PKI_LIKELY(to > from) ? to - from : 0;
}

/* Room for `slots` more records, counting nothing. */
bool pki_make_room(pki_thread *t, unsigned slots);

/* Adds a bucket's chunk or carry on first use, or counts in the chunk that is there. */
void pki_slot_count_cold(pki_thread *t, pki_slot *slot, uint32_t bucket);

static inline void pki_slot_count(pki_thread *t, pki_slot *slot, uint64_t value)
{
    uint32_t bucket = pki_bucket(value);
    pki_link link = slot->chunks[bucket / PKI_CHUNK_BUCKETS];
    uint32_t *counter = (uint32_t *)pki_follow(slot, link) + bucket % PKI_CHUNK_BUCKETS;
    if (PKI_UNLIKELY(link == 0 || pki_load(counter) == UINT32_MAX))
        pki_slot_count_cold(t, slot, bucket);
    else
        pki_store(counter, pki_load(counter) + 1);
}

/* Adds the pending call to its distribution. */
static inline void pki_fold(pki_thread *t)
{
    pki_slot *slot = t->pending;
    uint64_t ticks = pki_load(&t->pending_ticks);
    if (PKI_UNLIKELY(!slot))
        return;
    pki_store(&t->pending, (pki_slot *)NULL);
    pki_store_release(&slot->count, pki_load(&slot->count) + 1); /* behind the clearing, for readers */
    pki_slot_add_moments(slot, ticks);
    pki_slot_count(t, slot, ticks);
}

static inline void pki_defer(pki_thread *t, pki_slot *slot, uint64_t ticks)
{
    pki_store(&t->pending_ticks, ticks);
    pki_store_release(&t->pending, slot); /* pairs with the acquire in add_pending, lib/core/registry.c */
}

static inline pki_record *pki_next_record(pki_thread *t, uint64_t ahead)
{
    return &t->ring[(t->head + ahead) & t->mask];
}

/* Slow paths of the fast ones. */

/* This thread's block in the running session, with a slot for name id (or, without memory for one, the
 * shared slot); NULL if the session is over or gives this thread no block, which is then counted. */
pki_thread *pki_thread_with_slot(uint32_t id);

/* The slot of name id itself, or NULL. */
static inline pki_slot *pki_thread_slot(const pki_thread *t, uint32_t id)
{
    return id < t->slot_count ? t->slots[id] : NULL;
}

/* Pops and records frame f, which is the top one. */
void pki_close_frame(pki_thread *t, pki_frame *f, uint64_t now, unsigned flags);

/* Closes every region above `until`, as unbalanced. */
void pki_close_above(pki_thread *t, const pki_frame *until, uint64_t now);

#endif
