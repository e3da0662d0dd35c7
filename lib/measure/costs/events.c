#include "measure/costs/events.h"

#include <math.h>

#include "base/compiler.h"

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

/* Of two events, one of which are the instructions; `times` that. */
static void fill_ratio(const pki_event_sums *row, uint64_t calls, int above, int below,
                       double times, int at, pki_events_row *out)
{
    double under = row->sum[below];
    if (!(under > 0))
        return;
    double ratio = row->sum[above] / under;
    double together = row->beside[above ? above : below];
    double squares = row->square[above] - 2 * ratio * together + ratio * ratio * row->square[below];
    double error = error_of(row, calls, squares, under);
    out->ratio[at] = ratio * times;
    out->ratio_error[at] = error < 0 ? -1 : error * times;
}

static bool has(uint8_t mask, int event)
{
    return mask >> event & 1;
}

void pki_event_sums_fill(const pki_event_sums *row, uint64_t calls, uint8_t mask,
                         pki_events_row *out)
{
    enum { INSTRUCTIONS, CYCLES, CACHE, BRANCH };
    out->calls = PKI_MAX(calls, row->sampled);
    out->sampled = row->sampled;
    out->missed = row->missed;
    for (int i = 0; i < PKI_EVENTS; i++)
        out->value[i] = out->error[i] = -1;
    for (int i = 0; i < PKI_EVENT_RATIOS; i++)
        out->ratio[i] = out->ratio_error[i] = -1;
    if (!(row->weight > 0))
        return;
    for (int i = 0; i < PKI_EVENTS; i++)
        if (has(mask, i))
            fill_mean(row, out->calls, i, out);
    if (!has(mask, INSTRUCTIONS))
        return;
    if (has(mask, CYCLES))
        fill_ratio(row, out->calls, INSTRUCTIONS, CYCLES, 1, PKI_EVENT_IPC, out);
    if (has(mask, CACHE))
        fill_ratio(row, out->calls, CACHE, INSTRUCTIONS, 1000, PKI_EVENT_CACHE, out);
    if (has(mask, BRANCH))
        fill_ratio(row, out->calls, BRANCH, INSTRUCTIONS, 1000, PKI_EVENT_BRANCH, out);
}
