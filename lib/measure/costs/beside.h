/* lib/measure/costs/beside.h - which figures of sampled calls are set beside those of other ranks
 * and runs, and when two of them differ.
 *
 * Each has its error, 2 standard errors of its sampling (costs/events.h). Two samples are drawn
 * apart, so the difference of two figures has the root of both squares: what is beyond it is no
 * chance of the sampling, 95 times in 100. What runs differ by anyway is not in it.
 */
#pragma once

#include "measure/costs/rows.h"
#include "measure/figure.h"

typedef enum pki_event_figure {
    PKI_FIGURE_IPC,
    PKI_FIGURE_CACHE, /* misses in 1,000 instructions */
    PKI_FIGURE_BRANCH,
    PKI_FIGURE_INSTRUCTIONS, /* a call */
    PKI_FIGURE_PROCESSOR,    /* ns a call */
    PKI_FIGURE_RETIRING,     /* from here on: of all slots */
    PKI_FIGURE_BAD_SPECULATION,
    PKI_FIGURE_FRONTEND_BOUND,
    PKI_FIGURE_BACKEND_BOUND,
    PKI_EVENT_FIGURES
} pki_event_figure;

/* As the report file has it, and as people read it. */
const char *pki_event_figure_key(pki_event_figure figure);
const char *pki_event_figure_name(pki_event_figure figure);

bool pki_event_figure_is_share(pki_event_figure figure);

/* In at most seven columns. */
pki_figure pki_event_figure_shown(pki_event_figure figure, double value);

/* As a share of the figure; of what is a share itself, of the slots as it is. "?": not known. */
pki_figure pki_event_error_shown(pki_event_figure figure, double value, double error);

/* Below 0: not known. */
double pki_event_figure_of(const pki_events_row *row, pki_event_figure figure);
double pki_event_error_of(const pki_events_row *row, pki_event_figure figure);

/* Two figures and their errors; where one of those is not known, nobody can tell. */
bool pki_event_figures_differ(double one, double error, double other, double other_error);
