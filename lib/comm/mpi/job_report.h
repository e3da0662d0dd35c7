/* lib/comm/mpi/job_report.h - of all ranks' parts the job's report: `pk job`, without files.
 *
 * The code is that of the command (tools/job), linked into one object whose only name is this
 * function (tools/job/library).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pki_job_piece {
    int32_t rank;
    const char *text; /* what its report_path ending in .rank.json would have */
    size_t bytes;
    bool taken; /* set by pki_job_report: the report has it */
} pki_job_piece;

/* What `pk job` says of these ranks, as text or as JSON; to be freed. The same bytes in whatever
 * order they come. A piece whose run had ended before that of the lowest rank began is of another
 * job, and left out. NULL: nothing can be said of them, or no memory, and why. */
char *pki_job_report(pki_job_piece *pieces, size_t count, int32_t ranks, bool json, size_t *bytes,
                     char why[300]);
