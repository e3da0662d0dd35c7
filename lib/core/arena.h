/* lib/core/arena.h - the one mapping that holds all that is recorded, readable by another process.
 *
 *     header      who, when, the clock map, the commit, the table of blocks
 *     spans       handed out one after the other, each backed before use (base/memory.h):
 *       output    formatted text on its way to the trace file
 *       names     names of regions and counters, appended
 *       blocks    one per recording thread: pki_thread and its ring (lib/core/thread.h)
 *       segments  as large as a ring, for whose ring is full (lib/core/ring.h)
 *       slots     distributions, 64 KiB at a time (lib/stats/slot.h)
 *       comms     how far each communicator has come (lib/comm/live/progress.h)
 *       history   what the last steps left, in chunks (lib/history/history.h)
 *
 * Pointers stored inside are addresses of the process that wrote them; header.base turns them into
 * offsets, so a copy of the arena can be read anywhere (`pk recover`). A reader checks magic,
 * version and layout first.
 *
 * The commit. What the trace file holds and how far each ring has been taken must change together,
 * or a killed run would lose or repeat events. So both exist twice: the collector prepares the set
 * that is not in force (commit[], each block's taken[]) and then puts it in force by storing one
 * integer, `generation`.
 */
#ifndef PKI_CORE_ARENA_H
#define PKI_CORE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pk/session.h>

#include "base/clock.h"
#include "base/memory.h"
#include "core/names.h"
#include "core/overhead.h"
#include "core/record.h"

#define PKI_ARENA_MAGIC "PKARENA"
#define PKI_ARENA_VERSION 3u
#define PKI_BLOCKS_MAX 32768u
#define PKI_NAMES_SPAN_BYTES 65536u

typedef struct pki_commit {
    uint64_t file_bytes; /* of trace text in the file, before the closing brackets */
    uint64_t buffered;   /* bytes behind them, in the output span */
    uint64_t events;     /* in both */
    uint64_t unwritten;  /* events given up: disk full, size bound */
    uint64_t ticks;      /* the time: all that is in force was recorded before */
    uint64_t closed;     /* of so many blocks, what was open at the session's end has been closed */
    uint64_t history;    /* position up to which the history holds what has been taken */
    uint64_t part;       /* files of the trace before the one that is written */
} pki_commit;

/* What goes on, for who looks from outside (tools/live): as of the collector's last round. */
typedef struct pki_live {
    uint64_t totals;     /* offset of the first slot of all threads' distributions, ns; 0: none yet
                            (release) */
    uint64_t streams;    /* the same of spans on devices' streams */
    uint64_t step_ticks; /* when the last step ended, as who made it says; 0: none has */
    uint64_t round_ticks;
} pki_live;

/* What `pk capture` writes into the arena of a running process; the serial last. */
typedef struct pki_request {
    uint32_t serial; /* another one for each request; 0: there was none */
    uint32_t steps;
    uint64_t first;
} pki_request;

typedef enum pki_answer_state {
    PKI_ANSWER_NONE,
    PKI_ANSWER_ACCEPTED,
    PKI_ANSWER_LATE,    /* the step had passed */
    PKI_ANSWER_OFF,     /* requests are not among the clauses */
    PKI_ANSWER_REFUSED, /* the hour's budget has no room */
    PKI_ANSWER_FAILED,  /* the file could not be written */
    PKI_ANSWER_WRITTEN
} pki_answer_state;

/* And what the process makes of it. */
typedef struct pki_answer {
    uint32_t serial; /* of the request that this is about (release) */
    uint32_t state;  /* a pki_answer_state (release) */
    uint64_t next;   /* the step that ran when the request was seen */
    uint32_t cut;    /* 1: the run ended first */
    uint32_t reserved;
    char path[1024]; /* of the file, once it is written */
} pki_answer;

/* What the watchdog has said (session/live/live.h). */
typedef struct pki_hang {
    uint32_t count;       /* alarms so far (release: the words are whole) */
    uint32_t raised;      /* 1: nothing has ended since */
    uint64_t raised_unix; /* of the last one, ns since 1970 */
    uint64_t quiet_ns;    /* for how long nothing had ended then */
    char words[1000];     /* lines */
} pki_hang;

/* Ranks that are late, as rank 0 has said (session/job/stragglers.c). */
typedef struct pki_stragglers {
    uint32_t count; /* of them (release: the words are whole) */
    uint32_t reserved;
    uint64_t first, last; /* the steps that were compared; both 0: none */
    char words[2400];     /* a line each, of as many as have room */
} pki_stragglers;

typedef struct pki_arena_header {
    char magic[8];
    uint32_t version;
    uint32_t layout;  /* sizes of the structures inside, folded; differs when the compiler's idea
                         differs */
    uint64_t bytes;   /* of the mapping */
    uint64_t base;    /* its address in the process that wrote it */
    uint64_t used;    /* handed out */
    uint32_t running; /* 0 after a clean stop */
    uint32_t pid;
    int32_t rank, world_size;
    uint64_t start_unix; /* ns since 1970 */
    char host[64];
    char program[128];
    char job[64]; /* base/process.h; so are the next members */
    int32_t local_rank, local_size, node;
    char clock_id[96];    /* whose clock it was (base/process.h) */
    char trace_name[256]; /* last part of the trace's path; "" without one */
    uint32_t compressed;  /* the trace file is gzip */
    uint32_t ring_records;

    uint32_t
        generation; /* commit[generation & 1] and taken[generation & 1] are in force (release) */
    uint32_t block_count; /* release; readers acquire */
    pki_commit commit[2];
    uint64_t output, output_bytes; /* offset and size of the output span; 0 without a trace */
    uint64_t names;                /* offset of the first names span */
    uint64_t comms;                /* of the first comms span; 0: none */
    uint64_t history; /* of what the last steps left (lib/history/history.h); 0: none */

    pki_request request; /* from outside */
    pki_answer answer;

    pk_counts ended; /* what blocks counted for threads that have ended */
    pki_span_tally ended_spans;
    uint64_t steps;  /* made so far, whoever made them */
    uint64_t joined; /* threads, ever */
    pki_toll toll;   /* what perfkit has taken; a second old at most */
    pki_clock_map clock;
    pki_live live;
    pki_hang hang;
    pki_stragglers stragglers;
    char trace_path[4096];           /* from the root; "" without one. It may have been moved */
    uint32_t blocks[PKI_BLOCKS_MAX]; /* offsets of pki_threads in pages */
} pki_arena_header;

/* A names span: entries follow; `used` is released behind each. */
typedef struct pki_names_span {
    uint64_t next; /* offset, 0 for none */
    uint64_t used; /* bytes behind this header */
} pki_names_span;

typedef struct pki_names_entry {
    uint32_t id, kind;
    uint16_t bytes; /* of the whole entry, a multiple of 8 */
    uint16_t length, key_length, reserved;
    int64_t value;
    char text[]; /* name, key */
} pki_names_entry;

/* Sequence numbers of a communicator's last operations, as of the collector's last round. */
typedef struct pki_comms_entry {
    uint32_t name;      /* id; 0: nothing was done on it */
    uint32_t under_way; /* so many are: they need not complete in their order */
    uint64_t enqueued, started, completed;
    uint32_t messages; /* 1: not collectives alone, so ranks count differently */
    uint32_t reserved;
} pki_comms_entry;

#define PKI_COMMS_IN_SPAN ((PKI_PAGE - sizeof(uint64_t)) / sizeof(pki_comms_entry))

typedef struct pki_comms_span {
    uint64_t next; /* offset, 0 for none (release) */
    pki_comms_entry entries[PKI_COMMS_IN_SPAN];
} pki_comms_span;

/* A process's hold on an arena it writes. */
typedef struct pki_arena {
    pki_arena_header *header; /* also the mapping's start */
    pki_spans spans;
    pki_names_span *last_names;
    uint64_t mirrored[PKI_NAMES_MAX / 64]; /* which names are in the names spans */
} pki_arena;

/* On a memory file or a fresh empty file, which the arena then owns. NULL and errno; it stays the
 * caller's then. */
pki_arena *pki_arena_create(const pki_owned *file, size_t bytes);
void pki_arena_destroy(pki_arena *arena);

/* Sees to it that the arena holds the name's text. False if there is no room. One caller at a time.
 */
bool pki_arena_mirror_name(pki_arena *arena, uint32_t id);

uint32_t pki_arena_layout(void);

/* The process that made the arena in this file, as its header says; 0 if that is none. */
uint32_t pki_arena_pid(const char *path);

/* As of pki_spans. */
static inline void *pki_arena_claim(pki_arena *arena, size_t bytes)
{
    return pki_spans_claim(&arena->spans, bytes);
}

static inline uint64_t pki_arena_offset(const pki_arena *arena, const void *at)
{
    return pki_spans_offset(&arena->spans, at);
}

static inline void *pki_arena_at(const pki_arena *arena, uint64_t offset)
{
    return pki_spans_at(&arena->spans, offset);
}

#endif
