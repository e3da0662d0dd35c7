/* lib/history/layout.h - what the last steps left, in the arena: pieces in a ring of chunks.
 *
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
 * a killed run's records are here or in their rings, never in both.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/model/operation.h"
#include "core/activity.h"
#include "core/record.h"

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

size_t pki_piece_put_track(char out[PKI_PIECE_BYTES], const pki_track *track);
size_t pki_piece_put_activity(char out[PKI_PIECE_BYTES], const pki_activity *activity);
bool pki_piece_track(const pki_piece *piece, pki_track *track);
bool pki_piece_activity(const pki_piece *piece, pki_decoded *decoded);
