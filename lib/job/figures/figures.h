/* lib/job/figures/figures.h - what is found in a job, in figures */
#pragma once

#include "base/memory.h"
#include "job/job.h"
#include "measure/costs/events.h"

/* ---- efficiency as the POP centre defines it (co-design.pop-coe.eu/metrics) ---- */

/*
 *     useful          a rank's own time in the steps: without the stages that wait (comm, wait)
 *     runtime         the steps of the rank that took longest for them
 *     load balance                LB   = mean(useful) / max(useful)
 *     communication efficiency    CommE = max(useful) / runtime
 *     parallel efficiency         PE   = LB x CommE
 *     serialisation efficiency    SerE = max(useful) / runtime on an ideal network
 *     transfer efficiency         TE   = runtime on an ideal network / runtime;  CommE = SerE x TE
 *
 * The runtime on an ideal network is not simulated. What is taken off the runtime for it is, in
 * each block, the waiting of the rank that waits least: who arrives last at a collective waits for
 * nobody, so all that it waits is transfer. That is exact where a step has one collective over all
 * ranks, and no more than a bound where it has several with a different last rank each. */

#define PKI_JOB_ACCEPTABLE 0.8 /* of each of them, as POP says */

typedef struct pki_job_pop {
    bool known;
    double runtime, useful_mean, useful_max, transfer; /* ns */
    int32_t useful_max_rank;
    double parallel, load_balance, communication;
    const char *why_no_transfer; /* NULL: the next two are known */
    double serialisation, transfer_efficiency;
} pki_job_pop;

pki_job_pop pki_job_find_pop(const pki_job *j, const pki_job_loop *loop);

/* ---- which stage of which rank the job's steps wait for (arXiv 2606.06751) ---- */

/* Each rank gives its stages' times of a block in their order: no clocks are compared. With
 *
 *     F(k) = the maximum over ranks of the time of its stages up to k
 *
 * F(k) - F(k - 1) is what stage k adds to the job's step, beyond what some rank has been at anyway;
 * the rank with the maximum is the one that adds it. These increments add up to F(last), the
 * exposed step: the longest one of all ranks. */

typedef struct pki_job_increment {
    double time;    /* added up over the blocks, ns */
    size_t rank;    /* the place of the one that added most of it... */
    double of_rank; /* ...and how much, ns */
} pki_job_increment;

typedef struct pki_job_frontier {
    double exposed, steps;     /* of the job: ns of all steps, and how many */
    pki_job_increment *stages; /* by stage; NULL: there are no steps */
} pki_job_frontier;

bool pki_job_find_frontier(pki_job_frontier *f, const pki_job *j, const pki_job_loop *loop);
void pki_job_frontier_finish(pki_job_frontier *f);

/* ---- what the devices of all ranks did in a step: where its time went ---- */

/* Of each device, per steady step, from the figures of its rank's report:
 *
 *     step = compute + communication + memory + idle
 *
 *     compute        a kernel ran that is no collective: busy - communication - memory
 *     communication  a collective was in flight, and nothing computed: comm_exposed
 *     memory         something was copied, and no kernel ran: copy_alone
 *     idle           nothing ran: sync_gaps (the host waited for the device), launch_gaps (gaps of
 *                    50 us or less, no such wait in them), the rest
 *     overlap        comm_hidden / (comm_hidden + comm_exposed) */

/* "compute", ... */
extern const char *const pki_job_device_parts[PKI_JOB_DEVICE_PARTS];

/* Of the devices of a rank together: a part as a share of their steps; -1: not known. */
double pki_job_devices_share(const pki_job_rank *r, unsigned part);

/* Of the time of their collectives the share that was hidden; -1: there were none. */
double pki_job_devices_overlap(const pki_job_device *all, size_t count);

/* ---- what the ranks cost beside time, and the job: MFU, I/O, energy, memory ---- */

/* MFU of the job = sum of the model's operations / sum of (peak x time of the steps that tell
 * them)
 *
 * Bytes are added up over the ranks. So is the energy of GPUs, which a node's ranks share out. The
 * ranks of a host read the same counters of its processors, so of these each host counts once, by
 * the rank that has seen most of each; "package-0 core" is part of "package-0" and is left out,
 * "package-0 dram" is not and counts, "psys" has the whole machine and is left out. A rank's own
 * figure is what its counters have seen. */

typedef struct pki_job_costs {
    pki_job_spread by[PKI_JOB_COSTS]; /* over the ranks */
    double
        sum[PKI_JOB_COSTS]; /* of MFU and HFU the job's; of memory all ranks'. -1: not measured */
} pki_job_costs;

bool pki_job_costs_of(pki_job_costs *c, const pki_job *j);

/* ---- events of calls (costs=hardware,software) over the ranks ---- */

/* A figure of the job is that of all ranks' calls as if they were one run's: with n calls of a
 * rank, instructions i and cycles c of one of them, and e the error of the rank's own figure,
 *
 *     IPC    = sum(n i) / sum(n c)
 *     error  = sqrt(sum((w e)^2)), w = n c / sum(n c)
 *
 * since each rank has drawn its samples by itself; likewise misses, by instructions, and means of a
 * call, by calls. Where a rank's error is not known, the job's is not. */

typedef struct pki_job_counted {
    const char *region; /* a rank's */
    uint64_t calls, sampled;
    double time;                                               /* ns, of all calls */
    double value[PKI_EVENT_FIGURES], error[PKI_EVENT_FIGURES]; /* -1: not known */
    pki_job_spread by[PKI_EVENT_FIGURES];
} pki_job_counted;

/* By time, most first; to be freed. NULL without memory. */
pki_job_counted *pki_job_counted_of(const pki_job *j, size_t *count);

/* ---- MPI over the ranks, and who talks to whom ---- */

/* MPI's time is that inside its functions (regions "MPI_..."), as mpiP and Caliper's mpi-report
 * have it; of a rank's run, from the start of its session to its end.
 *
 * Messages are counted where they were sent; where the sender's file is missing, or what it sent to
 * this rank is among its others, where they were received. */

typedef struct pki_job_pair {
    size_t from, to; /* places among the ranks */
    double messages, bytes;
    double time; /* of the operations at the rank that has counted them, ns */
} pki_job_pair;

/* Operations in one region of the program, of all ranks. */
typedef struct pki_job_site {
    char *region; /* "": outside all */
    uint32_t op;
    double calls, bytes, time;
} pki_job_site;

typedef struct pki_job_exchange {
    size_t mpi_ranks;     /* that have called MPI */
    double mpi_time;      /* ns, of all ranks */
    double run_time;      /* of those ranks' runs */
    pki_job_spread share; /* by rank: MPI's share of its run */
    size_t call_count;
    size_t *calls; /* MPI's functions: places among the regions, most time first */
    size_t pair_count;
    pki_job_pair *pairs;                /* by sender, then by receiver */
    double messages, bytes;             /* of all pairs */
    double other_messages, other_bytes; /* sent to ranks that are not told one by one */
    size_t site_count;
    pki_job_site *sites; /* most time first */
} pki_job_exchange;

bool pki_job_find_exchange(pki_job_exchange *e, const pki_job *j);
void pki_job_exchange_finish(pki_job_exchange *e);

/* What MPI took of a rank's run; -1: it has not called it. */
double pki_job_mpi_share(const pki_job *j, size_t rank);

/* ---- communication: communicators, operations by size, who comes last ---- */

/* An operation in which all ranks take part ends for all at about the same time, so who is in it
 * for the shortest time came last, and the longest minus the shortest is how far their arrivals lay
 * apart: no clocks are compared. That is known of the operations that stand one by one in the
 * ranks' files, by their sequence number, where two ranks or more have the same one. */

#define PKI_JOB_COMMUNICATION_MOST 0.2 /* of the steps: what even the last one waits */

typedef struct pki_job_comm {
    char *library, *name;
    uint64_t id;
    int32_t size;
    size_t ranks; /* whose files tell of it */
    double calls, bytes;
    pki_job_spread waited; /* by rank: how long the program waited for it, each moment once */
} pki_job_comm;

/* Of all ranks, of one sort and size. */
typedef struct pki_job_operation {
    size_t comm; /* of pki_job_links.comms */
    uint32_t op;
    uint64_t size;
    double calls, bytes;
    pki_job_spread time;  /* by rank: the mean of its calls, ns */
    pki_job_spread busbw; /* by rank: the mean of its calls, GB/s; have 0: there is none */
    int32_t slowest;      /* the rank with the lowest busbw */
} pki_job_operation;

/* One operation, as several ranks saw it. */
typedef struct pki_job_arrival {
    size_t comm;
    uint32_t op;
    uint64_t sequence, bytes;
    size_t ranks;
    uint64_t shortest, longest; /* ns in it */
    int32_t last;               /* the rank that came last */
} pki_job_arrival;

typedef struct pki_job_links {
    size_t comm_count, operation_count, arrival_count;
    pki_job_comm *comms;
    pki_job_operation *operations; /* by communicator, operation, size */
    pki_job_arrival *arrivals;     /* furthest apart first */
} pki_job_links;

bool pki_job_find_links(pki_job_links *l, const pki_job *j);
void pki_job_links_finish(pki_job_links *l);

/* ---- waiting against transfer ---- */

/* Who waited for whom, from single operations of all ranks put side by side on one time axis.
 *
 * The wait states are those that Scalasca documents (scalasca.org, "Performance properties"). With
 * a(r) the moment at which rank r begins to wait in an operation, s(r) its start, e(r) its end,
 * each wait is at least 0, and ends with the operation; each moment of a rank counts once
 * (waits.c):
 *
 *     late sender      of a receive:        s(sender) - a(receiver)
 *     late receiver    of a send:           s(receiver) - a(sender), if it lasts until then; of a
 *                                           call that receives, too, see waits.c
 *     wait at N x N    of all-to-all ones:  max over ranks of s - a(r)
 *     wait at barrier  of a barrier:        the same
 *     late broadcast   of one to all:       s(root) - a(r), of ranks that are not the root
 *     early reduce     of all to one:       min over other ranks of s - a(root)
 *     not known        of a collective that is a request: the rest of e - a(r)
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
 * is not known which of them came when, and all take until the last one. */

typedef enum pki_job_wait {
    PKI_JOB_LATE_SENDER,
    PKI_JOB_LATE_RECEIVER,
    PKI_JOB_WAIT_NXN,
    PKI_JOB_WAIT_BARRIER,
    PKI_JOB_LATE_BROADCAST,
    PKI_JOB_EARLY_REDUCE,
    PKI_JOB_WAIT_UNKNOWN,
    PKI_JOB_WAITS
} pki_job_wait;

/* "late sender", ... and "late_sender", ... */
extern const char *const pki_job_wait_names[PKI_JOB_WAITS], *const pki_job_wait_keys[PKI_JOB_WAITS];

/* From one rank to another, as places among the ranks. */
typedef struct pki_job_link {
    size_t from, to;
    size_t looked_at;       /* messages found on both sides */
    uint64_t size;          /* class of most of them */
    double transfer, usual; /* medians, ns: of it, of other pairs for that size; usual 0: none */
    double messages;        /* all that were sent, as far as known */
    bool slow;
} pki_job_link;

/* A wait by where in the program both sides were: the region around the call, and the call. */
typedef struct pki_job_wait_site {
    pki_job_wait sort;
    const char *region, *of_other; /* "": outside all, or not told */
    uint32_t op, op_of_other;      /* a pk_comm_op */
    double time;                   /* ns of all ranks, scaled up */
    size_t most, other;            /* the rank that waited most, that most was waited for... */
    double of_most, of_other_rank; /* ...and how much, ns */
    double *caused;                /* by rank */
} pki_job_wait_site;

#define PKI_JOB_WAIT_SITES                                                                         \
    64 /* the first ones by rank; what more there are is in the sums alone                         \
        */

typedef struct pki_job_waits {
    const char *why_not;          /* NULL: known; then nothing else is there */
    size_t messages, collectives; /* whose ranks were all found */
    size_t alone;                 /* operations that were found at some of their ranks only */
    int64_t doubt;                /* of two clocks, at most; ns */
    double *by[PKI_JOB_WAITS];    /* by rank: ns of the run, scaled up... */
    double error[PKI_JOB_WAITS];  /* ...and the sampling error of all ranks': one standard error */
    double *caused;               /* by rank: what others waited for it */
    size_t link_count;
    pki_job_link *links; /* slow ones first, by what they cost; then by rank */
    size_t site_count;
    pki_job_wait_site *sites; /* most time first */
    /* By kind of steps and cell when its first step began, ns on one axis of all ranks; NULL: of
     * some it is not known, or clocks are in doubt by a hundredth of a step. Known also where
     * waits are not. */
    double **begins;
    size_t begin_count;
} pki_job_waits;

bool pki_job_find_waits(pki_job_waits *w, const pki_job *j);
void pki_job_waits_finish(pki_job_waits *w);

/* Over all ranks; in *most the rank that has most of it. */
double pki_job_wait_sum(const pki_job *j, const double *by_rank, int32_t *most);

/* ---- the steps once more: who caused the waiting, and what if ---- */

/* The ranks' stages are passed again in their order, block by block, on two times at once: as they
 * were measured, and with something changed. Work takes as long as it did. A collective is left
 * when all have come; who waits for messages goes on when the last partner that it has messages of
 * (those of MPI, or who has to receive them) has begun to send them; the rest of what a wait took
 * is transfer, and stays. Clocks are not compared: in a collective who is in it for the shortest
 * time came last; a rank that waits for a message longer than any does in its better quarter has
 * waited for its last partner, which tells when it came. Several collectives of a name in a step,
 * each with another last rank, are one here: then what is saved is a lower bound.
 *
 * Of each rank is kept why it is behind: its work beyond the ranks' mean since all have met. Who
 * waits is charged to what the one that is waited for has beyond it, which may be what that has
 * waited for itself: so a wait that passes on an earlier one is charged to where it began (delay
 * costs, as Scalasca has them: Boehme, Geimer, Wolf, Arnold: ICPP 2010). */

#define PKI_JOB_CAUSES 16

typedef struct pki_job_cause {
    size_t rank, stage, loop;
    double ns;     /* that others waited for it, of all of them... */
    double direct; /* ...of that, without another rank between */
} pki_job_cause;

typedef struct pki_job_blame {
    double waited, transfer; /* ns of all ranks */
    double passed_on; /* of a stage: what others waited elsewhere since one has waited in it */
    size_t count;
    pki_job_cause
        causes[PKI_JOB_CAUSES]; /* dearest first; what is missing has none that is known */
} pki_job_blame;

typedef struct pki_job_blames {
    const char *why_not;   /* NULL: known; else nothing else is there */
    pki_job_blame *stages; /* of usual steps, by stage in which ranks waited */
    pki_job_blame all;     /* of steps of all kinds */
} pki_job_blames;

bool pki_job_find_blames(pki_job_blames *to, const pki_job *j, const pki_job_exchange *e,
                         const pki_job_waits *waits);
void pki_job_blames_finish(pki_job_blames *b);

/* NULL: most of it is transfer, or not known, as of what nobody waited in. */
static inline const pki_job_cause *pki_job_main_cause(const pki_job_blame *b)
{
    return b->count && b->causes[0].ns > b->transfer / 2 ? &b->causes[0] : NULL;
}

typedef struct pki_job_cell_at {
    size_t loop, block, stage, rank;
    double part; /* of the block */
    double ns;   /* of its work there, or of the transfer */
} pki_job_cell_at;

typedef struct pki_job_change {
    double (*ns)(void *user, const pki_job_cell_at *at); /* how long it takes then */
    void *user;
} pki_job_change;

/* saved: ns of the job. Only where blames are known. */
bool pki_job_replay(const pki_job_change *change, const pki_job *j, const pki_job_exchange *e,
                    const pki_job_waits *waits, double *saved);

/* What a slow link takes longer than others, ns per step of its receiver; 0: it is not slow. */
double pki_job_link_excess(const pki_job *j, const pki_job_link *l);

/* ---- of how long single messages took, which links are slow ---- */

typedef struct pki_job_transfer {
    size_t from, to; /* places of ranks */
    bool across;     /* from host to host: another way than within one */
    uint64_t size;   /* class */
    int64_t at;      /* when it had come */
    double ns, doubt;
} pki_job_transfer;

typedef struct pki_job_transfers {
    pki_job_transfer *all;
    size_t count, room;
} pki_job_transfers;

static inline bool pki_job_transfers_add(pki_job_transfers *t, const pki_job_transfer *one)
{
    if (!pki_array_fit(&t->all, &t->room, t->count + 1, sizeof *t->all))
        return false;
    t->all[t->count++] = *one;
    return true;
}

/* Puts them in order; to be freed. NULL without memory. */
pki_job_link *pki_job_links_of_transfers(pki_job_transfers *t, const pki_job *j, size_t *count);
