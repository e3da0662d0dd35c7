/* tools/job/verdicts/findings.h - all that is found in a job, and said of it. */
#pragma once

#include <stdio.h>

#include "job/against/against.h"
#include "job/verdicts/crowd.h"
#include "job/figures/exchange.h"
#include "job/figures/frontier.h"
#include "job/verdicts/late.h"
#include "job/figures/links.h"
#include "job/figures/pop.h"
#include "job/figures/waits.h"

/* From one rank to another, both included. */
typedef struct job_gap {
    int32_t first, last;
} job_gap;

typedef struct job_findings {
    const job *of;
    job_lateness lateness;
    job_pop pop;
    job_frontier frontier; /* of the usual steps */
    job_links links;
    job_exchange exchange;
    job_waits waits;
    size_t crowd_count;
    job_crowd *crowds;    /* by host */
    size_t missing_count; /* ranks without a file, ... */
    size_t gap_count;     /* ...which are these, in order: a file may say 2,000,000,000 ranks */
    job_gap *gaps;
    size_t cut_count; /* ranks whose run did not end, or whose file is cut off */
    int32_t *cut;
} job_findings;

job_findings job_find(const job *j);
void job_findings_finish(job_findings *f);

/* "0-3, 7, 9-12", of numbers in order, or of gaps; to be freed. */
char *job_ranges(const int32_t *numbers, size_t count);
char *job_gaps(const job_gap *gaps, size_t count);

/* What even the rank that waits least waits, as a share of the steps; 0 if it is not known. */
double job_communication_share(const job_findings *f);

/* Who is late, by how much, where, and what it costs: a sentence. */
void job_describe_late(const job *j, const job_late *late, char *text, size_t size);

/* Sentences, what is urgent first: each to be freed, and the array. */
typedef struct job_verdict {
    const char *name; /* "late-rank", "late-host", "slow-link", "slow-processor", "maybe-late",
                         "not-sure", "no-processor", "communication", "imbalance", "missing-ranks",
                         "cut-off", "waits-unknown", "not-judged", "no-finding" */
    pki_severity severity;
    char *text;
    const job_late *late;           /* of "late-rank" and "late-host" */
    const job_slow_processor *slow; /* of "slow-processor" */
} job_verdict;

job_verdict *job_verdicts(const job_findings *f, size_t *count);

/* The same for people: of more than so many that are late a few sentences, "late-ranks" by stage
 * and "late-hosts". */
#define JOB_LATE_SAID 6
job_verdict *job_grouped_verdicts(const job_findings *f, size_t *count);

/* late_groups.c: these sentences, how many. */
#define JOB_GROUPS_MOST 8
size_t job_add_late_groups(const job_findings *f, job_verdict *to);

void job_print_text(const job_findings *f, FILE *to);

/* a NULL: it is beside nothing; else `other` is what that is called. */
void job_print_json(const job_findings *f, const against *a, const char *other, FILE *to);
