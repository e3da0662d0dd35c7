/* lib/core/ring.h - a thread's ring: its owner's side, its readers, and memory it reaches into when
 * it is full */
#pragma once

#include "core/arena.h"
#include "core/thread.h"

/* ---- where a reader stands in what a thread has recorded ---- */

/* A cursor is a turn and an offset in that turn's memory, the ring or a spare segment
 * (below). In the ring a thread goes round and round within one turn, as long as there is
 * room, so offsets there count modulo the ring's size. A segment is gone through once, and its last
 * slot stays empty. A cursor at a turn's end is the same as the next one's beginning; readers go on
 * to it when they see a head in a later turn. */

static inline uint64_t pki_cursor_of(uint32_t turn, uint32_t offset)
{
    return (uint64_t)turn << 32 | offset;
}

static inline uint32_t pki_cursor_turn(uint64_t cursor)
{
    return (uint32_t)(cursor >> 32);
}

static inline uint32_t pki_cursor_offset(uint64_t cursor)
{
    return (uint32_t)cursor;
}

static inline const pki_turn *pki_turn_at(const pki_thread *t, uint32_t turn)
{
    return &t->turns[turn % PKI_TURNS];
}

static inline bool pki_turn_is_in_ring(const pki_thread *t, uint32_t turn)
{
    return pki_load(&pki_turn_at(t, turn)->segment) == 0;
}

/* The memory of one of the thread's turns, in its own process. */
const pki_record *pki_turn_records(const pki_thread *t, uint32_t turn);

static inline const pki_record *pki_record_in(const pki_record *records, uint32_t offset)
{
    return (const pki_record *)((const char *)records + offset);
}

/* An offset as a state has it. Behind the ring's last slot is its first one; a segment ends before
 * its last slot, and who has been undone amid it may have come past that. */
static inline uint32_t pki_cursor_offset_in(const pki_thread *t, uint32_t turn, uint32_t offset)
{
    if (offset != t->ring_bytes)
        return offset;
    return pki_turn_is_in_ring(t, turn) ? 0 : offset - (uint32_t)sizeof(pki_record);
}

/* Up to where there are records, whole ones, to a reader. */
uint64_t pki_thread_head(const pki_thread *t);

/* The turn that the thread's state belongs to, of a copy of its block, too. */
uint32_t pki_turn_of(uint64_t state, uint32_t turn, uint32_t behind);

/* Nothing but zeros lies between an owner who is there and where readers have come: in a segment,
 * which is gone through once, and in the ring before its owner has come round. At 0 that one may be
 * about to. */
static inline bool pki_turn_is_straight(const pki_thread *t, uint32_t turn, uint32_t head)
{
    return !pki_turn_is_in_ring(t, turn) || (head > 0 && !pki_load(&pki_turn_at(t, turn)->lapped));
}

/* Where a reader who stands at this offset of this turn, bound for `until`, has to stop in it. What
 * a handler wrote and was undone may lie behind its end. */
static inline uint32_t pki_turn_until(const pki_thread *t, uint32_t turn, uint32_t at,
                                      uint64_t until)
{
    uint32_t end = turn == pki_cursor_turn(until) ? pki_cursor_offset(until)
                                                  : pki_load(&pki_turn_at(t, turn)->end);
    return pki_turn_is_straight(t, turn, end) ? PKI_MAX(at, end) : end;
}

/* Within a turn. */
static inline uint32_t pki_ring_next(const pki_thread *t, uint32_t offset)
{
    offset += (uint32_t)sizeof(pki_record);
    return offset == t->ring_bytes ? 0 : offset;
}

static inline uint32_t pki_ring_bytes_between(const pki_thread *t, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : t->ring_bytes - from + to;
}

/* Bytes of records between two cursors, the second one not before the first. */
uint64_t pki_cursor_bytes_between(const pki_thread *t, uint64_t from, uint64_t to);

/* ---- memory that rings reach into while the collector is held up ---- */

/*
 * A ring is small, so that it stays in the processor's cache. One write to a disk may last as long
 * as ten rings take to fill. So the process has spare segments, each as large as a ring. A thread
 * whose ring is full goes on in a segment, and comes back when its readers have left the ring. Each
 * stay is a turn:
 *
 *     turn 5              turn 6              turn 7              turn 8
 *     [ ring, full ] ---> [ segment A ] ----> [ segment B ] ----> [ ring ] ...
 *           ^ readers                               ^ owner
 *
 * The collector makes segments ahead of time, where a thread records fast enough to need them. So
 * the owner neither allocates nor takes a page fault. Without a free segment a full ring drops
 * records.
 *
 *              make                     the owner claims it
 *     GONE -----------------> FREE ------------------------> USED
 *       ^---------------------'  ^----------------------------'
 *          unwanted for a minute    read, zeroed, given back
 *
 * A late store. A signal handler interrupts the fast path and records until its thread is in a
 * later turn. When the handler returns, the interrupted call still writes into the memory of the
 * old turn. By then the collector may have read, zeroed and freed that segment. In another thread's
 * hands the store would be a wrong record. So the segment is kept: only its own thread may claim
 * it. The collector lifts that when it sees the thread without an open region, or in another
 * outermost region than before: the interrupted call's region was open, so the call is over.
 *
 * The collector zeroes a segment before it is free again, and a ring before its owner comes back.
 * So what a late store leaves out of order are slots between zeros, and a zero is no record.
 */

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

typedef struct pki_spares {
    uint32_t count; /* that have a segment, in whatever state (release); only grows */
    pki_spare all[PKI_SPARES_MOST];
} pki_spares;

/* ---- the owner's, off the fast path ---- */

static inline bool pki_is_in_segment(const pki_thread *t)
{
    return t->ring != t->home;
}

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
