/* lib/measure/cpu_side.h - what of the processors a run could have, and what it had. */
#pragma once

#include <stdint.h>

/* From looks about once a second while steps were made; `looks` 0: there was none. */
typedef struct pki_cpu_side {
    uint64_t looks;
    /* the thread that makes steps */
    uint64_t forced, own; /* switches: it was taken off its processor; it gave it up */
    /* threads of the process that ran, or were ready to, for more than half of a look's time */
    double busy;        /* mean over the looks */
    uint64_t busy_most; /* in one look */
    uint64_t threads;   /* in the last look, all of them */
    uint64_t allowed;   /* processors that the process may use, and... */
    uint64_t
        allowed_busy; /* ...that its busy threads may use together, in the last look with any */
    /* the cgroup's bound on CPU time */
    double quota; /* processors; 0: there is none */
    uint64_t quota_periods, quota_throttled, quota_throttled_time; /* since the start; ns */
    /* the clock of processors that it may use */
    double clock_mean, clock_most; /* Hz; 0: the kernel does not say */
    uint64_t heat_events;          /* they held it down for heat so often */
    /* the process's memory at the end, on a machine of several nodes; else 0 */
    uint64_t nodes;
    uint64_t near_bytes, far_bytes; /* on nodes whose processors it may use; on others */
    double largest_node;            /* share of the node that has most of it */
    uint64_t own_nodes;             /* nodes whose processors it may use */
} pki_cpu_side;
