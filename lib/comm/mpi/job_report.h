/* lib/comm/mpi/job_report.h - of all ranks' parts the job's report: `pk job`, without files.
 *
 * The code is that of the command (tools/job), linked into one object whose only names are these
 * functions (tools/job/library).
 *
 * A part is read when it is there, and what is kept of it is a small piece (some 12 KiB): nobody
 * has to hold all parts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pki_mpi_report pki_mpi_report;

/* Of a job of so many ranks. NULL without memory. */
pki_mpi_report *pki_mpi_report_begin(int32_t ranks);

/* text: what the rank's report_path ending in .rank.json would have. In the order of ranks. False:
 * it cannot be read, or its run had ended before that of the first one began, so it is of another
 * job. */
bool pki_mpi_report_read(pki_mpi_report *report, int32_t rank, const char *text, size_t bytes);

/* What `pk job` says of these ranks, as text or as JSON, once or in both ways; to be freed. NULL:
 * nothing can be said of them, or no memory, and why. */
char *pki_mpi_report_text(pki_mpi_report *report, bool json, size_t *bytes, char why[300]);

void pki_mpi_report_end(pki_mpi_report *report);
