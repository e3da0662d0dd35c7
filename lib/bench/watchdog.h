/* lib/bench/watchdog.h - who acts when a thread does not come back in time.
 *
 * A stream that is held back runs nothing until it is let go; whoever waits for it meanwhile would
 * wait for ever. The watchdog then calls a function on a thread of its own. It comes through a
 * table, so that tests run it on a clock of their own making.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
