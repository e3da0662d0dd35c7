#include "bench/figures.h"

#include "base/array.h"
#include "bench/stats/sample_stats.h"

#include <string.h>

static pki_bench_series *series_of(pki_bench_case *c, const char *name)
{
    for (unsigned i = 0; i < c->series_count; i++)
        if (strcmp(c->series[i].name, name) == 0)
            return &c->series[i];
    if (c->series_count == PKI_BENCH_FIGURES)
        return NULL;
    pki_bench_series *made = &c->series[c->series_count++];
    memset(made, 0, sizeof *made);
    memcpy(made->name, name, sizeof made->name);
    return made;
}

static bool push(pki_bench_series *series, double value)
{
    if (!pki_array_fit(&series->values, &series->room, series->count + 1, sizeof(double)))
        return false;
    series->values[series->count++] = value;
    return true;
}

static double in_unit(const pki_bench_figure *figure, double sum, const pki_bench_sample *sample)
{
    switch (figure->unit) {
    case PK_BENCH_UNIT_PER_ITERATION:
        return sum / (double)sample->iterations;
    case PK_BENCH_UNIT_PER_SECOND:
        return sample->time > 0 ? sum / (sample->time * 1e-9) : 0;
    default:
        return sum;
    }
}

/* The sum over all threads, each thread's figure being looked up once, where it first occurs. */
static bool occurs_before(const pki_bench_case *c, unsigned thread, const char *name)
{
    for (unsigned i = 0; i < thread; i++)
        for (unsigned j = 0; j < c->runs[i].figure_count; j++)
            if (strcmp(c->runs[i].figures[j].name, name) == 0)
                return true;
    return false;
}

static double sum_of(const pki_bench_case *c, const char *name)
{
    double sum = 0;
    for (unsigned i = 0; i < c->options.threads; i++)
        for (unsigned j = 0; j < c->runs[i].figure_count; j++)
            if (strcmp(c->runs[i].figures[j].name, name) == 0)
                sum += c->runs[i].figures[j].value;
    return sum;
}

void pki_bench_figures_record(pki_bench_case *c, const pki_bench_sample *sample)
{
    for (unsigned i = 0; i < c->options.threads; i++) {
        const pk_bench_run *run = &c->runs[i];
        c->figures_lost += run->figures_lost;
        for (unsigned j = 0; j < run->figure_count; j++) {
            const pki_bench_figure *figure = &run->figures[j];
            if (occurs_before(c, i, figure->name))
                continue;
            pki_bench_series *series = series_of(c, figure->name);
            double value = in_unit(figure, sum_of(c, figure->name), sample);
            if (!series || !push(series, value))
                c->figures_lost++;
        }
    }
}

double pki_bench_series_median(pki_bench_series *series)
{
    return pki_samples_select_median(series->values, series->count);
}
