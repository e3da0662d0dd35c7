/* lib/measure/costs/events.h - what sampled calls have counted, and what is set beside it */
#pragma once

#include "core/events.h"
#include "measure/rows.h"
#include "measure/figure.h"

/* ---- what sampled calls have counted, as figures of a region ---- */

/* Of calls with values x, each of which stands for w calls:
 *
 *     mean      m = sum(w x) / sum(w)
 *     quotient  R = sum(w a) / sum(w b)                         instructions per cycle, say; or
 *                                                               slots that retired, of all slots
 *     error     2 x sqrt(n / (n - 1) x sum(w^2 (x - m)^2) / sum(w)^2 x (1 - n / calls))
 *               2 x sqrt(n / (n - 1) x sum(w^2 (a - R b)^2) / sum(w b)^2 x (1 - n / calls))
 *
 * by linearisation (Cochran, Sampling Techniques, 3rd edition, chapters 6 and 11), with the
 * correction for finite populations: where all calls were sampled there is no error. Below
 * PKI_EVENTS_FEW samples, not of all calls, it is not known. No clock, no kernel. */

/* Adds what another thread has counted of the same region. */
void pki_event_sums_add(pki_event_sums *sum, const pki_event_sums *more);

/* The figures of that region, which had so many calls; mask: which events there are. All but the
 * name. */
void pki_event_sums_fill(const pki_event_sums *row, uint64_t calls, uint32_t mask,
                         pki_events_row *out);

/* ---- beside ---- */

/* Which figures of sampled calls are set beside those of other ranks
 * and runs, and when two of them differ.
 *
 * Each has its error, 2 standard errors of its sampling. Two samples are drawn
 * apart, so the difference of two figures has the root of both squares: what is beyond it is no
 * chance of the sampling, 95 times in 100. What runs differ by anyway is not in it. */

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
