/* tools/report_text.h - what `pk report` adds to a report's text. */
#pragma once

#include "job/against/against.h"
#include "out/report/report.h"

/* The regions of each thread, from what was made of the same run's events, which loses them. */
void report_move_thread_regions(pki_summary *summary, pki_summary *events);

/* Likewise the call tree. */
void report_move_tree(pki_summary *summary, pki_summary *events);

/* What sampled calls of both runs counted; nothing where one has none. */
void report_events_beside(const pki_summary *mine, const pki_summary *other,
                          const pki_report_options *options, FILE *file);

/* This run's figures and regions beside another one's. a: what their steps say of them; NULL: they
 * say nothing. 0, or -errno of the writing. */
int report_beside(const pki_summary *mine, const pki_summary *other, const char *path,
                  const against *a, const pki_report_options *options, FILE *file);
