/* tools/html/html.h - a run's report as one page for a browser, which asks nothing of any network.
 *
 * The page holds the report's JSON (docs/internals/report-format.md) and the scripts that draw it.
 * Names may hold anything: in the page's text they are never markup.
 */
#pragma once

#include "beside/slices.h"
#include "html/file.h"
#include "measure/summary.h"

#include <stdio.h>

typedef struct html_run {
    const char *name; /* of its file, as the page shall call it */
    const pki_summary *summary;
    const slices *events; /* of the steps in summary->beside; NULL: none */
} html_run;

/* Has this pk been built with the library that draws the charts? */
extern const bool html_is_there;

/* `against`: another run to compare with, or NULL. 0, or -errno. */
int html_write(const html_run *run, const html_run *against, FILE *file);

/* The page of a job, of what these two write of it as JSON (job/forms/page.h). 0, or -errno. */
int html_write_job(html_page *job, html_page *drawn, const void *of, FILE *file);
