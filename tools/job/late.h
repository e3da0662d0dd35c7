/* tools/job/late.h - who is late, by how much, where, and what it costs.
 *
 * A rank's own time of a step is its time without the stages that wait for others (comm, wait; if
 * there is none, without what is outside all regions). Its lateness in a block of steps is
 *
 *     log(own time / work) - the median of that over the ranks of its role
 *
 * with the time off in which it was ready to run and had no processor (job_loop.ready), and of what
 * may have been so (maybe) all for the rank that is judged, none for the others; where work is the
 * steps' items, if all ranks tell any, else the number of steps. A rank is late
 * if the pseudo-median of its lateness over the blocks (Hodges and Lehmann's) is above
 * JOB_LATE_LEAST, and surely above JOB_LATE_SURELY: the lower end of the interval that belongs to
 * it (Wilcoxon's signed ranks, lib/bench/stats/evidence.h), at a level that is divided by the
 * number of ranks, with neighbouring blocks that depend on each other counted as fewer. Time that
 * all ranks take, a slow link or a large batch, cancels: nobody is late then.
 *
 * The ranks of a host are compared as one first: a host whose ranks are late together is one
 * finding, and its ranks are late only if they are so beyond it. A role is the ranks that have the
 * same stages: the ranks of a pipeline's ends are not compared with those of its middle.
 */
#pragma once

#include "job/job.h"

#define JOB_LATE_LEAST 0.03
#define JOB_LATE_SURELY 0.02
#define JOB_LATE_LEVEL 0.05 /* probability of a false verdict, over all ranks, at most */

typedef struct job_late {
    bool host;            /* all ranks of it; else... */
    size_t rank;          /* ...this one: its place in job.ranks, not its number */
    uint32_t host_at;     /* of job.hosts */
    size_t ranks;         /* how many that are */
    double by, low, high; /* 0.05: 5 % longer for the same work, and the interval of that */
    size_t stage;         /* where most of it lies... */
    double stage_share;   /* ...and how much of it */
    double excess;        /* ns per step that it works longer than the others do */
    double cost;          /* ns per step that the job's steps would be shorter without it: less,
                             where others are as late in a step by chance */
} job_late;

typedef struct job_lateness {
    const char *why_not; /* why nobody could be judged; NULL: they were */
    bool by_work;        /* per item; else per step */
    size_t blocks, roles;
    double *by; /* by place of a rank: its median lateness, as a share; NAN: unknown */
    size_t count;
    job_late *late; /* latest first */
    double cost;    /* of all of them together, ns per step */
} job_lateness;

job_lateness job_find_late(const job *j);
void job_lateness_finish(job_lateness *l);
