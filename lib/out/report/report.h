/* lib/out/report/report.h - a run's summary as a text for people and as JSON for machines.
 *
 * Both write to a stream and leave it open, flushed. 0, or -errno of what went wrong (a write,
 * memory); then part of the report may have been written. Neither changes the summary. The result
 * does not depend on the program's locale, and is valid UTF-8 whatever bytes the names hold. The
 * text is 80 columns wide, or has wider tables where it is asked for.
 */
#pragma once

#include "measure/summary.h"

#include <stdio.h>

#define PKI_REPORT_FORMAT "perfkit report" /* "format" in the report file */

typedef struct pki_report_options {
    uint32_t top;    /* regions shown; 0: PKI_REPORT_TOP */
    bool no_threads; /* not each thread's regions, although the summary has them */
    uint32_t width;  /* columns of a line; what is more than 80 gives room to names. 0: 80 */
    bool (*shows)(void *user, const char *name); /* of a region or kernel; NULL: all */
    void *user;
} pki_report_options;

#define PKI_REPORT_TOP 25
#define PKI_REPORT_ALL UINT32_MAX

int pki_report_text(const pki_summary *summary, FILE *file);
int pki_report_text_with(const pki_summary *summary, const pki_report_options *options, FILE *file);

/* docs/internals/report-format.md. One line per region, thread, step...; ends with a newline. */
int pki_report_json(const pki_summary *summary, FILE *file);

/* Of it what a job of many ranks is made of, in 64 KiB for 100 regions and any number of steps:
 * run, stages, communicators and regions, with the buckets of wide distributions joined. */
#define PKI_RANK_SUFFIX ".rank.json"
int pki_report_rank(const pki_summary *summary, FILE *file);

/* What a rank's stands behind in the file of a job (docs/report-format.md): a line that begins like
 * this, then its schema, "rank", "ranks" and the "bytes" that follow. */
#define PKI_RANKS_SCHEMA 1
#define PKI_RANKS_BEGIN "{\"format\":\"perfkit ranks\",\"schema\":"

/* The same object on one line, without a newline, for the inside of a trace: "perfkitReport":{...}
 * */
int pki_report_json_line(const pki_summary *summary, FILE *file);
