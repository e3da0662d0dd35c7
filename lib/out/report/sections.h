/* lib/out/report/sections.h - the parts of the text report; report/text.c puts them in order. Each
 * writes nothing if it has nothing to say, and ends with a newline otherwise.
 */
#ifndef PKI_OUT_REPORT_SECTIONS_H
#define PKI_OUT_REPORT_SECTIONS_H

#include "base/compiler.h"
#include "out/report/report.h"

void pki_report_head(const pki_summary *summary, FILE *file);
void pki_report_verdicts(const pki_summary *summary, FILE *file);
void pki_report_steps(const pki_summary *summary, FILE *file);
void pki_report_chart(const pki_step_summary *steps, FILE *file);
void pki_report_gpus(const pki_summary *summary, uint32_t top, FILE *file);
void pki_report_activities(const pki_activity_summary *activities, FILE *file);
void pki_report_regions(const pki_summary *summary, uint32_t top, FILE *file);
void pki_report_threads(const pki_summary *summary, bool with_regions, uint32_t top, FILE *file);
void pki_report_counters(const pki_summary *summary, FILE *file);
void pki_report_comm(const pki_summary *summary, FILE *file);
void pki_report_recording(const pki_summary *summary, FILE *file);
void pki_report_backends(const pki_summary *summary, FILE *file);

/* A blank line, and the title in capitals. */
PKI_PRINTF(2, 3) void pki_report_title(FILE *file, const char *format, ...);

/* A paragraph at the margin of a section. */
PKI_PRINTF(2, 3) void pki_report_say(FILE *file, const char *format, ...);

#endif
