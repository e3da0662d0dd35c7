/* tools/live/snapshot.h - where a process stands, read from its arena without its help */
#pragma once

#include "complaint.h"
#include "core/arena.h"
#include "live/target.h"

/* ---- an arena's bytes, read from its file and checked ---- */

/* All of them, or false. */
bool arena_file_read(int fd, uint64_t offset, void *to, size_t bytes);

/* Is it an arena, by its first bytes? */
bool arena_file_recognise(int fd);

/* The header of a file of so many bytes, into one that was all zero before the first time: magic,
 * version, layout and counts are as this program has them, its texts end, and of its lists there is
 * what is used. False, and why: `header` holds what could be read, within the same bounds. */
bool arena_file_header(int fd, uint64_t bytes, pki_arena_header *header, complaint *why);

/* ---- the names in an arena, read as they come ---- */

typedef struct live_name {
    uint32_t kind; /* stats/slot.h */
    int64_t value; /* of a variant; of a communicator its rank and size */
    char *text;    /* NULL: not known. Any bytes but NUL */
    char *key;     /* of a variant; of a communicator its library; of a counter its unit */
} live_name;

typedef struct live_names {
    live_name *all; /* by id */
    size_t room;
    uint64_t span, used; /* read up to there */
} live_names;

/* Never NULL; "(unknown)" for what has no name. */
const live_name *live_name_of(const live_names *names, uint32_t id);

/* ---- where a process stands, read without its help ---- */

/* A thread's state word and its open regions change together, a thousand times while they are read.
 * So the block is read twice, and taken only if the second reading shows what the first did: state,
 * rounds through the ring, drops, and every frame that counts as open. What moves faster than that
 * for a hundred tries is taken with the regions that stayed the same throughout, and marked. A
 * program that hangs is read whole at the first try. */

typedef struct live_region {
    uint32_t id;
    uint64_t since_ns;  /* of the session */
    uint32_t operation; /* what a call of it does on a communicator: a pk_comm_op + 1; 0: nothing */
    uint32_t comm;      /* its name */
    uint64_t sequence;  /* its lower half */
} live_region;

typedef struct live_thread {
    uint32_t tid, index; /* tid: as its process numbers it */
    char name[64];
    unsigned depth;
    live_region open[PKI_DEPTH_MAX]; /* outermost first */
    bool moving;                     /* further in, regions begin and end all the time */
    uint64_t steps, dropped;
    uint64_t kinds[PK_WAIT + 1];
    char system_state; /* as in ps; 0: cannot be seen */
    char waits_in[64]; /* the kernel's function; "": it does not wait, or cannot be seen */
} live_thread;

typedef struct live_comm {
    uint32_t name;
    uint32_t under_way;
    uint64_t enqueued, started, completed;
    bool messages; /* not collectives alone: other ranks count differently */
} live_comm;

/* All calls of a region so far, or of a counter's samples, of all threads. */
typedef struct live_calls {
    uint32_t id, kind;
    uint64_t slot;                       /* its offset */
    uint64_t count, sum, self, min, max; /* ns */
    uint64_t bytes, flops;
    double last; /* a counter's last value */
} live_calls;

typedef struct snapshot {
    uint64_t now_ns; /* of the session, when it was taken */
    uint64_t steps, step_since_ns;
    live_thread *threads;
    size_t thread_count, thread_room;
    live_comm *comms;
    size_t comm_count, comm_room;
    live_calls *calls; /* regions and the step, on all threads */
    size_t call_count, call_room;
    live_calls *streams; /* regions on streams of devices */
    size_t stream_count, stream_room;
    live_names names;
} snapshot;

/* Into a snapshot that is all zero or of the same target: target_refresh, and all that is known
 * then. False: the arena cannot be read any more, or there is no memory. */
bool snapshot_take(snapshot *s, target *t);
void snapshot_finish(snapshot *s);

/* Also what the kernel says of each thread: some system calls for each. */
void snapshot_read_kernel(snapshot *s, const target *t);

/* The distribution behind a row, in ns, as of now; into a structure that is complete then. False if
 * it cannot be read. */
bool snapshot_stats(const target *t, const live_calls *calls, pk_stats *stats);

/* The thread that makes the steps; without steps the first one that has something open, else the
 * first. NULL: no thread has recorded yet. */
const live_thread *snapshot_main(const snapshot *s);

/* The row of that name; NULL: none. */
const live_calls *snapshot_calls(const snapshot *s, uint32_t id);
