/* bench/scratch.h - a folder for the traces that are written while measuring; gone with the
 * program. Where TMPDIR says; else in memory (/dev/shm) if there is room for them, so that no disk
 * is measured; else in /tmp. */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

/* The path of a file in it. Valid until the next call. */
const char *bench_scratch(const char *name);

/* Its files go. */
void bench_scratch_empty(void);

#endif
