#include "measure/costs/beside.h"

#include <math.h>

static pki_figure plain(double value)
{
    return pki_figure_scaled(value, "");
}

static const struct {
    const char *key, *name; /* as the report file has it, and as people read it */
    bool is_ratio;          /* the row has it there, or among its means... */
    uint8_t at;             /* ...under this number */
    pki_figure (*shown)(double value);
} figures[PKI_EVENT_FIGURES] = {
    [PKI_FIGURE_IPC] = {"ipc", "IPC", true, PKI_EVENT_IPC, plain},
    [PKI_FIGURE_CACHE] = {"cache_misses_per_1000", "cache misses", true, PKI_EVENT_CACHE, plain},
    [PKI_FIGURE_BRANCH] = {"branch_misses_per_1000", "branch misses", true, PKI_EVENT_BRANCH,
                           plain},
    [PKI_FIGURE_INSTRUCTIONS] = {"instructions", "instructions", false, PKI_EVENT_INSTRUCTIONS,
                                 plain},
    [PKI_FIGURE_PROCESSOR] = {"processor_time", "on a processor", false, PKI_EVENT_PROCESSOR,
                              pki_figure_time_tight},
    [PKI_FIGURE_RETIRING] = {"retiring", "retiring", true, PKI_EVENT_RETIRING, pki_figure_percent},
    [PKI_FIGURE_BAD_SPECULATION] = {"bad_speculation", "bad spec.", true, PKI_EVENT_BAD_SPECULATION,
                                    pki_figure_percent},
    [PKI_FIGURE_FRONTEND_BOUND] = {"frontend_bound", "front-end", true, PKI_EVENT_FRONTEND_BOUND,
                                   pki_figure_percent},
    [PKI_FIGURE_BACKEND_BOUND] = {"backend_bound", "back-end", true, PKI_EVENT_BACKEND_BOUND,
                                  pki_figure_percent},
};

const char *pki_event_figure_key(pki_event_figure figure)
{
    return figures[figure].key;
}

const char *pki_event_figure_name(pki_event_figure figure)
{
    return figures[figure].name;
}

bool pki_event_figure_is_share(pki_event_figure figure)
{
    return figure >= PKI_FIGURE_RETIRING;
}

pki_figure pki_event_figure_shown(pki_event_figure figure, double value)
{
    return figures[figure].shown(value);
}

pki_figure pki_event_error_shown(pki_event_figure figure, double value, double error)
{
    bool share = pki_event_figure_is_share(figure);
    if (error < 0 || (!share && !(value > 0)))
        return (pki_figure){"?"};
    return pki_figure_percent(share ? error : error / value);
}

/* A file that was written before there were shares has 0 for what it does not say. */
static double known(const pki_events_row *row, pki_event_figure figure, double value)
{
    return pki_event_figure_is_share(figure) && !(row->value[PKI_EVENT_SLOTS] > 0) ? -1 : value;
}

double pki_event_figure_of(const pki_events_row *row, pki_event_figure figure)
{
    unsigned at = figures[figure].at;
    return known(row, figure, figures[figure].is_ratio ? row->ratio[at] : row->value[at]);
}

double pki_event_error_of(const pki_events_row *row, pki_event_figure figure)
{
    unsigned at = figures[figure].at;
    return known(row, figure, figures[figure].is_ratio ? row->ratio_error[at] : row->error[at]);
}

bool pki_event_figures_differ(double one, double error, double other, double other_error)
{
    return one >= 0 && other >= 0 && error >= 0 && other_error >= 0 &&
           fabs(one - other) > hypot(error, other_error);
}
