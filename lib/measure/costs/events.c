#include "measure/costs/events.h"

#include <math.h>

#include "base/compiler.h"
#include "core/events.h"
#include "measure/rows.h"

/* ---- what sampled calls have counted, as figures of a region ---- */

#define PKI_EVENTS_FEW 10

void pki_event_sums_add(pki_event_sums *sum, const pki_event_sums *more)
{
    sum->id = more->id;
    sum->sampled += more->sampled;
    sum->missed += more->missed;
    sum->weight += more->weight;
    sum->weight2 += more->weight2;
    for (int i = 0; i < PKI_EVENTS; i++) {
        sum->sum[i] += more->sum[i];
        sum->sum2[i] += more->sum2[i];
        sum->square[i] += more->square[i];
        sum->beside[i] += more->beside[i];
    }
}

/* Of the sum of weighted squares; -1: too few. What cannot be below 0 may be by rounding. */
static double error_of(const pki_event_sums *row, uint64_t calls, double squares, double over)
{
    double n = (double)row->sampled;
    if (row->sampled >= calls)
        return 0;
    if (row->sampled < PKI_EVENTS_FEW || !(over > 0))
        return -1;
    double rest = 1 - n / (double)calls;
    return 2 * sqrt(n / (n - 1) * PKI_MAX(squares, 0.0) * rest) / over;
}

static void fill_mean(const pki_event_sums *row, uint64_t calls, int i, pki_events_row *out)
{
    double mean = row->sum[i] / row->weight;
    double squares = row->square[i] - 2 * mean * row->sum2[i] + mean * mean * row->weight2;
    out->value[i] = mean;
    out->error[i] = error_of(row, calls, squares, row->weight);
}

/* What a figure is a quotient of: weighted sums. */
typedef struct base {
    double sum, square; /* of weight x value; of its square */
} base;

/* Of event `above`, of which and of the base `together` is the sum of weighted products; `times`
 * that. */
static void fill_ratio(const pki_event_sums *row, uint64_t calls, int above, double together,
                       base under, double times, int at, pki_events_row *out)
{
    if (!(under.sum > 0))
        return;
    double ratio = PKI_MAX(row->sum[above], 0.0) / under.sum;
    double squares = row->square[above] - 2 * ratio * together + ratio * ratio * under.square;
    double error = error_of(row, calls, squares, under.sum);
    out->ratio[at] = ratio * times;
    out->ratio_error[at] = error < 0 ? -1 : error * times;
}

static bool has(uint32_t mask, int event)
{
    return mask >> event & 1;
}

static base base_of(const pki_event_sums *row, int event)
{
    return (base){row->sum[event], row->square[event]};
}

static void fill_hardware(const pki_event_sums *row, uint64_t calls, uint32_t mask,
                          pki_events_row *out)
{
    enum { INSTRUCTIONS, CYCLES, CACHE, BRANCH };
    base instructions = base_of(row, INSTRUCTIONS), cycles = base_of(row, CYCLES);
    if (!has(mask, INSTRUCTIONS))
        return;
    if (has(mask, CYCLES))
        fill_ratio(row, calls, INSTRUCTIONS, row->beside[CYCLES], cycles, 1, PKI_EVENT_IPC, out);
    if (has(mask, CACHE))
        fill_ratio(row, calls, CACHE, row->beside[CACHE], instructions, 1000, PKI_EVENT_CACHE, out);
    if (has(mask, BRANCH))
        fill_ratio(row, calls, BRANCH, row->beside[BRANCH], instructions, 1000, PKI_EVENT_BRANCH,
                   out);
}

_Static_assert((int)PKI_EVENT_SLOTS == (int)PKI_EVENT_AT(PKI_TOPDOWN, 0), "means of the others");

/* Slots are the sum of what became of them, so shares sum to 1; and what is summed beside each of
 * the four sums to the square of all. What is below 0 by chance counts as none. */
static void fill_slots(const pki_event_sums *row, uint64_t calls, pki_events_row *out)
{
    enum { FIRST = PKI_EVENT_AT(PKI_TOPDOWN, 0), END = PKI_EVENT_AT(PKI_TOPDOWN + 1, 0) };
    base all = {0, 0};
    double sum2 = 0;
    for (int i = FIRST; i < END; i++) {
        all.sum += PKI_MAX(row->sum[i], 0.0);
        all.square += row->beside[i];
        sum2 += row->sum2[i];
    }
    if (!(all.sum > 0))
        return;
    double mean = all.sum / row->weight;
    double squares = all.square - 2 * mean * sum2 + mean * mean * row->weight2;
    out->value[PKI_EVENT_SLOTS] = mean;
    out->error[PKI_EVENT_SLOTS] = error_of(row, calls, squares, row->weight);
    for (int i = FIRST; i < END; i++)
        fill_ratio(row, calls, i, row->beside[i], all, 1, PKI_EVENT_RETIRING + i - FIRST, out);
}

void pki_event_sums_fill(const pki_event_sums *row, uint64_t calls, uint32_t mask,
                         pki_events_row *out)
{
    out->calls = PKI_MAX(calls, row->sampled);
    out->sampled = row->sampled;
    out->missed = row->missed;
    for (int i = 0; i < PKI_EVENT_MEANS; i++)
        out->value[i] = out->error[i] = -1;
    for (int i = 0; i < PKI_EVENT_RATIOS; i++)
        out->ratio[i] = out->ratio_error[i] = -1;
    if (!(row->weight > 0))
        return;
    for (int i = 0; i < PKI_EVENT_SLOTS; i++)
        if (has(mask, i))
            fill_mean(row, out->calls, i, out);
    fill_hardware(row, out->calls, mask, out);
    if (mask & PKI_EVENT_MASK(PKI_TOPDOWN))
        fill_slots(row, out->calls, out);
}

/* ---- beside ---- */

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
