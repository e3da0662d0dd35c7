/* tools/job/figures/life.h - goodput: the state files of the job's life, beside its ranks' files.
 */
#pragma once

#include <stdio.h>

#include "job/job.h"
#include "measure/goodput/life.h"
#include "out/json_write.h"

typedef struct job_life {
    char *path;
    bool runs; /* a process holds the file */
    pki_life_sum sum;
} job_life;

/* False: it is no such file. */
bool job_life_read(const char *path, job_life *life);

void job_lives_text(const job *j, FILE *to);
void job_lives_json(const job *j, pki_json *json); /* the member "goodput" */

/* Where nothing but state files was given. */
void job_lives_alone(const job *j, bool json, FILE *to);
