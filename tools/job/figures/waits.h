/* tools/job/figures/waits.h - waiting against transfer: who waited for whom, from single
 * operations of all ranks put side by side on one time axis.
 *
 * The wait states are those that Scalasca documents (scalasca.org, "Performance properties"). With
 * a(r) the moment at which rank r begins to wait in an operation, s(r) its start, e(r) its end,
 * each wait is at least 0, and ends with the operation; each moment of a rank counts once
 * (waits_once.h):
 *
 *     late sender      of a receive:        s(sender) - a(receiver)
 *     late receiver    of a send:           s(receiver) - a(sender), if it lasts until then; of a
 *                                           call that receives, too, see waits_exchanges.h
 *     wait at N x N    of all-to-all ones:  max over ranks of s - a(r)
 *     wait at barrier  of a barrier:        the same
 *     late broadcast   of one to all:       s(root) - a(r), of ranks that are not the root
 *     early reduce     of all to one:       min over other ranks of s - a(root)
 *
 * In a call that blocks a = s; a request waits at its end, for as long as the program waited for
 * it. Operations are those that all their ranks chose alike (comm/figures/figures.h), and sums
 * are scaled up by how many were not chosen. Clocks of different nodes are bounded as in `pk
 * merge`; a wait that is not longer than the two clocks' doubt is not counted.
 *
 * Transfer of a message: e(receiver) - s(sender), of those whose receiver was waiting by then; when
 * others came nobody knows. A link is slow if its messages take twice as long as those of other
 * pairs of ranks of their size, beyond chance (a binomial test, at 0.05 divided by the number of
 * pairs; messages that depend on those before them count as fewer), nine of ten longer than the
 * median of any other pair that is not slow, and that is 1 % of the run or more; where ranks lack
 * processors, longer by a time slice, too. Where the program waits for several requests at once it
 * is not known which of them came when, and all take until the last one.
 */
#pragma once

#include "job/job.h"

typedef enum job_wait {
    JOB_LATE_SENDER,
    JOB_LATE_RECEIVER,
    JOB_WAIT_NXN,
    JOB_WAIT_BARRIER,
    JOB_LATE_BROADCAST,
    JOB_EARLY_REDUCE,
    JOB_WAITS
} job_wait;

/* "late sender", ... and "late_sender", ... */
extern const char *const job_wait_names[JOB_WAITS], *const job_wait_keys[JOB_WAITS];

/* From one rank to another, as places among the ranks. */
typedef struct job_link {
    size_t from, to;
    size_t looked_at;       /* messages found on both sides */
    uint64_t size;          /* class of most of them */
    double transfer, usual; /* medians, ns: of it, of other pairs for that size; usual 0: none */
    double messages;        /* all that were sent, as far as known */
    bool slow;
} job_link;

typedef struct job_waits {
    const char *why_not;          /* NULL: known; then nothing else is there */
    size_t messages, collectives; /* whose ranks were all found */
    size_t alone;                 /* operations that were found at some of their ranks only */
    int64_t doubt;                /* of two clocks, at most; ns */
    double *by[JOB_WAITS];        /* by rank: ns of the run, scaled up */
    double *caused;               /* by rank: what others waited for it */
    size_t link_count;
    job_link *links; /* slow ones first, by what they cost; then by rank */
} job_waits;

job_waits job_find_waits(const job *j);
void job_waits_finish(job_waits *w);

/* Over all ranks; in *most the rank that has most of it. */
double job_wait_sum(const job *j, const double *by_rank, int32_t *most);
