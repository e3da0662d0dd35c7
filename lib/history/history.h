/* lib/history/history.h - keeps what the last steps left, whole and unformatted */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/model/communicator.h"
#include "core/activity.h"
#include "core/arena.h"
#include "core/record.h"
#include "core/thread.h"

/* ---- what the last steps left, in the arena: pieces in a ring of chunks ---- */

/*
 *     header.history -> head: which positions are kept, where each chunk lies, the steps
 *     chunk             pieces, one behind the other: runs of a ring's records, activities, and who
 *                       the threads and tracks are that they name
 *
 * A *position* counts the bytes that the history has ever held, so it grows for ever; position /
 * the bytes of a chunk is the chunk's number, and chunks[number % PKI_HISTORY_CHUNKS] its offset in
 * the arena. Each chunk names the threads and tracks of its own pieces: whoever reads begins with
 * the first piece of a chunk, whatever has gone before it. A piece lies in one chunk.
 *
 * Written under the drain lock. What is kept ends where the commit in force says (core/arena.h), so
 * a killed run's records are here or in their rings, never in both. */

#define PKI_HISTORY_CHUNKS 64u
#define PKI_HISTORY_LEAST ((uint64_t)1 << 20) /* bytes: pieces are small beside a chunk */
#define PKI_HISTORY_STEPS_MOST 65536u
#define PKI_HISTORY_STEPS_PAST 256u /* whose figures are known longer than they are kept */
#define PKI_PIECE_BYTES 8192u       /* none is longer, but for runs of records */

typedef enum pki_piece_kind {
    PKI_PIECE_END,      /* of the chunk */
    PKI_PIECE_RECORDS,  /* of the thread `id` */
    PKI_PIECE_THREAD,   /* `id` is its tid, `number` its place among the tracks; the name follows */
    PKI_PIECE_TRACK,    /* `id` is how activities call it; a pki_piece_track follows */
    PKI_PIECE_ACTIVITY, /* of the track `id`; a pki_piece_activity follows */
    PKI_PIECE_MEASURES  /* devices are measured from ns on (id 1), or no longer; ns follows */
} pki_piece_kind;

typedef struct pki_piece {
    uint32_t kind;
    uint32_t bytes; /* of the whole piece, a multiple of 16; a run of records grows */
    uint32_t id;
    uint32_t number;
} pki_piece;

typedef struct pki_history_step {
    uint64_t at; /* position: nothing that was recorded during the step lies before it */
    uint64_t number;
    uint64_t start, ticks; /* and how long it took */
    uint64_t items;
    uint32_t kind; /* name id; 0: the usual one */
    uint32_t reserved;
} pki_history_step;

typedef struct pki_history_head {
    uint64_t chunk_bytes;
    uint64_t first; /* position of the oldest that is kept (release) */
    uint64_t lost;  /* pieces that found no room while a capture was being written */
    uint64_t chunks[PKI_HISTORY_CHUNKS];
    uint32_t step_room, reserved;
    /* steps[n % step_room]: n below step_end is known, from step_first on it is kept (release) */
    uint64_t step_first, step_end;
    pki_history_step steps[];
} pki_history_head;

/* ---- reading ---- */

/* What lies at that offset of the arena; NULL if it does not have so many bytes. */
typedef struct pki_history_view {
    const char *base;
    size_t bytes;
    const pki_history_head *head;
    uint64_t end; /* position */
} pki_history_view;

/* The history of an arena that lies there, up to that position. False if there is none, or none
 * that makes sense: it may come from anywhere. */
bool pki_history_view_open(pki_history_view *view, const void *base, size_t bytes, uint64_t offset,
                           uint64_t end);

/* The step, if it is known; it is whole if it begins not before head->first. */
const pki_history_step *pki_history_find(const pki_history_view *view, uint64_t number);

/* Pieces in their order, from the first of the chunk in which `from` lies. */
typedef struct pki_history_reader {
    const pki_history_view *view;
    uint64_t at;   /* position of the next piece */
    uint64_t read; /* bytes so far: where chunks overlap, in a damaged arena, no more than it has */
} pki_history_reader;

pki_history_reader pki_history_read(const pki_history_view *view, uint64_t from);

/* NULL: there are no more. */
const pki_piece *pki_history_next(pki_history_reader *reader);

/* Records in a run, as far as they are within the view. */
const pki_record *pki_piece_records(const pki_history_reader *reader, const pki_piece *piece,
                                    uint32_t *count);

/* ---- pieces ---- */

/* A track's or activity's texts lie behind it; both fail (0, false) only for what does not fit, or
 * is damaged. Decoding: texts point into the piece. */
#define PKI_PIECE_ARGS 16

typedef struct pki_decoded {
    pki_activity activity;
    pki_operation operation;
    pki_activity_arg args[PKI_PIECE_ARGS];
} pki_decoded;

size_t pki_piece_put_activity(char out[PKI_PIECE_BYTES], const pki_activity *activity);
bool pki_piece_track(const pki_piece *piece, pki_track *track);
bool pki_piece_activity(const pki_piece *piece, pki_decoded *decoded);

/* ---- keeps what the last steps left, whole and unformatted ---- */

/*
 *     pki_history_round(h);                  // the collector begins to empty the rings
 *     pki_history_thread(h, thread);         // of this one
 *     pki_history_record(h, tid, r, slots);
 *     pki_history_activity(h, activity);
 *     pki_history_step_ended(h, r, more, kind);    // a step has ended: the oldest may go
 *
 * Who made the step is one thread; what others did in it may be taken a round earlier or later. So
 * a step begins, in the history, a round before its first record was taken.
 *
 * Room: chunks are claimed from the arena as they are needed, up to the bound; then the oldest
 * steps go, and where one step is larger than all of it, its beginning.
 *
 * Threads: one at a time (the drain lock). Everything takes NULL and then does nothing.
 * Failure: what finds no room is not kept, and counted. */

#define PKI_HISTORY_FREE UINT64_MAX

typedef struct pki_history pki_history;

/* NULL without memory, or room for the first chunk. steps > 0. */
pki_history *pki_history_create(pki_arena *arena, uint32_t steps, uint64_t bytes);
void pki_history_destroy(pki_history *history);

void pki_history_round(pki_history *history);
void pki_history_thread(pki_history *history, const pki_thread *thread);
void pki_history_record(pki_history *history, uint32_t tid, const pki_record *record,
                        const pki_record *more);
/* n regions' records of one slot each, one behind the other. */
void pki_history_regions(pki_history *history, uint32_t tid, const pki_record *records, uint32_t n);
void pki_history_step_ended(pki_history *history, const pki_record *record, const pki_record *more,
                            uint32_t kind);
void pki_history_activity(pki_history *history, const pki_activity *activity,
                          const pki_track *track);
void pki_history_measures(pki_history *history, uint64_t ns, bool on);

/* What is there now; what comes later changes nothing of it. */
bool pki_history_view_now(pki_history *history, pki_history_view *view);

/* Behind the last piece. */
uint64_t pki_history_end(const pki_history *history);

/* Rounds begun so far. */
uint64_t pki_history_rounds(const pki_history *history);

/* Nothing from this position on is given up, PKI_HISTORY_FREE: all may be. */
void pki_history_pin(pki_history *history, uint64_t position);
