/* lib/job/forms/forms.h - a job as text, as JSON and as a page */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "job/figures/figures.h"
#include "job/job.h"
#include "job/verdicts/verdicts.h"
#include "out/columns.h"
#include "out/json_write.h"

/* What is written is not whole where one of these answers false: there was no memory. */

/* ---- parts of the job's JSON, for who puts them into another text ---- */

#define PKI_JOB_FORMAT "perfkit job"
#define PKI_JOB_SCHEMA 1

void pki_job_json_spread(pki_json *j, const char *key, const pki_job_spread *s);

/* The verdicts as they are said to people: "said". */
bool pki_job_json_grouped_verdicts(pki_json *j, const pki_job_findings *f);

/* How much of it, for who has bounded room: the first ones of each array. */
typedef struct pki_job_json_most {
    size_t rows, loops, numbers; /* numbers: of ranks that are missing or cut off */
    const size_t *ranks;         /* the places of those that are shown; NULL: all */
    size_t rank_count;
} pki_job_json_most;

/* The members of the job's object. */
bool pki_job_json_members(pki_json *j, const pki_job_findings *f, const pki_job_json_most *most);

/* a NULL: it is beside nothing; else `other` is what that is called. */
bool pki_job_print_json(const pki_job_findings *f, const pki_against *a, const char *other,
                        FILE *to);

/* ---- parts of the text of a job ---- */

static inline void pki_job_text_left(FILE *to, const char *text, size_t width)
{
    fputs("  ", to);
    pki_put_left(to, text, width);
}

/* "12": of nobody "-". */
static inline const char *pki_job_text_rank(char text[16], int32_t rank)
{
    snprintf(text, 16, "%d", rank);
    return rank == PKI_JOB_NO_RANK ? "-" : text;
}

bool pki_job_print_text(const pki_job_findings *f, FILE *to);

/* ---- few lines for programs and assistants (docs/internals/report-format.md) ---- */

#define PKI_BRIEF_SCHEMA 1

/* "KEY: FIELD=VALUE FIELD="TEXT"". A number that is not finite and an empty text are left out. */
void pki_brief_open(FILE *to, const char *key);
void pki_brief_text(FILE *to, const char *field, const char *text);
void pki_brief_word(FILE *to, const char *field, const char *word);
void pki_brief_int(FILE *to, const char *field, double n);
void pki_brief_real(FILE *to, const char *field, double value);
void pki_brief_close(FILE *to);

const char *pki_brief_severity(pki_severity severity);

/* "next: COMMAND PATH...": as a shell reads it. */
void pki_brief_next(FILE *to, const char *command, char *const *paths, size_t count);

/* a: NULL: it is beside nothing. paths: what the job was read from. */
bool pki_job_print_brief(const pki_job_findings *f, const pki_against *a, char *const *paths,
                         size_t count, FILE *to);

/* ---- what the ranks cost beside time ---- */

/* A section, and a member of that key; nothing if nothing was measured. */
bool pki_job_costs_text(const pki_job *j, FILE *to);
bool pki_job_costs_json(const pki_job *j, pki_json *to);

/* Members of a rank's object. */
void pki_job_costs_rank_json(const pki_job_rank *rank, pki_json *to);

/* ---- events of calls over the ranks ---- */

/* A section, and a member; nothing where no rank has counted any. */
bool pki_job_counted_text(const pki_job *j, FILE *to);
bool pki_job_counted_json(const pki_job *j, size_t most, pki_json *to);

/* ---- goodput: the state files of the job's life, beside its ranks' files ---- */

void pki_job_lives_text(const pki_job *j, FILE *to);
void pki_job_lives_json(const pki_job *j, pki_json *json); /* the member "goodput" */

/* Where nothing but state files was given. */
void pki_job_lives_alone(const pki_job *j, bool json, FILE *to);

/* ---- what became of a job, for people and machines ---- */

/* What is called slower, or that processors were short; "-3.1 %..+2.2 %". */
void pki_against_put_rules(const pki_against *a, FILE *to);
void pki_against_interval_text(const pki_against_row *r, char text[100]);

void pki_against_text(const pki_against *a, const char *other, FILE *to);
/* Of the ranks `most` that have become slower or faster; SIZE_MAX: all of them. */
void pki_against_json(const pki_against *a, const char *other, size_t most, pki_json *j);

/* ---- what the page of a job holds: its JSON, and what is drawn beside it ---- */

/* Both are bounded, however many ranks, steps and regions there are: to about 2 MB in all, where
 * paths and names are of usual length. What is left out or drawn together is said in the page. */

typedef struct pki_job_page {
    const pki_job_findings *found;
    const pki_against *against; /* NULL: beside nothing */
    const char *other;          /* what it is beside */
    char *base;                 /* from the page's folder to where relative paths of ranks begin */
    size_t *ranks;              /* places of the ranks that are listed one by one, in order... */
    size_t rank_count;          /* ...RANKS_MOST at most: the latest ones */
} pki_job_page;

/* path: of the page that will be; "-" is the standard output. To be finished in any case. */
bool pki_job_page_of(pki_job_page *p, const pki_job_findings *f, const char *path);
void pki_job_page_finish(pki_job_page *p);

/* Of a pki_job_page an object each: the job as in `pk job --json`, and what is drawn
 * (docs/job.md). 0, or -errno. */
int pki_job_page_job(const void *page, FILE *file);
int pki_job_page_drawn(const void *page, FILE *file);
