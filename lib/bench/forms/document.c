#include "bench/forms/document.h"

#include "base/compiler.h"
#include "bench/figures.h"
#include "bench/result.h"
#include "bench/stats/sample_stats.h"

#include <math.h>
#include <string.h>

/* ---- rows ---- */

bool pki_bench_row_fill(pki_bench_row *row, pki_bench_case *c)
{
    row->clock = c->options.clock;
    row->cold = c->options.cold != 0;
    row->bytes = c->bytes;
    row->flops = c->flops;
    row->items = c->items;
    memcpy(row->label, c->label, sizeof row->label);
    row->arguments = c->arguments;
    for (unsigned i = 0; i < c->series_count; i++) {
        memcpy(row->figures[i].name, c->series[i].name, sizeof row->figures[i].name);
        row->figures[i].value = pki_bench_series_median(&c->series[i]);
    }
    row->figure_count = c->series_count;
    return pki_bench_result_fill(&row->result, c);
}

void pki_bench_row_finish(pki_bench_row *row)
{
    pk_bench_result_release(&row->result);
}

bool pki_bench_row_measured(const pki_bench_row *row)
{
    return row->result.outcome == PK_BENCH_OUTCOME_MEASURED;
}

const char *pki_bench_outcome_name(const pk_bench_result *r)
{
    switch (r->outcome) {
    case PK_BENCH_OUTCOME_SKIPPED:
        return "skipped";
    case PK_BENCH_OUTCOME_FAILED:
        return "failed";
    default:
        return pki_bench_verdict_name(r->verdict);
    }
}

size_t pki_bench_group(const pki_bench_document *document, size_t at)
{
    size_t end = at;
    while (end < document->row_count &&
           strcmp(document->rows[end].name, document->rows[at].name) == 0)
        end++;
    return end - at;
}

/* ---- aggregates ---- */

double pki_bench_aggregate_of(size_t which, double *values, size_t n)
{
    double mean = pki_samples_mean(values, n);
    switch (which) {
    case 0:
        return mean;
    case 1:
        return pki_samples_select_median(values, n);
    case 2:
        return pki_samples_stddev(values, n);
    default:
        return mean > 0 ? pki_samples_stddev(values, n) / mean : 0;
    }
}

static void aggregate(double *real, double *cpu, size_t n,
                      pki_bench_aggregate out[PKI_BENCH_AGGREGATES])
{
    static const char *const names[] = {"mean", "median", "stddev", "cv"};
    for (size_t i = 0; i < PKI_BENCH_AGGREGATES; i++)
        out[i] = (pki_bench_aggregate){names[i], i == 3 ? "percentage" : "time",
                                       pki_bench_aggregate_of(i, real, n),
                                       pki_bench_aggregate_of(i, cpu, n)};
}

size_t pki_bench_aggregates(const pki_bench_row *rows, size_t count,
                            pki_bench_aggregate out[PKI_BENCH_AGGREGATES])
{
    double real[PKI_BENCH_REPETITIONS_MOST], cpu[PKI_BENCH_REPETITIONS_MOST];
    size_t measured = 0;
    for (size_t i = 0; i < count && measured < PKI_BENCH_REPETITIONS_MOST; i++) {
        if (!pki_bench_row_measured(&rows[i]))
            continue;
        real[measured] = rows[i].result.median;
        cpu[measured++] = rows[i].result.cpu;
    }
    if (measured < 2)
        return 0;
    aggregate(real, cpu, measured, out);
    return PKI_BENCH_AGGREGATES;
}

/* ---- words ---- */

static const struct {
    const char *name;
    double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

const char *pki_bench_unit_of(double ns, double *length)
{
    size_t i = 0;
    while (i + 1 < PKI_COUNT_OF(units) && ns >= 1000 * units[i].ns)
        i++;
    *length = units[i].ns;
    return units[i].name;
}

/* Decimals that make four digits, and no fifth by rounding up. */
static int decimals_of(double value)
{
    return value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
}

pki_bench_words pki_bench_time(double ns)
{
    pki_bench_words words;
    double length;
    const char *unit = pki_bench_unit_of(ns, &length);
    if (isfinite(ns))
        snprintf(words.text, sizeof words.text, "%.*f %s", decimals_of(ns / length), ns / length,
                 unit);
    else
        snprintf(words.text, sizeof words.text, "-");
    return words;
}

static void add_rate(char *text, size_t size, double rate, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t used = strlen(text), i = 0;
    if (!(rate > 0))
        return;
    while (i + 1 < PKI_COUNT_OF(prefixes) && rate >= 1000) {
        rate /= 1000;
        i++;
    }
    snprintf(text + used, size - used, "%s%.*f %s%s", used ? ", " : "", decimals_of(rate), rate,
             prefixes[i], unit);
}

void pki_bench_rates(const pki_bench_row *row, char *text, size_t size)
{
    text[0] = 0;
    add_rate(text, size, row->result.bytes_per_second, "B/s");
    add_rate(text, size, row->result.flops_per_second, "FLOP/s");
    add_rate(text, size, row->result.items_per_second, "items/s");
}

double pki_bench_half_width(const pk_bench_result *r)
{
    return r->median > 0 ? (r->high - r->low) / 2 / r->median : 0;
}
