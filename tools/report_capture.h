/* tools/report_capture.h - in words: what a capture is, and why its step was slow. In front of the
 * report of its events. */
#pragma once

#include "out/report/report.h"

/* Nothing where the summary is of no capture. */
void report_capture(const pki_summary *summary, const pki_report_options *options, FILE *file);

/* The call tree, if there is one: down to this depth, and what takes at least this share of all. */
void report_tree(const pki_summary *summary, const pki_report_options *options, uint32_t depth,
                 double least, FILE *file);
