/* tools/job/forms/page.h - what the page of a job holds: its JSON, and what is drawn beside it.
 *
 * Both are bounded, however many ranks, steps and regions there are: to about 2 MB in all, where
 * paths and names are of usual length. What is left out or drawn together is said in the page.
 */
#pragma once

#include "job/against/against.h"
#include "job/verdicts/findings.h"
#include "out/json_write.h"

typedef struct job_page {
    const job_findings *found;
    const against *against; /* NULL: beside nothing */
    const char *other;      /* what it is beside */
    char *base;             /* from the page's folder to where relative paths of ranks begin */
    size_t *ranks;          /* places of the ranks that are listed one by one, in order... */
    size_t rank_count;      /* ...JOB_PAGE_RANKS at most: the latest ones */
} job_page;

#define JOB_PAGE_RANKS 4096
#define JOB_PAGE_ROWS 200    /* of each table */
#define JOB_PAGE_LOOPS 8     /* kinds of steps */
#define JOB_PAGE_BLOCKS 512  /* the heat map: at most so many columns... */
#define JOB_PAGE_HEIGHT 400  /* ...and rows; a cell of several has their maximum */
#define JOB_PAGE_MATRIX 128  /* who talks to whom: at most so many rows and columns */
#define JOB_PAGE_CELLS 40000 /* ranks x regions, and ranks x stages */

/* path: of the page that will be; "-" is the standard output. */
job_page job_page_of(const job_findings *f, const char *path);
void job_page_finish(job_page *p);

/* Of a job_page an object each: the job as in `pk job --json`, and what is drawn
 * (docs/job.md). 0, or -errno. */
int job_page_job(const void *page, FILE *file);
int job_page_drawn(const void *page, FILE *file);

/* heat.c, matrix.c: an object of that key; nothing where there is nothing to draw. */
void job_page_heat(const job_findings *f, const char *key, pki_json *to);
void job_page_matrix(const job_findings *f, const char *key, pki_json *to);
