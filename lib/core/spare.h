/* lib/core/spare.h - memory that rings reach into while the collector is held up.
 *
 * A ring has to be small, so that it stays in the processor's cache; a write to a disk may take as
 * long as ten rings last. So the process has spare segments, each as large as a ring, which any of
 * its threads takes when its ring is full, and gives back as soon as they have been read. They are
 * made by the collector, ahead of time, where a program records fast enough to need them
 * (session/collector/drain.h): who records neither allocates nor takes a page fault. Where there
 * is none, or no more, a full ring drops as it would without.
 *
 * One that has been left may still be written to by its thread, once: by a store of the fast path
 * that a handler has interrupted, and gone on elsewhere meanwhile. Such a call's region is open
 * until it has been done. So a segment is kept for its thread, and is nobody else's, until that one
 * has been seen without an open region, or in another outermost one than as it came back.
 *
 * A segment is zeroed before it is spare again, and a ring before its owner comes back into it. So
 * what a handler leaves out of order there (measure/fold/walk.h) are slots that are no record.
 */
#pragma once

#include "core/arena.h"
#include "core/thread.h"

#define PKI_SPARES_MOST 64u

enum pki_spare_state {
    PKI_SPARE_GONE, /* to be made, or given back to the system */
    PKI_SPARE_FREE,
    PKI_SPARE_USED /* by a thread, or by who gives it back to the system */
};

typedef struct pki_spare {
    uint32_t segment;   /* offset in the arena, in pages */
    uint32_t word;      /* state | keeper << 2 (release, acquire) */
    uint64_t outermost; /* the collector's: when its keeper's outermost region had begun */
} pki_spare;

static inline enum pki_spare_state pki_spare_state_of(uint32_t word)
{
    return (enum pki_spare_state)(word & 3);
}

/* Index of the block that it is kept for, from 1; 0: anybody may have it. */
static inline uint32_t pki_spare_keeper_of(uint32_t word)
{
    return word >> 2;
}

typedef struct pki_spares {
    uint32_t count; /* that have a segment, in whatever state (release); only grows */
    pki_spare all[PKI_SPARES_MOST];
} pki_spares;

/* ---- the owner's, off the fast path ---- */

static inline bool pki_is_in_segment(const pki_thread *t)
{
    return t->ring != t->home;
}

/* Back into the ring, if readers have left it. False: it stays where it is. */
bool pki_spare_return(pki_thread *t);

/* Into a spare segment. False: there is none. */
bool pki_spare_enter(pki_thread *t);

/* ---- the collector's ---- */

/* Everything before that cursor has been read: its segments are spare again. */
void pki_spare_release(pki_thread *t, uint64_t cursor);

/* Of a block without an owner that has been read: its next one begins in the ring. */
void pki_spare_bring_home(pki_thread *t);

/* What has been kept for long enough is anybody's. */
void pki_spare_share(struct pki_registry *registry);

/* One more that is free, of so many bytes; `most` bounds how many there are. False: there is no
 * room. */
bool pki_spare_make(pki_spares *spares, pki_arena *arena, uint32_t bytes, uint32_t most);

/* Gives one that is free back to the system. False: none is. */
bool pki_spare_unmake(pki_spares *spares, pki_arena *arena, uint32_t bytes);

/* Those that are in memory, free or used; and those of them that are free and kept. */
uint32_t pki_spares_there(const pki_spares *spares);
uint32_t pki_spares_kept(const pki_spares *spares);
