/* lib/core/events.h - which calls are sampled, and a thread's hardware, software and top-down
 * events */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/files.h"
#include "base/processors.h"
#include "core/thread.h"

/* ---- a thread's hardware, software and top-down events ---- */

/* Who has them open, and what sampled calls have counted.
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
 * descriptors, and a quarter of those that the process may have (RLIMIT_NOFILE). */

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

/* The thread ends. */
void pki_sampler_release(void);

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

/* ---- which calls are sampled ---- */

/* At their begin and end the hardware and software events of their thread are read.
 *
 * The fast path does not know of it. A region's id is moved aside, as a thinned one's
 * (core/thin.h), so its calls leave the fast path, where one of n is sampled, at random distances;
 * n is such that each region's samples take no more than the bound of its thread's time, times
 * pki_sampling.ease.
 *
 * A region that is called so often that leaving the fast path would cost too much is a *frequent*
 * one, whose id stays where it is. A call of those is sampled now and then: the owner of a ring has
 * to look into it at some record anyway (core/ring.c); here that is one at a random distance from
 * the one before. The region whose end meets it, a random one of all that the thread calls, in
 * proportion to its calls, has its id moved aside for one call, the next one, which is sampled.
 * (A thinned region is off the fast path anyway, and has no need of looks.)
 *
 * A sampled call is read before its time begins and after it has ended, so that its own duration is
 * not longer for it; those around it are. */

static inline bool pki_events_on(void)
{
    return PKI_UNLIKELY(pki_load(&pki_sampling_on));
}

/* Shall calls of that region leave the fast path? */
bool pki_events_keep_off_fast_path(uint32_t id);

/* Before a call begins, off the fast path. picked: its id has been moved aside. thin_gap: one of so
 * many calls gets here, where the region is thinned; 0 elsewhere. The flags of its frame: 0, or
 * those of a sampled one. */
uint32_t pki_events_begin(pki_thread *t, uint32_t id, bool picked, uint32_t thin_gap);

/* The innermost region, which is a sampled one, or one around it, ends now. */
void pki_events_read_end(const pki_thread *t);
void pki_events_forget_end(void); /* what was read is used up */

/* That call is over; balanced: by its own end. */
void pki_events_end(unsigned depth, uint32_t id, bool balanced);

/* The thread's ring is looked into at that offset: the one to look at next, at the latest. */
uint32_t pki_events_check(pki_thread *t, uint32_t at);

/* Has a record that was being written met such a look, since that was last forgotten? (Of a point
 * or a step: the region picked is the next one that ends off the fast path.) */
bool pki_events_is_due(void);
void pki_events_forget_check(void);

void pki_events_reset(void);
