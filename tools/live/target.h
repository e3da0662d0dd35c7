/* tools/live/target.h - the processes that `pk top`, `pk where` and `pk capture` are asked about.
 *
 * TARGET is the number of a process, the file of an arena, or a folder of them. An arena is read
 * through its file, never mapped: the process is neither stopped nor touched, whoever truncates the
 * file raises no signal here, and nothing that is read is believed before it has been compared with
 * what there is. All that is known of one is a copy, as of the last target_refresh.
 *
 * Reading a word that its process writes meanwhile gives the old or the new one; of several words
 * that belong together, see live/snapshot.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "complaint.h"
#include "core/arena.h"
#include "core/thread.h"
#include "live/process.h"

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

/* Where a pointer stored in the arena points to; nothing is said about whether that exists. */
static inline uint64_t target_offset(const target *t, const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer - t->header->base;
}

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
