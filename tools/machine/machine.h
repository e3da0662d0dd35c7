/* tools/machine/machine.h - what this machine can do, measured once and kept */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/environment.h"
#include "command.h"
#include "complaint.h"
#include "measure/machine/machine.h"

/* ---- how fast a folder's file system takes and gives large blocks ---- */

/* One thread, a file of its own, blocks of 1 MiB one after the other, past the page cache
 * (O_DIRECT). Where the file system has no O_DIRECT, writing counts with the fdatasync behind it,
 * and reading is not measured: the blocks would come from memory. */

typedef struct storage_figures {
    const char *folder; /* NULL: nothing was measured */
    bool direct;
    uint64_t bytes;        /* of a round */
    pki_limit write, read; /* rounds 0: not measured */
} storage_figures;

/* False, and why. Nothing is left in the folder. */
bool storage_measure(const char *folder, uint32_t mib, storage_figures *figures, complaint *why);

/* ---- threads that do the same at once, each held to a processor of its own ---- */

typedef void team_work(void *user, unsigned member);

typedef struct team_member {
    struct team *team;
    pthread_t thread;
    unsigned number;
    int processor;                     /* -1: wherever the system puts it */
    uint64_t begin, end, on_processor; /* ns, of the last work */
} team_member;

typedef struct team {
    unsigned count;
    team_member *members;
    pthread_barrier_t begin, end;
    team_work *work; /* NULL: the end */
    void *user;
    uint64_t wanted, had; /* ns of all rounds and members: wall time, and time on a processor */
} team;

/* The processors that this process may use, at most `room`; how many. */
unsigned team_processors(int *processors, unsigned room);

/* One thread for each of them. False, and why. */
bool team_make(team *t, const int *processors, unsigned count, complaint *why);

void team_finish(team *t);

/* ---- rounds of the same work, as a limit of the machine ---- */

#define RATES_ROUNDS_MOST 1000u

/* What a team does in a round: `turns` times something, which is worth so much (bytes, operations),
 * by all members together. */
typedef struct rates_work {
    team_work *work;
    void *user;
    uint64_t *turns; /* in `user` */
    double worth;
} rates_work;

/* Finds out how many turns a round needs, 5 ms of them, and does so many rounds. The rounds are
 * short, so that of a machine with other work some are undisturbed. */
void rates_measure(team *t, const rates_work *w, unsigned rounds, pki_limit *limit);

/* Best, median and worst of rates, which it puts in order. */
void rates_summarise(double *rates, unsigned count, pki_limit *limit);

/* ---- what `pk machine` finds out ---- */

typedef struct machine_wish {
    const char *folder, *output;
    uint32_t rounds, memory_mib, storage_mib;
    bool json, show;
    operands none; /* it takes no files */
} machine_wish;

#define MACHINE_DEVICES 16u

typedef struct machine_found {
    pki_machine machine; /* what is kept */
    pki_bench_environment environment;
    unsigned processors;     /* that the process may use: as many threads are "all" */
    double clock_hz;         /* 0: not known */
    uint64_t cache_bytes;    /* largest caches of all of them together */
    bool cache_known;        /* else it is a guess */
    uint64_t array_bytes;    /* each of the three arrays, of all threads together */
    double on_processor;     /* share of the rounds' time that the threads had a processor */
    storage_figures storage; /* folder NULL: not asked for */
    unsigned device_count;
    char devices[MACHINE_DEVICES][96]; /* by NVML's names */
    char no_devices[160];              /* why there are none */
} machine_found;

/* Memory and arithmetic, on one processor and on all. False, and why. */
bool machine_measure(const machine_wish *wish, machine_found *found, complaint *why);

/* The devices' names. */
void machine_find_devices(machine_found *found);

/* ---- the three arrays of each thread, in memory that it touches first ---- */

typedef struct array_set {
    double *a, *b, *c;
    size_t count; /* doubles in each */
} array_set;

typedef struct arrays {
    array_set *sets; /* one for each thread */
    unsigned threads;
    void *memory;
    size_t bytes;
} arrays;

/* How large: four times the largest caches, as STREAM asks for, within the bound (0: a quarter of
 * the memory that is free and that the cgroup allows). */
void arrays_choose(machine_found *found, uint32_t memory_mib);

/* bytes: of each of the three, of all threads together. False, and why. */
bool arrays_make(arrays *a, unsigned threads, uint64_t bytes, complaint *why);
void arrays_touch(arrays *a, unsigned thread);
size_t arrays_count(const arrays *a); /* doubles in one array, of all threads */
void arrays_free(arrays *a);
