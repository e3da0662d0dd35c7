/* tools/job/verdicts/late.h - who is late, by how much, where, and what it costs.
 *
 * A rank's own time of a step is its time without the stages that wait for others (comm, wait; if
 * there is none, without what is outside all regions). Its lateness in a block of steps is
 *
 *     log(own time / work) - the median of that over the ranks of its role
 *
 * with the time off in which it was ready to run and had no processor (job_loop.ready), and of what
 * may have been so (maybe) all for the rank that is judged, none for the others; and with that off
 * which the processor did to it, where ranks share them (processors.h). Work is the steps' items,
 * if all ranks tell any, else the number of steps. Whether that is late, and surely, is judge.h's:
 * at the level JOB_LATE_LEVEL, divided by the number of all comparisons (two looks at each rank,
 * one at each host). Time that all ranks take, a slow link or a large batch, cancels: nobody is
 * late then. A rank that is late has to be worth a word (worth.h), and where ranks share
 * processors, it has to stand out from them (stands.h). What waiting for a slow link does to its
 * ends belongs to the link (link_ends.h).
 *
 * The ranks of a host are compared as one first: a host whose ranks are late together is one
 * finding, and its ranks are late only if they are so beyond it. A role is the ranks that have the
 * same stages: the ranks of a pipeline's ends are not compared with those of its middle.
 */
#pragma once

#include "job/job.h"
#include "job/verdicts/judge.h"
#include "job/verdicts/processors.h"
#include "job/figures/waits.h"

#define JOB_LATE_LEVEL 0.05 /* probability of a false verdict, over all of them, at most */

typedef struct job_late {
    bool host;            /* all ranks of it; else... */
    size_t rank;          /* ...this one: its place in job.ranks, not its number */
    uint32_t host_at;     /* of job.hosts */
    size_t ranks;         /* how many that are */
    uint32_t processor;   /* that the rank alone has: it may be that; PKI_SEAT_UNKNOWN: none */
    double by, low, high; /* 0.05: 5 % longer for the same work, and the interval of that */
    size_t stage;         /* where most of it lies... */
    double stage_share;   /* ...and how much of it */
    double excess;        /* ns per step that it works longer than the others do */
    double cost;          /* ns per step that the job's steps would be shorter without it: less,
                             where others are as late in a step by chance */
} job_late;

/* Ranks that may be late. */
typedef struct job_undecided {
    size_t ranks, rank; /* how many, and the latest of them: its place */
    double by, low;     /* low: of unsure ones, the lower end of the interval */
} job_undecided;

typedef struct job_lateness {
    const char *why_not; /* why nobody could be judged; NULL: they were */
    bool by_work;        /* per item; else per step */
    size_t blocks, roles;
    double *by; /* by place of a rank: its median lateness, as a share; NAN: unknown */
    size_t count;
    job_late *late;          /* latest first */
    double cost;             /* of all of them together, ns per step */
    job_undecided not_known; /* late, unless time without a processor explains it: of these ranks
                               nobody tells where in the run that was */
    job_undecided not_alone; /* late as others on their host are, which share processors */
    job_undecided at_link;   /* late by less than a tenth of what their slow link takes */
    job_undecided unsure;    /* beyond the limit, and that may be chance */
    job_undecided
        not_worth; /* beyond the limit, and so little of a step that it is not worth while */
    job_processors processors;
} job_lateness;

/* One more. */
void job_note_undecided(job_undecided *to, size_t rank, double by);

/* waits: NULL: nothing is known of links. */
job_lateness job_find_late(const job *j, const job_waits *waits);
void job_lateness_finish(job_lateness *l);
