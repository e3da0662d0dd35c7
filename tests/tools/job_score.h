/* tests/tools/job_score.h - what pk job's verdicts are worth, over many forged jobs. */
#pragma once

#include "job_forge.h"

typedef struct job_score {
    size_t jobs;
    size_t culprits, found;  /* recall: found / culprits */
    size_t accused, rightly; /* precision: rightly / accused */
    size_t with_false;       /* jobs in which somebody is accused wrongly */
    size_t stages;           /* of those found, with the right stage */
    size_t communication;    /* jobs that are said to be bound by it */
} job_score;

/* So many jobs, with seeds from f->seed on. */
job_score score_jobs(const forge *f, size_t jobs);
