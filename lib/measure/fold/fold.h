/* lib/measure/fold/fold.h - from records to distributions, and what is told of them */
#pragma once

#include <pk/stats.h>

#include "comm/figures/figures.h"
#include "core/registry.h"
#include "measure/device/device.h"
#include "measure/requests/requests.h"
#include "measure/spans/spans.h"
#include "measure/steps/steps.h"
#include "measure/timeline.h"
#include "stats/tally.h"

/* ---- the counters' timelines, by the id of their name ---- */

typedef struct pki_timelines {
    size_t room;
    pki_timeline **by_id; /* NULL: no sample of it */
} pki_timelines;

/* The counter's timeline into its row. False without memory. */
bool pki_timelines_fill(const pki_timelines *timelines, uint32_t id, pki_counter_row *row);

/* ---- from records to distributions ---- */

/* Folding walks each ring from where it stopped to its head and enters every call into its region's
 * distribution. It runs ahead of the formatter and does no I/O, so statistics are read at any time
 * without waiting for a disk. The collector folds in its round, whoever asks for statistics folds
 * before reading: one at a time, under the fold lock. Calls that found the ring full are in their
 * block's `lost` table and are added when reading.
 *
 * Lock order: fold lock, then the registry's. */

/* What is known of one thread alone: for the report's threads, and for the self times of whoever
 * makes the steps. */
typedef struct pki_thread_fold {
    pki_table calls;
    uint64_t kinds[PKI_KINDS]; /* self time by kind, ns; always kept up */
    bool tracked;              /* calls is kept up */
    bool partial;              /* it was not from the thread's start, or the last step, on */
    bool starved;              /* some of them found no room in it */
    size_t work_room;
    uint64_t *work; /* by region's id: ns of its calls with bytes or flops */
} pki_thread_fold;

/* What is left of threads that have ended: the first ones each by itself, the others together. */
#define PKI_ENDED_MOST 32
typedef struct pki_ended_thread {
    char name[64];
    uint32_t tid;
    uint64_t recorded, dropped;
    uint64_t kinds[PKI_KINDS];
    pki_table calls; /* with per_thread */
} pki_ended_thread;

/* Told of each step that has been folded, and of nothing behind it yet. Under the fold lock. */
struct pki_fold;
typedef void pki_fold_on_step(struct pki_fold *fold, const pki_step *step);

/* The same, of the time between steps, too; data: self time of kind PK_DATA in it. */
typedef void pki_fold_on_account(struct pki_fold *fold, const pki_step *step, uint64_t data);
/* Of each sample of a counter that a thread has recorded. */
typedef void pki_fold_on_value(struct pki_fold *fold, const pki_record *record, double value);
enum { PKI_FOLD_GOODPUT, PKI_FOLD_ENERGY, PKI_FOLD_LOAD, PKI_FOLD_ACCOUNTS };

typedef struct pki_fold {
    pki_fold_on_step *on_step; /* NULL: nobody */
    pki_fold_on_account *on_account[PKI_FOLD_ACCOUNTS];
    pki_fold_on_value *on_value; /* NULL: nobody */
    pki_registry *registry;
    pki_steps *steps;
    pki_comm_figures *collectives;
    pki_span_counter spans;
    pki_requests *requests; /* NULL: there was none */
    pki_device *device;
    bool per_thread;
    bool thinned;            /* a record has carried untimed calls */
    pki_table totals;        /* all threads */
    pki_table streams;       /* spans of devices' streams, ns (measure/device/regions.h) */
    pki_timelines timelines; /* of counters */
    pki_slot *last_resort;   /* calls for which there was no memory; one of totals */
    size_t thread_count;
    pki_thread_fold *threads; /* by block index */
    pki_thread_fold nobody;   /* for threads without room in that list; never tracked */
    bool starved;             /* the thread that is being folded */
    uint32_t ended_count;
    pki_ended_thread ended[PKI_ENDED_MOST], ended_others;
} pki_fold;

void pki_fold_lock(void);
void pki_fold_unlock(void);

/* Replaces the fold of the session before by one for this registry; NULL for none. False without
 * memory. Takes the lock. */
bool pki_fold_open(pki_registry *registry, bool per_thread, uint32_t warmup_steps);

/* The running or last session's; NULL if there was none. Under the lock, as all below. */
pki_fold *pki_fold_now(void);

/* What is known of that thread alone; `nobody` without memory. */
pki_thread_fold *pki_fold_thread(pki_fold *fold, const pki_thread *t);

/* Every ring up to its head, or one. */
void pki_fold_all(pki_fold *fold);
void pki_fold_one(pki_fold *fold, pki_thread *t);

/* A region that is open when the session ends, closed on t's behalf: its record is not in the ring.
 */
void pki_fold_extra(pki_fold *fold, pki_thread *t, const pki_record record[2]);

/* Calls that no timed one has carried, of a thread that has ended or is not seen any more. Once for
 * each thread. */
void pki_fold_pending(pki_fold *fold, pki_thread *t);

/* A counter's sample that is in no ring: a backend's. */
void pki_fold_point(pki_fold *fold, const pki_record *record);

/* A call that is no thread's, hence in nobody's self time. */
void pki_fold_range(pki_fold *fold, uint32_t id, uint64_t ns, uint64_t bytes, uint64_t flops);

/* A thread that has ended and whose ring has been folded: what is known of it alone is added up,
 * its block is free again. */
void pki_fold_recycle(pki_fold *fold, pki_thread *t);

/* Of all pk_spans. */
pki_span_summary pki_fold_span_summary(const pki_fold *fold);

/* Of all requests that have ended; its arrays are to be freed. False without memory. */
bool pki_fold_requests(const pki_fold *fold, pki_request_summary *out);

/* The next one that is open, from a place in their table on, and moves the place behind it; false:
 * there is no other one. */
bool pki_fold_next_open_span(const pki_fold *fold, size_t *at, pki_open_span *out);

/* Those that are open now, so many at most; returns how many. */
size_t pki_fold_open_spans(const pki_fold *fold, pki_open_span *out, size_t most);

/* What of a region only grows, over all threads. False if it has had no call. */
typedef struct pki_fold_sum {
    uint64_t count, sum, self, bytes, untimed;
} pki_fold_sum;
bool pki_fold_sums(const pki_fold *fold, uint32_t id, pki_fold_sum *sum);

/* The region's distribution over all threads. False if there is none. Finish with pki_stats_finish.
 */
bool pki_fold_stats(const pki_fold *fold, uint32_t id, pk_stats *stats);

/* How many threads ran this region at once: the time of all calls with bytes or flops over that of
 * the thread with most of it. 0: there were no such calls. A block that another thread takes over
 * counts as one. */
double pki_fold_threads(const pki_fold *fold, uint32_t id);

/* A counter's, into stats that are all zero; pki_tally_finish is left to do. False without memory.
 */
bool pki_fold_values(const pki_fold *fold, uint32_t id, pki_value_stats *stats);

/* What pk_region_stats and its like answer; `find` adds up the distribution, under the fold lock,
 * and answers false if there is none. */
typedef bool pki_stats_find(pki_fold *fold, uint32_t id, pk_stats *stats);
pk_status pki_stats_answer(pki_stats_find *find, uint32_t id, pk_stats *stats);

void pki_fold_after_fork(void);
