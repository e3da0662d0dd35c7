/* tools/merge/pids.h - processes of a merged trace have numbers of their own: two of different
 * nodes or containers may have the same. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct pid_entry {
    uint32_t process; /* merge_source.process + 1; 0: free */
    uint32_t place;   /* among the process's own: its main one is 0 */
    uint64_t pid;
    uint32_t becomes;
} pid_entry;

typedef struct pids {
    pid_entry *table, *last; /* the one asked for last */
    size_t count, room;
    uint32_t next; /* number for who cannot keep its own */
} pids;

/* What this process's number becomes: itself if nobody else had it before. */
const pid_entry *pids_of(pids *p, uint32_t process, uint64_t pid);
void pids_free(pids *p);
