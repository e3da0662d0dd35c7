/* tools/live/live.h - processes that run, or did: looked at from outside, by their arenas */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "complaint.h"
#include "core/arena.h"
#include "core/thread.h"

/* ---- what /proc says of a process, which hears nothing of it ---- */

/* A process and when it began, in the kernel's unit: its number alone may be another's by now. */
typedef struct process {
    int pid; /* as this system numbers it; 0: none */
    uint64_t began;
} process;

/* 'R', 'S', 'D', 'T' and so on, as in ps; 0 if it is gone. */
char process_state(const process *p);

/* The thread that its process, which calls itself own_pid, numbers so, as this system does; 0 if it
 * is gone. */
int process_thread(const process *p, uint32_t own_pid, uint32_t own_tid);

/* The thread's state as in ps, and the kernel's function that it waits in ("" if it does not, or
 * must not be seen). 0 if it is gone. */
char process_thread_state(const process *p, int tid, char *waits_in, size_t size);

/* ---- the processes that `pk top`, `pk where` and `pk capture` are asked about ---- */

/* TARGET is the number of a process, the file of an arena, or a folder of them. An arena is read
 * through its file, never mapped: the process is neither stopped nor touched, whoever truncates the
 * file raises no signal here, and nothing that is read is believed before it has been compared with
 * what there is. All that is known of one is a copy, as of the last target_refresh.
 *
 * Reading a word that its process writes meanwhile gives the old or the new one; of several words
 * that belong together, see the snapshot below. */

typedef enum target_state {
    TARGET_RUNNING, /* the process is there, and its session open */
    TARGET_STOPPED, /* there, but stopped: by SIGSTOP, a terminal, a debugger */
    TARGET_GONE,    /* ended without pk_stop: killed, crashed, _exit */
    TARGET_ENDED    /* pk_stop was called; the arena is what it left */
} target_state;

typedef struct target {
    int fd;             /* of the arena, for reading */
    char *path;         /* of the arena; of one in memory what /proc shows */
    bool in_memory;     /* there is no file: it ends with its process */
    uint64_t inode;     /* the file's */
    uint64_t bytes;     /* the file has */
    process process;    /* pid 0: it is gone, or cannot be seen from here (another namespace) */
    char process_state; /* as in ps; 0: it is gone, or cannot be seen */
    target_state state;
    pki_arena_header *header; /* a copy, checked: counts and offsets are within bounds */
} target;

typedef struct targets {
    target *all; /* by rank, then by pid */
    size_t count;
    complaint *skipped; /* in folders: what looked like an arena and is none that can be read */
    size_t skipped_count;
} targets;

/* What each of the operands means, in one list without repetitions. False, and why, if one cannot
 * be had, or if there is nothing in a folder. To be closed in any case. */
bool targets_open(targets *t, char **names, size_t count, complaint *why);
void targets_close(targets *t);

/* Header and state as of now. False if the arena can no longer be read: the copy is as it was. */
bool target_refresh(target *t);

/* So many bytes at that offset. False if the arena has fewer. */
bool target_read(const target *t, uint64_t offset, void *to, size_t bytes);

/* Another descriptor of the same file, with these flags of open(2): who wants to write. -1 and
 * errno. */
int target_reopen(const target *t, int flags);

/* How many nanoseconds of its session have passed; of one that is gone, when it was last heard of.
 */
uint64_t target_now_ns(const target *t);

/* "running", "stopped", "gone", "ended". */
const char *target_state_text(target_state state);

/* "rank 3, pid 4711 on HOST (PROGRAM)", as far as known. At most so many bytes, control characters
 * made '?'. */
#define TARGET_TEXT 320
void target_describe(const target *t, char text[TARGET_TEXT]);

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

/* ---- which of several ranks the others wait for, and how that is known ---- */

/* Evidence, the strongest first:
 *   - its process is gone, or stopped
 *   - it is missing in a collective that others have begun: their last operation that is complete
 *     on a communicator is n, something is under way, and this rank has not enqueued n + 1 (or has
 *     enqueued it, and not started it). Who is itself in a collective where somebody else is
 *     missing is not to blame; nor, where a process is gone or stopped, who has not come and stands
 *     in a region of kind comm or wait: perhaps it waits for that one, or for who does, and perhaps
 *     for something else, so it is told apart from those that are behind. Communicators with
 *     messages on them are no evidence: ranks count differently
 *   - it is in an earlier step than others
 *   - it is inside a region that others have left, who stand in a region of kind comm or wait */

typedef struct view {
    target *t;
    snapshot s;
} view;

typedef enum behind_why {
    BEHIND_NOT,
    BEHIND_GONE,
    BEHIND_STOPPED,
    BEHIND_MISSING,
    BEHIND_STEP,
    BEHIND_REGION,
    BEHIND_PERHAPS
} behind_why;

#define BEHIND_WORDS 600

/* Behind what has been said. */
void words_append(char words[BEHIND_WORDS], const char *format, ...) PKI_PRINTF(2, 3);

typedef struct behind_row {
    size_t of; /* which of the looks */
    behind_why why;
    char words[BEHIND_WORDS]; /* "has not entered ..." */
} behind_row;

typedef struct behind {
    behind_row *rows; /* of those that are, the strongest evidence first */
    size_t count;
    size_t perhaps;             /* rows after those: wait, perhaps for one of them */
    char verdict[BEHIND_WORDS]; /* in words, also where nobody is */
} behind;

/* False without memory. */
bool behind_find(behind *b, const view *views, size_t count);
void behind_finish(behind *b);

/* "missing in a collective" and so on. */
const char *behind_why_text(behind_why why);

/* "rank 3", "pid 4711". */
#define VIEW_NAME 24
void view_name(const view *l, char name[VIEW_NAME]);

/* "; it is in step 12, in load for 3 s, asleep in pipe_read", behind what stands there. */
void view_position(const view *l, char words[BEHIND_WORDS]);

/* The innermost open region of the thread that makes the steps; NULL: none is open. */
const live_region *view_innermost(const view *l);

/* ---- collectives that some ranks have begun and others have not ---- */

typedef struct collective {
    const char *comm; /* as all ranks call it */
    const char *library;
    int32_t size;
    uint64_t operation; /* its number on the communicator */
    bool started;       /* by those inside; else enqueued alone is known */
    size_t inside;      /* so many are */
    bool since_known;
    uint64_t shortest_ns; /* the last of them came so long ago */
} collective;

/* ---- what NCCL's RAS says of the whole job: `ncclras -f json` ---- */

/* The strongest evidence first. Who is himself in a communicator where somebody is missing is not
 * to blame for what he has not launched on another one; nor is who goes on. */
typedef enum ras_why {
    RAS_SILENT, /* dead, or does not answer */
    RAS_ERROR,
    RAS_OTHER, /* has launched other operations than the others */
    RAS_MISSING,
    RAS_NOT_JOINED, /* to a communicator that is being made */
    RAS_LEFT,
    RAS_FINE
} ras_why;

typedef struct ras_row {
    ras_why why;
    int64_t rank, pid, device; /* -1: not known */
    char communicator[24];     /* the largest one that it is in: its rank is that there */
    char host[64];             /* an address */
    char name[48];             /* "rank 3" */
    char words[BEHIND_WORDS];  /* "has not launched ..." */
} ras_row;

typedef struct ras {
    ras_row *rows;
    size_t count, first; /* all; those with the strongest evidence */
    char about[BEHIND_WORDS];
    char verdict[BEHIND_WORDS];
} ras;

/* Of a file, "-" the standard input, joined with what is seen of processes here. False, and why. */
bool ras_find(ras *to, const char *path, const view *views, size_t count, complaint *why);
void ras_finish(ras *r);

/* "missing in a collective" and so on. */
const char *ras_why_text(ras_why why);

/* ---- what `pk where` prints ---- */

typedef struct where {
    view *views;
    size_t count;
    behind behind;
    const ras *ras; /* NULL: was not asked for */
} where;

void where_text(const where *w, FILE *to);
void where_json(const where *w, FILE *to);
