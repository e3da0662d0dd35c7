/* lib/measure/costs/beside.h - which figures of sampled calls are set beside those of other ranks
 * and runs, and when two of them differ.
 *
 * Each has its error, 2 standard errors of its sampling (costs/events.h). Two samples are drawn
 * apart, so the difference of two figures has the root of both squares: what is beyond it is no
 * chance of the sampling, 95 times in 100. What runs differ by anyway is not in it.
 */
#pragma once

#include <math.h>

#include "measure/costs/rows.h"

typedef enum pki_event_figure {
    PKI_FIGURE_IPC,
    PKI_FIGURE_CACHE, /* misses in 1,000 instructions */
    PKI_FIGURE_BRANCH,
    PKI_FIGURE_INSTRUCTIONS, /* a call */
    PKI_FIGURE_PROCESSOR,    /* ns a call */
    PKI_EVENT_FIGURES
} pki_event_figure;

/* As the report file has it, and as people read it. */
static inline const char *pki_event_figure_key(pki_event_figure figure)
{
    static const char *const keys[PKI_EVENT_FIGURES] = {
        "ipc", "cache_misses_per_1000", "branch_misses_per_1000", "instructions", "processor_time"};
    return keys[figure];
}

static inline const char *pki_event_figure_name(pki_event_figure figure)
{
    static const char *const names[PKI_EVENT_FIGURES] = {"IPC", "cache misses", "branch misses",
                                                         "instructions", "on a processor"};
    return names[figure];
}

/* Below 0: not known. */
static inline double pki_event_figure_of(const pki_events_row *row, pki_event_figure figure)
{
    switch (figure) {
    case PKI_FIGURE_INSTRUCTIONS:
        return row->value[0];
    case PKI_FIGURE_PROCESSOR:
        return row->value[4];
    default:
        return row->ratio[figure];
    }
}

static inline double pki_event_error_of(const pki_events_row *row, pki_event_figure figure)
{
    switch (figure) {
    case PKI_FIGURE_INSTRUCTIONS:
        return row->error[0];
    case PKI_FIGURE_PROCESSOR:
        return row->error[4];
    default:
        return row->ratio_error[figure];
    }
}

/* Two figures and their errors; where one of those is not known, nobody can tell. */
static inline bool pki_event_figures_differ(double one, double error, double other,
                                            double other_error)
{
    return one >= 0 && other >= 0 && error >= 0 && other_error >= 0 &&
           fabs(one - other) > hypot(error, other_error);
}
