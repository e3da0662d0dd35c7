/* lib/core/cursor.h - where a reader stands in what a thread has recorded.
 *
 * A cursor is a turn and an offset in that turn's memory, the ring or a spare segment
 * (core/spare.h). In the ring a thread goes round and round within one turn, as long as there is
 * room, so offsets there count modulo the ring's size. A segment is gone through once, and its last
 * slot stays empty. A cursor at a turn's end is the same as the next one's beginning; readers go on
 * to it when they see a head in a later turn.
 */
#pragma once

#include "core/thread.h"

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
