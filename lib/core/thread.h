/* lib/core/thread.h - a recording thread's block: frame stack and ring.
 *
 * A thread's pki_self points to its block, or, before it has one, to the sentinel, which has no
 * room for a frame: "not joined", "too deep", "the session is over" and "this clock is a slow one"
 * all come out of the one test that the fast path makes, and are told apart on the slow path.
 *
 * `state` holds the two positions that change together, the innermost open frame and the next free
 * record, so a single store publishes a region's end: whoever reads it sees the region either open
 * or recorded, never both, never neither. Its release pairs with the acquire of everybody who reads
 * frames or records (pki_thread_seen, in every round and in pk_stop's sweep of open regions). The
 * collector's release of `released` pairs with the owner's acquire in released_here: what lies
 * before it may be overwritten.
 *
 * Where a ring is full and the collector is held up, its owner goes on in a spare segment
 * (core/ring.h), as large as the ring. A stay in one of them, or in the ring, is a turn, and a
 * reader's cursor is a turn and an offset in that piece of memory (core/ring.h).
 *
 * A full ring drops the record and counts it; the call still enters a distribution, the owner's own
 * `lost` table, so drops do not bias a quantile. All other calls are entered by whoever folds the
 * ring (lib/measure/fold/fold.h).
 */
#ifndef PKI_CORE_THREAD_H
#define PKI_CORE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "core/record.h"
#include "stats/slot.h"

#define PKI_DEPTH_MAX 64
#define PKI_THREAD_NAME 64 /* bytes with the 0 */
#define PKI_DEEP_KEPT                                                                              \
    64 /* regions beyond PKI_DEPTH_MAX whose ids are kept, so that their ends are recognised */

/* In a frame's id: nobody's, or one whose end has more to do than the fast path does. */
#define PKI_NOBODY UINT32_MAX
#define PKI_SPECIAL (1u << 31)
#define PKI_MIRRORED (1u << 30) /* and mirrors have been told of its begin (core/mirror.h) */
#define PKI_SAMPLED (1u << 29)  /* and events have been read at its begin (core/events.h) */
#define PKI_FRAME_ID (PKI_SAMPLED - 1)

/* An open region. */
typedef struct pki_frame {
    uint64_t start;
    uint32_t id;
    uint32_t reserved;
} pki_frame;

_Static_assert(sizeof(pki_frame) == PKI_PLACE_STEP, "its offset says its depth");

typedef struct pki_work {
    uint64_t bytes, flops;
    uint64_t payload, payload_type;
    uint64_t tag; /* of a message: PKI_TAGGED | tag; else 0 */
} pki_work;

static inline bool pki_worked(const pki_work *work)
{
    return work->bytes || work->flops || work->payload_type;
}

/* The second slot of a region's record that has it. */
static inline pki_record pki_work_slot(const pki_work *work)
{
    return (pki_record){work->bytes, work->flops, work->payload_type, work->payload};
}

/* A call that was lost although calls inside it may have been recorded: only who folds the ring
 * knows how much of its time was theirs. */
typedef struct pki_loss {
    uint64_t own; /* ns, those of lost calls inside it taken off */
    uint64_t at;  /* the cursor of the next free record then */
    uint16_t id, depth;
} pki_loss;

/* A stay in the ring or in a spare segment. */
typedef struct pki_turn {
    uint32_t segment; /* its offset in the arena, in pages; 0: the ring */
    uint32_t end;     /* where the owner left it: written before the next turn begins; whoever
                         folds may take back what has been undone */
    uint32_t lapped;  /* the owner has come round in it: before, nothing but zeros lies ahead */
} pki_turn;

#define PKI_TURNS 128u /* of one thread that are not released yet, at most */

/* An open call that is not timed (core/thin.h), by the timed one around it. */
typedef struct pki_untimed {
    uint32_t id;
    uint32_t place; /* the low half of state as it began, */
    uint64_t start; /* and when the top frame had: another one of the same depth is told by it,
                       unless it began in the same tick: then the call passes for open in it, and
                       its end closes less, or more, than it should. A clock has to tick
                       slower than a region takes for that, and a program leave open what
                       is thinned */
} pki_untimed;

#define PKI_UNTIMED_MOST 64u /* calls beyond are timed */

typedef struct pki_counted pki_counted;

#define PKI_ENDS 128u /* of spans, without a record, not folded yet */

#define PKI_LOSSES (2 * PKI_DEPTH_MAX) /* not folded yet; see pki_push */

enum pki_thread_life {
    PKI_THREAD_FREE,
    PKI_THREAD_LIVE, /* owned by a thread */
    PKI_THREAD_LEFT  /* the thread has ended; what it left is to be taken, then the block is free */
};

/* Whoever empties the rings sleeps on it; owners ring it when much is waiting in theirs. */
extern pki_bell pki_collector_bell;

struct pki_registry;

typedef struct pki_thread {
    /* Read by every region, state written by every region. Owner's. */
    uint64_t state; /* low half: PKI_PLACE of the top frame; high half: offset of the next record
                       in the ring */
    uint32_t limit; /* the fast path may push a frame while the low half is below this; 0: never */
    uint32_t
        stop; /* the fast path may not write a record here: end of the ring, or not taken yet */
    pki_record *ring; /* the owner's: where it writes, the ring or a segment as large */
    uint32_t ring_bytes;
    uint32_t monotonic; /* ticks are CLOCK_MONOTONIC's; every region takes the slow path */

    /* The first and the last are guards that match no region. The next one is still in the first
     * line, so that a region with cold caches waits for no other. */
    pki_frame frames[PKI_DEPTH_MAX + 2];

    uint32_t ended;  /* the session is over for this block; pk_stop's */
    uint32_t over;   /* open regions beyond PKI_DEPTH_MAX */
    uint64_t laps;   /* bytes of earlier rounds through the ring, and of earlier turns; stored
                        before state goes back to the start */
    uint64_t others; /* ring slots that held something else than a region */
    uint64_t points_pushed; /* points among them */
    uint64_t dropped;
    uint64_t unbalanced;
    uint64_t too_deep;
    uint64_t stray_ends;
    uint64_t points_dropped;
    uint64_t not_finite;
    uint64_t laps_behind; /* laps, stored behind it: see pki_thread_position */
    uint32_t turn;        /* stored before the state that begins it... */
    uint32_t turn_behind; /* ...and behind it */
    uint32_t ring_turn;   /* the last one in the ring */
    uint32_t starved;     /* no memory for more slots in `lost` */
    uint32_t named;       /* by pk_thread_set_name */
    uint64_t steps;       /* made by this thread; set before the first record of the first one */
    uint64_t lost_since_step;
    uint32_t mixed;   /* regions up to this depth may have recorded and lost calls inside them */
    uint32_t session; /* its number, which spans carry */
    uint64_t losses_made;
    pki_loss losses[PKI_LOSSES];

    uint32_t span_serial; /* the next span's... */
    uint32_t span_left;   /* ...and so many more in a row are this thread's */
    pki_span_tally spans;

    pki_table lost;       /* distributions of calls whose records were dropped */
    pki_slot last_resort; /* and of those for which that table found no memory */

    /* The collector's. Cursors (core/ring.h). */
    uint64_t taken[2];     /* by generation; see lib/core/arena.h */
    uint64_t released;     /* the owner may overwrite up to here */
    uint64_t folded;       /* entered into distributions */
    uint64_t undone_until; /* its position as it comes to where folding stands, which was ahead of
                              it in that turn in the ring: see measure/fold/walk.h */
    uint64_t undone_turn;
    uint64_t rated_bytes; /* the thread's position as its rate was looked at (collector/drain.h) */
    uint64_t recorded;    /* calls of region records folded */
    uint64_t untimed_counted; /* those of them that were counted only */
    uint64_t points;          /* others, folded: what has an event of its own in the trace */
    uint64_t populated;       /* ring bytes brought in */
    uint64_t losses_folded;
    uint64_t inside[PKI_DEPTH_MAX + 2];   /* by depth: ns of recorded calls there, and of what a
                                           step has been credited with, that belong to the region
                                           that is open around them */
    uint64_t folded_bytes, folded_others; /* as laps and others are the owner's count */
    uint64_t folded_ticks;                /* of the last record */
    uint64_t kinds[PK_WAIT + 1]; /* self time by kind, ns, as of the last round; for who looks from
                                    outside */
    uint32_t name_written;
    uint32_t pending_counted; /* 1: the counted calls that no record carries have been added */
    uint64_t sealed; /* the state at which the session ended for its readers; 0: it goes on */
    uint64_t sealed_turn;
    uint64_t sealed_bytes, sealed_others;

    struct pki_registry *registry;
    struct pki_thread *next_free;
    uint32_t life; /* an enum pki_thread_life */
    uint32_t tid;
    uint32_t index;
    uint32_t name_version; /* grows when name changes; the collector writes it out again */
    char name[PKI_THREAD_NAME];
    uint32_t deep[PKI_DEEP_KEPT];
    pki_work work[PKI_DEPTH_MAX + 2];
    pki_counted *counted; /* by name id; changes under the registry's lock */
    uint32_t counted_size;
    uint32_t untimed_open;
    uint64_t seed; /* of the gaps between timed calls */
    pki_untimed untimed[PKI_UNTIMED_MOST];
    uint64_t lost_inside[PKI_DEPTH_MAX + 2]; /* of the region open there: ns of calls right inside
                                                     it that have no record */
    pki_record *home;                        /* the ring */
    pki_turn turns[PKI_TURNS];               /* turn t is at t % PKI_TURNS; the first is the ring */
    uint32_t ends_made, ends_folded;         /* ends of spans that found no room in the ring: who */
    pki_record ends[PKI_ENDS]; /* folds knows which of them are a span's first. At % PKI_ENDS */
} PKI_ALIGNED pki_thread;

_Static_assert(offsetof(pki_thread, frames) == PKI_PLACE_BASE, "a frame's offset says its depth");

/* What the fast path goes by: the thread's block, or one without room for a frame. In libpk.so too
 * a fixed distance from the thread pointer: one load. */
extern _Thread_local pki_thread *pki_self;

/* The thread's block, or the sentinel. */
extern _Thread_local pki_thread *pki_own;

/* Who has no block yet. */
extern pki_thread pki_sentinel;

/* While a thread is amid a slow path of ours, pki_self points here. A signal handler that
 * interrupts it there and records finds no room, and learns at the head of each slow path why:
 * whatever it would touch may be half of something, and a lock that it would take may be held below
 * it on the same stack. What it has to tell is dropped and counted. */
extern pki_thread pki_amid;

/* Every slow path, on a thread of the program. False: this is a handler, amid another one. */
static inline bool pki_is_amid(void)
{
    return pki_load(&pki_self) == &pki_amid;
}

static inline bool pki_enter(void)
{
    if (pki_is_amid())
        return false;
    pki_store(&pki_self, &pki_amid);
    pki_compiler_fence();
    return true;
}

static inline void pki_leave(void)
{
    pki_compiler_fence();
    pki_store(&pki_self, pki_own);
}

/* Fills in what a block needs before it is anybody's. ring_bytes a multiple of a record's. */
void pki_block_init(pki_thread *t, pki_record *ring, uint32_t ring_bytes, uint32_t monotonic);

/* Has the thread a block, of whatever session? */
bool pki_thread_is_joined(const pki_thread *t);

/* This thread's block, if its session goes on. A thread without one has no open regions: if there
 * was a begin, it has been counted as refused. */
pki_thread *pki_thread_joined(void);

/* From here on the thread records there; for tests and for our own measurement, too. */
static inline void pki_thread_be(pki_thread *t)
{
    pki_own = t;
    if (!pki_is_amid())
        pki_store(&pki_self, t);
}

/* The low half of state with so many regions open: the top frame's offset, which leaves the low
 * bits to the type of its record. */
#define PKI_FRAME_OFFSET(depth) PKI_PLACE(PKI_RECORD_REGION, depth)

static inline pki_frame *pki_top_frame(pki_thread *t, uint64_t state)
{
    return (pki_frame *)((char *)t + (uint32_t)state - PKI_RECORD_REGION);
}

/* The owner's. */
static inline pki_record *pki_record_at(const pki_thread *t, uint32_t offset)
{
    return (pki_record *)((char *)t->ring + offset);
}

/* May two beginnings be the same nanosecond? Counters that advance in steps (100 MHz on Zen 4) add
 * a tick now and then, so equal ticks would not tell. */
static inline bool pki_is_tie(uint64_t around, uint64_t start)
{
    return start - around <= PKI_TICKS_IN_NS;
}

/* How many of the open regions around this one began with it. */
static inline unsigned pki_count_ties(const pki_frame *f)
{
    unsigned n = 0;
    while (n < PKI_DEPTH_MAX && pki_is_tie(pki_load(&f[-1].start), pki_load(&f->start))) {
        n++;
        f--;
    }
    return n;
}

/* The state that everybody but the owner goes by. A thread may be amid a call when its session
 * ends; what it does then must not be both an open region, closed on its behalf, and a record. */
static inline uint64_t pki_thread_seen(const pki_thread *t)
{
    uint64_t sealed = pki_load(&t->sealed);
    return sealed ? sealed : pki_load_acquire(&t->state); /* pairs with the release of state */
}

/* Open regions in that state. */
static inline unsigned pki_depth_in(uint64_t state)
{
    unsigned depth = ((uint32_t)state - PKI_FRAME_OFFSET(0)) / (unsigned)sizeof(pki_frame);
    return PKI_MIN(depth, PKI_DEPTH_MAX);
}

/* Name id of the innermost one, to its owner; 0: none is open. */
static inline uint32_t pki_open_region(const pki_thread *t)
{
    unsigned depth = pki_depth_in(pki_load(&t->state));
    return depth ? pki_load(&t->frames[depth].id) & PKI_FRAME_ID : 0;
}

/* Appends n records in one piece and pops `pop` frames with them; false, and nothing done, if the
 * ring has no room. */
bool pki_push(pki_thread *t, const pki_record *records, unsigned n, unsigned pop);

/* The same for what is not a region, counted as a point or as a dropped one. */
bool pki_push_point(pki_thread *t, const pki_record *records, unsigned n);

/* The owner's distribution for a call without a record; never NULL. */
pki_slot *pki_lost_slot(pki_thread *t, uint32_t id);

/* Where the innermost open region of that name collects what its end has to tell, and the id of the
 * region around it, 0 for none. NULL: no such region is open. */
pki_work *pki_region_work(pk_region *region, uint32_t *parent);

/* Gives the innermost open region of that name, or a mark at this moment, a number: an argument in
 * the trace. */
void pki_region_payload(pk_region *region, pki_payload_type type, uint64_t bits);
void pki_mark_payload(pk_region *region, pki_payload_type type, uint64_t bits);

#endif
