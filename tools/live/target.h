/* tools/live/target.h - the processes that `pk top`, `pk where` and `pk capture` are asked about */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Each file that the process has mapped for writing and shares, opened for reading; `take` owns the
 * descriptor and answers whether to go on. False and errno: it could not be looked into. */
typedef bool process_take_file(void *user, int fd, const char *path);
bool process_open_shared(int pid, process_take_file *take, void *user);

/* ---- the processes that `pk top`, `pk where` and `pk capture` are asked about ---- */

/* TARGET is the number of a process, the file of an arena, or a folder of them. An arena is read
 * through its file, never mapped: the process is neither stopped nor touched, whoever truncates the
 * file raises no signal here, and nothing that is read is believed before it has been compared with
 * what there is. All that is known of one is a copy, as of the last target_refresh.
 *
 * Reading a word that its process writes meanwhile gives the old or the new one; of several words
 * that belong together, see live/snapshot.h. */

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
