/* lib/session/report_file.h - a summary into the place that report_path names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <pk/status.h>

#include "measure/summary.h"

/* Can there be a report? Asked at the start: a run that ends without one is too late to learn it.
 */
pk_status pki_report_check(const char *path);

/* path "": nowhere; "-": text on stderr. */
pk_status pki_report_file(const pki_summary *summary, const char *path, bool json);

/* The JSON report on one line, in a block of its own; NULL without memory. */
char *pki_report_line(const pki_summary *summary, size_t *bytes);
