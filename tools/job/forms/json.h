/* tools/job/forms/json.h - parts of the job's JSON, for who puts them into another text. */
#pragma once

#include "job/verdicts/findings.h"
#include "out/json_write.h"

#define JOB_FORMAT "perfkit job"
#define JOB_SCHEMA 1

void job_json_spread(pki_json *j, const char *key, const job_spread *s);

/* The verdicts as they are said to people: "said". */
void job_json_grouped_verdicts(pki_json *j, const job_findings *f);

/* json_exchange.c: MPI, messages and waits; of a rank, into its object. */
void job_json_exchange(pki_json *j, const job_findings *f, size_t most);
void job_json_rank_waits(pki_json *j, const job_findings *f, size_t rank);

/* How much of it, for who has bounded room: the first ones of each array. */
typedef struct job_json_most {
    size_t rows, loops, numbers; /* numbers: of ranks that are missing or cut off */
    const size_t *ranks;         /* the places of those that are shown; NULL: all */
    size_t rank_count;
} job_json_most;

/* The members of the job's object. */
void job_json_members(pki_json *j, const job_findings *f, const job_json_most *most);
