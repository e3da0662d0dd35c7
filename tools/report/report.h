/* tools/report/report.h - what the files of pk report share */
#pragma once

#include "job/forms/forms.h"
#include "out/report/report.h"

/* ---- what a capture is, and why its step was slow, in words ---- */

/* In front of the report of its events. Nothing where the summary is of no capture. */
void report_capture(const pki_summary *summary, const pki_report_options *options, FILE *file);

/* The run, or why a captured step took longer, in 60 lines for programs. Errors stick to the
 * stream.
 */
void report_brief(const pki_summary *summary, const char *path, FILE *file);

/* The call tree, if there is one: down to this depth, and what takes at least this share of all. */
void report_tree(const pki_summary *summary, const pki_report_options *options, uint32_t depth,
                 double least, FILE *file);

/* ---- what `pk report` adds to a report's text ---- */

/* The regions of each thread, from what was made of the same run's events, which loses them. */
void report_move_thread_regions(pki_summary *summary, pki_summary *events);

/* Likewise the call tree. */
void report_move_tree(pki_summary *summary, pki_summary *events);

/* This run's figures and regions beside another one's. a: what their steps say of them; NULL: they
 * say nothing. 0, or -errno of the writing. */
int report_beside(const pki_summary *mine, const pki_summary *other, const char *path,
                  const pki_against *a, const pki_report_options *options, FILE *file);
