/* lib/core/sampler.h - a thread's hardware, software and top-down events: who has them open, and
 * what sampled calls have counted.
 *
 * A sampler is a thread's from its first sampled call until it ends or the session does; then its
 * descriptors are closed. Its sums stay for the thread that has it next, so nothing is handed over
 * as threads come and go: they are added up when the session ends. Samplers lie in a list of the
 * process, not in the arena, so that a fork's child can close what it has inherited.
 *
 * One word says whose it is: its owner enters and leaves it around each use (acquire and release of
 * `state`), and pk_stop takes those that nobody is in. From whom it cannot take one (amid a use for
 * longer than it waits) closes it himself when he leaves; what it has counted is missing then, and
 * that is said.
 *
 * Bounds: PKI_SAMPLERS threads at once, PKI_SAMPLED_REGIONS regions of a thread, PKI_SAMPLER_FDS
 * descriptors, and a quarter of those that the process may have (RLIMIT_NOFILE).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/processors.h"
#include "base/files.h"
#include "core/thread.h"

#define PKI_SAMPLERS 512
#define PKI_SAMPLER_FDS 2048
#define PKI_SAMPLED_REGIONS 256

typedef enum pki_event_group {
    PKI_HARDWARE,
    PKI_SOFTWARE,
    PKI_TOPDOWN, /* its values are slots (base/processors.h) */
    PKI_EVENT_GROUPS
} pki_event_group;

/* A value's place in the arrays below, and in a mask its bit. */
#define PKI_EVENTS (PKI_EVENT_GROUPS * PKI_PERF_EVENTS)
#define PKI_EVENT_AT(group, i) ((group)*PKI_PERF_EVENTS + (i))
#define PKI_EVENT_MASK(group) (((1u << PKI_PERF_EVENTS) - 1) << PKI_EVENT_AT(group, 0))

/* What one reading has of all groups. */
typedef struct pki_event_reading {
    pki_perf_reading of[PKI_EVENT_GROUPS];
} pki_event_reading;

/* One region's sampled calls. Each stands for `weight` calls: 1 / the probability that it was
 * drawn. So sums of weight x value are estimates of totals (Horvitz and Thompson, Journal of the
 * American Statistical Association 47, 1952), and their quotients of means. */
typedef struct pki_event_sums {
    uint32_t id;      /* 0: free */
    uint32_t gap;     /* one of so many calls is sampled */
    uint32_t left;    /* calls before the next one that is */
    uint32_t drawn;   /* what `left` began as */
    uint64_t since;   /* ticks of the last sampled call */
    double interval;  /* ns from one call to the next */
    uint64_t sampled; /* calls in the sums below */
    uint64_t missed;  /* sampled calls during which the processor had no counters for them */
    double weight, weight2;
    double sum[PKI_EVENTS];    /* weight x value */
    double sum2[PKI_EVENTS];   /* weight^2 x value */
    double square[PKI_EVENTS]; /* weight^2 x value^2 */
    double beside[PKI_EVENTS]; /* weight^2 x value x instructions; of slots, x all four of them */
} pki_event_sums;

typedef struct pki_sampler {
    uint64_t state;
    uint32_t rows;
    bool broken;       /* its descriptors are not ours any more */
    double unit_ns;    /* of a tick */
    double pair_ns;    /* two readings in a row, as fast as they can be */
    double cost_ns;    /* of a sampled call, as they have been of late */
    double spent_ns;   /* so far */
    uint64_t seed;     /* of distances */
    uint64_t check_at; /* records, up to the next look (core/events.h) */
    uint64_t checked;  /* records and ticks at the last one */
    uint64_t checked_at_ticks;
    uint32_t check_gap;                     /* records between two, on average */
    uint32_t pick_weight;                   /* of the call that the last look has picked */
    pki_perf_group group[PKI_EVENT_GROUPS]; /* without events: not asked for, or not to be had */
    double tare[PKI_EVENTS];                /* what two readings in a row differ by */
    pki_own_reads reads;                    /* by read(2), by whoever had it, ever */
    pki_event_reading end;
    pki_event_reading begin[PKI_DEPTH_MAX + 2]; /* by depth */
    double weight[PKI_DEPTH_MAX + 2];
    pki_event_sums row[PKI_SAMPLED_REGIONS];
} pki_sampler;

/* What a session asks for. */
typedef struct pki_sampling {
    struct {
        const pki_perf_event *events;
        unsigned count; /* 0: the group cannot be had */
    } group[PKI_EVENT_GROUPS];
    bool counts_dispatched; /* of pki_topdown */
    uint32_t mask;          /* events that can be had: a bit each */
    uint32_t each;          /* descriptors of a thread */
    double bound;           /* share of a thread's time that sampling may take */
    uint32_t ease;          /* sampled so many times less than that says: the bound is the
                               process's */
    uint32_t fds;           /* at most */
    uint64_t opening_ns;    /* may go into threads\' opening theirs, so far */
} pki_sampling;

/* What became of it. */
typedef struct pki_sampling_counts {
    uint64_t threads;         /* that had a sampler */
    uint64_t threads_without; /* that got none */
    uint64_t lost;   /* whose descriptors the program has closed, or whose sums were in use */
    uint64_t beyond; /* calls of regions without a row, as far as they were met */
    int error;       /* why a thread got none; 0: bounds */
    double pair_ns;  /* two readings in a row, on the thread where they took longest */
} pki_sampling_counts;

extern pki_sampling pki_sampling_now;
extern uint32_t pki_sampling_on;

/* Amid pki_enter and pki_leave: the thread's, which it is in from here on; NULL: it has none, or
 * the session is over. errno stays. */
pki_sampler *pki_sampler_enter(const pki_thread *t);
pki_sampler *pki_sampler_enter_mine(void); /* the same, but none is made */
void pki_sampler_leave(pki_sampler *s);

/* The thread ends. */
void pki_sampler_release(void);

/* False: cannot be read. */
bool pki_sampler_read(pki_sampler *s, pki_event_reading *reading);

/* Of groups that are open. */
bool pki_sampler_between(const pki_sampler *s, const pki_event_reading *from,
                         const pki_event_reading *to, double value[PKI_EVENTS]);

/* The region's; NULL: there are too many. Within enter and leave. */
pki_event_sums *pki_sampler_row(pki_sampler *s, uint32_t id);

/* So much of the program's threads' time has gone into it, ns. Any thread. */
double pki_samplers_spent(void);

/* What their readings by read(2) have come to in this process, which the kernel counts as the
 * program's I/O. Grows only. Any thread. */
pki_own_reads pki_samplers_reads(void);

/* For a session: from here on, and no longer. At the end each sampler's rows are handed over, and
 * all descriptors closed. */
void pki_samplers_open(const pki_sampling *wanted);
void pki_samplers_close(void (*take)(void *user, const pki_event_sums *row), void *user,
                        pki_sampling_counts *counts);

void pki_samplers_after_fork(void);
