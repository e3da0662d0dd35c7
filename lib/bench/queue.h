/* lib/bench/queue.h - samples of a device whose launches are queued, and who lets go of them */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- who acts when a thread does not come back in time ---- */

/* A stream that is held back runs nothing until it is let go; whoever waits for it meanwhile would
 * wait for ever. The watchdog then calls a function on a thread of its own. It comes through a
 * table, so that tests run it on a clock of their own making. */

typedef struct pki_bench_watchdog {
    /* One that calls bark(arg), from any thread. NULL: no memory, or no thread. */
    void *(*open)(void (*bark)(void *), void *arg);
    void (*close)(void *dog);

    /* It barks once when so many ns have passed, or somewhat later. */
    void (*set)(void *dog, uint64_t ns);

    /* It does not bark from here on. True: it has since it was set. */
    bool (*call_off)(void *dog);
} pki_bench_watchdog;

/* On CLOCK_MONOTONIC, with a thread that looks every PKI_BENCH_WATCHDOG_LOOK ns while it is set
 * again and again: only the first time after a while wakes it, and it barks at most that much too
 * late. */
extern const pki_bench_watchdog pki_bench_system_watchdog;

#define PKI_BENCH_WATCHDOG_LOOK 25000000u

/* ---- samples of a device whose launches are queued before the first one runs ---- */

/* A kernel that takes less time than its launch leaves the device waiting for the processor, and
 * between two events the wait counts. So the stream is held back while a sample's launches are
 * handed over, and let go behind the last one: the device runs them one after the other, and the
 * processor's time for the same loop is what launching costs.
 *
 * Two things end that, and the watchdog, after PKI_BENCH_HOLD ns, notices: more launches than the
 * stream's queue takes (fewer iterations, then), and a body that waits for the device (no queueing,
 * then). The first sample of a benchmark is never held: what is loaded at a kernel's first use may
 * have to wait for the device.
 *
 * Threads: as the case, but for the watchdog's bark, which only lets go. */

#define PKI_BENCH_HOLD 250000000u /* ns until the watchdog barks */
#define PKI_BENCH_QUEUED 512u /* iterations in a sample, at most: a queue has about 1024 places */
#define PKI_BENCH_LOST 3      /* samples it may end while measuring, before queueing is given up */

struct pki_bench_case;

typedef struct pki_bench_queue {
    bool on;       /* samples are held */
    bool loaded;   /* one has run, so they may be */
    bool held;     /* this one is, now */
    bool waits;    /* off, because its body waits for the device */
    uint64_t fits; /* iterations that were queued whole */
    uint64_t most; /* iterations a sample may have */
    unsigned lost; /* samples that the watchdog ended, of those to be kept */
    bool forced;   /* the last sample is one of them */
    void *dog;
} pki_bench_queue;

/* Around a sample's launches. False: the device reports an error. Letting go twice is fine. */
bool pki_bench_queue_hold(struct pki_bench_case *c);
void pki_bench_queue_release(struct pki_bench_case *c, uint64_t iterations);

/* From here on none are queued. */
void pki_bench_queue_disable(struct pki_bench_case *c);
