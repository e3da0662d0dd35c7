/* lib/measure/verdict/verdict.h - what the figures of a run mean, in words */
#pragma once

#include "base/compiler.h"
#include "measure/figure.h"
#include "measure/summary.h"

/* ---- the sentences of a verdict, put together, and the list of verdicts ---- */

/* Only verdict/ includes it. */

#define PERCENT(share) (pki_figure_percent(share).text)
#define TIME(ns) (pki_figure_time(ns).text)
#define COUNT(n) (pki_figure_count(n).text)

typedef enum pki_yielding {
    PKI_STANDS,
    PKI_YIELDS_SHARE, /* if its value, less the time without a processor, is below the threshold */
    PKI_YIELDS
} pki_yielding;

typedef struct pki_sentence {
    double starved;        /* pki_starved_share */
    pki_yielding yielding; /* what becomes of a warning then */
    char *text;            /* the caller's to free; NULL if there was no memory, or nothing yet */
    bool failed;
} pki_sentence;

PKI_PRINTF(2, 3) void pki_sentence_add(pki_sentence *words, const char *format, ...);

/* Is something wrong, by the verdicts so far? */
static inline bool pki_verdict_has_warning(const pki_summary *s)
{
    return s->verdict_count > 0 && s->verdicts[0].severity == PKI_WARN; /* they come first */
}

/* The verdict with these words. False without memory, also if there was none for the words. */
bool pki_verdict_add_sentence(pki_sentence *words, pki_summary *summary, const char *name,
                              pki_severity severity, double value, double threshold);

/* ---- verdict ---- */

/* What the figures of a run mean, in words, with the threshold that
 * they crossed.
 *
 * Each verdict has a name that stays (docs/internals/report-format.md lists them), the value that
 * was compared and the threshold, which it has to exceed (fall below, for clock-coarse). Warnings
 * come first, then the good news, then notes; within these the order is that of the list below.
 *
 * Shares are of the steady steps' time on the stepping thread. Data loaded by another thread counts
 * only as far as the stepping thread waits for it: in its PK_DATA regions, and in its PK_WAIT
 * regions if some thread spent at least PKI_LOADER_BUSY of the steps' time in PK_DATA regions. A
 * loader that has time to spare is not what the loop waits for. */

#define PKI_STARVED_SHARE 0.10         /* cpu-starved: ready to run and without a processor */
#define PKI_CROWDED_SHARE 0.03         /* oversubscribed: the same, and... */
#define PKI_CROWDED_RATIO 1.05         /* ...more busy threads than processors */
#define PKI_THROTTLED_SHARE 0.05       /* throttled: of the cgroup's periods */
#define PKI_FAR_SHARE 0.20             /* memory-far: on nodes of others, or... */
#define PKI_ONE_NODE_SHARE 0.80        /* ...all on one of several of its own... */
#define PKI_FAR_LEAST_BYTES 67108864.0 /* ...of so much memory */
#define PKI_CLOCK_LOW 0.80             /* clock-low: less of what the processors hold */
#define PKI_LATE_SHARE 0.05            /* requests-late: of those that finished */
#define PKI_QUEUED_SHARE 0.50          /* requests-queued: of the time of all */
#define PKI_REQUESTS_LEAST 20          /* fewer requests say nothing */
#define PKI_INPUT_SHARE 0.30           /* input-bound */
#define PKI_LOADER_BUSY 0.80
#define PKI_COMM_BOUND_SHARE 0.50 /* communication-bound */
#define PKI_COMM_SHARE 0.30       /* communication-heavy */
#define PKI_WAIT_SHARE 0.30       /* waiting */
#define PKI_IO_SHARE 0.30         /* io-bound */
#define PKI_UNSTEADY_RATIO 1.5    /* unsteady: p99 over p50... */
#define PKI_SLOW_STEPS 3          /* that captures have found */
#define PKI_SLOW_SHARE 0.01       /* of the run that they took longer, to be a warning if... */
#define PKI_SLOW_OUTSIDE 0.5      /* ...so much of it was outside the program */
#define PKI_UNSTEADY_STEPS 20     /* ...of at least so many steady steps */
#define PKI_DRIFT 0.10            /* drifting, either way... */
#define PKI_DRIFT_STEPS 30        /* ...with at least so many steady steps */
#define PKI_OVERHEAD_SHARE 0.01   /* overhead, of the CPU time... */
#define PKI_OVERHEAD_LEAST_NS                                                                      \
    5e6                            /* ...and so much of it, since every run has a start and an end \
                                    */
#define PKI_OVERHEAD_OF_WALL 0.005 /* a warning: of one processor; else a note */
#define PKI_CLOCK_STEPS 10.0       /* clock-coarse: a region's median in steps of the clock */
#define PKI_CALENDAR_SECONDS 1.0   /* calendar-set */
#define PKI_UNTRACKED_SHARE 0.20   /* untracked */
#define PKI_COMPUTE_SHARE 0.50     /* compute-bound, if nothing else is found */
#define PKI_FEW_STEPS 10           /* few-steps: fewer steady steps than that */
#define PKI_ROOF_SHARE 0.70        /* at-the-roof: of the attainable, and... */
#define PKI_ROOF_MOST 1.05         /* ...no more than that, or it has another roof... */
#define PKI_ROOF_REGION 0.20       /* ...a region of so much of all self time */

#define PKI_NEAR_LIMIT 0.90       /* near-memory-limit */
#define PKI_ALLOCATES_SHARE 0.02  /* allocates: of the usual step... */
#define PKI_ALLOCATION_NS 50.0    /* ...if each allocation takes so long, its free included */
#define PKI_GPU_ALLOCATES 0.5     /* gpu-allocates: in a step, from no pool */
#define PKI_PAGE_FAULT_SHARE 0.05 /* page-faults: of the usual step... */
#define PKI_MINOR_FAULT_NS 500.0  /* ...if each takes so long... */
#define PKI_MAJOR_FAULT_NS 1e5    /* ...or reads from a disk */

#define PKI_GPU_BUSY_SHARE 0.80 /* gpu-bound */
#define PKI_GPU_IDLE_SHARE 0.30 /* gpu-idle */
#define PKI_COMM_EXPOSED_SHARE                                                                     \
    0.10                             /* communication-exposed: in flight on a GPU, nothing beside  \
                                      */
#define PKI_LAUNCH_GAP_SHARE 0.20    /* launch-bound: idle in gaps up to PKI_GPU_LAUNCH_GAP_NS... */
#define PKI_SHORT_KERNELS_SHARE 0.50 /* ...and at least so many kernels below PKI_GPU_SHORT_NS */
#define PKI_COPY_SHARE 0.20          /* copy-bound: copies with no kernel beside */
#define PKI_SYNC_SHARE 0.20          /* sync-bound: idle in gaps that a wait reaches into */

/* A verdict about the loop yields to cpu-starved if that alone can explain it, which is a share
 * that would not exceed its threshold without the time in which the loop had no processor, and any
 * step that takes longer than others: then it is a note, and says so. */

/* With a GPU that is busy for most of the step, the loop's waits are for it: then there is neither
 * `waiting` nor, where CUPTI has measured, `input-bound`. */

/* Replaces summary->verdicts. False without memory: there are none then. */
bool pki_verdicts_fill(pki_summary *summary);

/* One more, for those who read files. It takes its place by severity; name and text are copied. */
bool pki_verdict_add(pki_summary *summary, const char *name, pki_severity severity, double value,
                     double threshold, const char *text);
