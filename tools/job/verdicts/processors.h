/* tools/job/verdicts/processors.h - what a rank's time owes to the processor that it had.
 *
 * Processors are not alike: what runs on the other thread of a core, or beside a virtual machine,
 * takes a part of one and not of the next, for seconds on end. Where ranks share processors,
 * whoever sits on the slower one takes longer, and by no fault of his own. Ranks tell of each block
 * of their steps where they were (core/seats.h), so that can be taken off. With y a rank's value in
 * a block (late.h), w what is the rank's own in all of them, s that of a processor in this one, and
 * p the share of the block that the rank was there,
 *
 *     y = w + p s + (1 - p) (the mean of s over the host's other processors) + noise
 *
 * s is the median over the ranks that were there, weighted by how much more of the block they were
 * there than elsewhere, w the median over the blocks, by turns, from the same w for all ranks of a
 * role on: so what all ranks on a processor have in common is the processor's. Taken off a rank is
 * what the *others* there say, less the mean of that over the host's ranks; a block in which nobody
 * else was there says nothing of it, and is left out. A rank that has been alone like that in half
 * of its blocks or more keeps all its values: it and its processor are not told apart. Of two ranks
 * that share a processor with nobody else, all the time, each has half of their difference.
 *
 * A slow processor is a finding of its own: of the blocks in which it and the host's others had two
 * ranks and more each, the stretch with the most of s - (mean of s of the others) - 10 %, if that
 * has JOB_SLOW_BLOCKS, and the lower quartile in it is JOB_SLOW_SURELY or more.
 */
#pragma once

#include "core/seats.h"
#include "job/job.h"

#define JOB_SLOW_FROM 0.10
#define JOB_SLOW_SURELY 0.05
#define JOB_SLOW_BLOCKS 8

/* A processor of a host that was slower than its others. */
typedef struct job_slow_processor {
    uint32_t host, number;
    uint64_t first, last; /* steps */
    size_t ranks;         /* the most that were there at once */
    double by;            /* 0.27: 27 % longer for the same work */
} job_slow_processor;

typedef struct job_processors {
    size_t slow_count;
    job_slow_processor *slow; /* slowest first */
    bool *determined;         /* by place of a rank: its processors' part has been taken off */
    uint32_t *alone;          /* by place of a rank: the processor that it alone had, nearly all the
                                 time; PKI_SEAT_UNKNOWN: none */
} job_processors;

/* Takes it off both (late.h: at most, and at least). */
job_processors job_find_processors(const job *j, const uint32_t *roles, size_t role_count,
                                   double *values, double *low);
void job_processors_finish(job_processors *p);

/* processors_slow.c: how much slower one was in a block than the others of its host. */
typedef struct job_processor_look {
    uint32_t number;
    size_t block, ranks;
    double by; /* a logarithm */
} job_processor_look;

/* Of a host; they are put in order. */
void job_find_slow(const job *j, uint32_t host, job_processor_look *looks, size_t count,
                   job_processors *p);
