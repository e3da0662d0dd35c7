/* tools/html/html.h - reports as pages */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "beside/beside.h"
#include "complaint.h"
#include "measure/summary.h"

/* ---- the file of a page: what can be one, and writing it ---- */

/* 0, or -errno. */
typedef int html_page(const void *of, FILE *file);

/* Before long work: can a page be made, and be there? "-" is the standard output. */
bool html_can_write(const char *path, complaint *why);

bool html_write_file(const char *path, html_page *write, const void *of, complaint *why);

/* ---- a run's report as one page for a browser, which asks nothing of any network ---- */

/* The page holds the report's JSON (docs/internals/report-format.md) and the scripts that draw it.
 * Names may hold anything: in the page's text they are never markup. */

typedef struct html_run {
    const char *name; /* of its file, as the page shall call it */
    const pki_summary *summary;
    const slices *events; /* of the steps in summary->beside; NULL: none */
} html_run;

/* `against`: another run to compare with, or NULL. 0, or -errno. */
int html_write(const html_run *run, const html_run *against, FILE *file);

/* The page of a job, of what these two write of it as JSON (job/forms/forms.h). 0, or -errno. */
int html_write_job(html_page *job, html_page *drawn, const void *of, FILE *file);

/* ---- the pages without their data (made by pack.py) ---- */

extern const unsigned char html_before[], html_behind[];
extern const size_t html_before_bytes, html_behind_bytes;
extern const unsigned char job_html_before[], job_html_behind[];
extern const size_t job_html_before_bytes, job_html_behind_bytes;
