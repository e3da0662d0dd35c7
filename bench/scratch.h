/* bench/scratch.h - a folder for the traces that are written while measuring; gone with the
 * program. Where TMPDIR says; else in memory (/dev/shm) if there is room for them, so that no disk
 * is measured; else in /tmp. */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The path of a file in it. Valid until the next call. */
const char *bench_scratch(const char *name);

/* Its files go. */
void bench_scratch_empty(void);

/* A measurement in a process of its own, so that what it leaves is not the next one's: bench_fork()
 * is 0 in it, it ends with bench_leave, and whoever made it calls bench_join, which removes its
 * traces, and ends the program if it was not good. used: what it took; NULL: nobody asks. */
pid_t bench_fork(void);
void bench_leave(bool good) __attribute__((noreturn));
void bench_join(pid_t pid, const char *what, struct rusage *used);

#endif
