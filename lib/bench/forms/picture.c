/* Samples as pictures of characters. */
#include "bench/forms/document.h"

#include "base/compiler.h"
#include "bench/stats/sample_stats.h"
#include "out/columns.h"

#include <stdlib.h>
#include <string.h>

#define BARS 16
#define BAR_WIDTH 40

static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

#define SPREADS 6

/* Around the median: a spike would flatten all else. */
static void range_of(const pk_bench_result *r, double *low, double *high)
{
    double most = SPREADS * PKI_MAX(r->mad, r->median / 1000);
    *low = PKI_MAX(r->min, r->median - most);
    *high = PKI_MIN(r->max, r->median + most);
    if (!(*high > *low))
        *high = *low + 1;
}

static size_t step_of(double value, double low, double high, size_t steps)
{
    double at = (value - low) / (high - low) * (double)steps;
    return at < 0 ? 0 : at >= (double)steps ? steps - 1 : (size_t)at;
}

void pki_bench_sparkline(const pk_bench_result *r, size_t width, FILE *file)
{
    double low, high;
    size_t columns = PKI_MIN(width, (size_t)r->count);
    double *scratch = malloc((r->count / (columns ? columns : 1) + 2) * sizeof *scratch);
    range_of(r, &low, &high);
    for (size_t i = 0; scratch && i < columns; i++) {
        size_t from = i * r->count / columns, to = (i + 1) * r->count / columns;
        memcpy(scratch, r->samples + from, (to - from) * sizeof *scratch);
        double median = pki_samples_select_median(scratch, to - from);
        fputs(heights[step_of(median, low, high, PKI_COUNT_OF(heights))], file);
    }
    free(scratch);
    fprintf(file, "  %s", pki_bench_time(low).text);
    fprintf(file, " .. %s", pki_bench_time(high).text);
}

void pki_bench_histogram(const pk_bench_result *r, FILE *file)
{
    size_t bars[BARS] = {0}, most = 0, beyond = 0;
    double low, high;
    range_of(r, &low, &high);
    for (size_t i = 0; i < r->count; i++) {
        if (r->samples[i] > high)
            beyond++;
        else
            bars[step_of(r->samples[i], low, high, BARS)]++;
    }
    for (size_t i = 0; i < BARS; i++)
        most = PKI_MAX(most, bars[i]);
    for (size_t i = 0; i < BARS; i++) {
        fputs("    ", file);
        pki_put_right(file, pki_bench_time(low + (high - low) * (double)i / BARS).text, 9);
        fprintf(file, " %6zu%s", bars[i], bars[i] ? " " : "");
        pki_put_times(file, '#', most ? (bars[i] * BAR_WIDTH + most - 1) / most : 0);
        fputc('\n', file);
    }
    if (beyond)
        fprintf(file, "    %9s %6zu  up to %s\n", "beyond", beyond, pki_bench_time(r->max).text);
}
