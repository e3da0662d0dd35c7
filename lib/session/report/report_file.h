/* lib/session/report/report_file.h - a summary into the place that report_path names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <pk/status.h>

#include "measure/summary.h"

/* Can there be a report? Asked at the start: a run that ends without one is too late to learn it.
 */
pk_status pki_report_check(const char *path);

/* path "": nowhere; "-": text on stderr. */
pk_status pki_report_file(const pki_summary *summary, const char *path, bool json);

/* A report in memory, in a block of its own; NULL without memory. */
typedef int pki_report_function(const pki_summary *summary, FILE *file);
char *pki_report_as(pki_report_function *report, const pki_summary *summary, size_t *bytes);

/* The JSON report on one line, in a block of its own; NULL without memory. */
char *pki_report_line(const pki_summary *summary, size_t *bytes);
