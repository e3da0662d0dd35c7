#include "bench/counted.h"

#include "bench/allocations.h"
#include "bench/stats/sample_stats.h"

/* Per iteration of one thread, all threads together; negative: not counted. */
static double counted_in(const pki_bench_case *c, int counter)
{
    double sum = 0;
    for (unsigned i = 0; i < c->options.threads; i++) {
        double value = c->runs[i].counting ? c->runs[i].counted.value[counter] : -1;
        if (value < 0)
            return -1;
        sum += value;
    }
    return sum / (double)c->iterations;
}

static void count_hardware(pki_bench_case *c)
{
    pk_bench_result *r = &c->result;
    double values[PKI_BENCH_COUNTERS][PKI_BENCH_COUNTED_SAMPLES];
    double *const into[PKI_BENCH_COUNTERS] = {&r->instructions, &r->cycles, &r->cache_misses,
                                              &r->branch_misses};
    char why[192];
    pki_bench_sample sample;
    pki_bench_counters_explain(why, sizeof why);
    pki_bench_case_note(c, why);
    c->counting_hardware = true;
    for (int i = 0; i < PKI_BENCH_COUNTED_SAMPLES; i++) {
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            break;
        for (int j = 0; j < PKI_BENCH_COUNTERS; j++)
            values[j][i] = counted_in(c, j);
    }
    c->counting_hardware = false;
    for (int j = 0; j < PKI_BENCH_COUNTERS && pki_bench_case_is_fine(c); j++)
        *into[j] = pki_samples_select_median(values[j], PKI_BENCH_COUNTED_SAMPLES);
}

static void count_allocations(pki_bench_case *c)
{
    double counts[PKI_BENCH_COUNTED_SAMPLES], bytes[PKI_BENCH_COUNTED_SAMPLES];
    pki_bench_sample sample;
    if (!pki_bench_allocations_seen()) {
        pki_bench_case_note(c, "allocations are not counted: the program has no "
                               "PK_BENCH_COUNT_ALLOCATIONS, or its malloc is not glibc's");
        return;
    }
    c->counting_allocations = true;
    for (int i = 0; i < PKI_BENCH_COUNTED_SAMPLES; i++) {
        uint64_t count, size;
        if (!pki_bench_case_run_sample(c, c->iterations, &sample))
            break;
        pki_bench_allocations_read(&count, &size);
        counts[i] = (double)count / (double)c->iterations;
        bytes[i] = (double)size / (double)c->iterations;
    }
    c->counting_allocations = false;
    if (!pki_bench_case_is_fine(c))
        return;
    c->result.allocations = pki_samples_select_median(counts, PKI_BENCH_COUNTED_SAMPLES);
    c->result.allocated_bytes = pki_samples_select_median(bytes, PKI_BENCH_COUNTED_SAMPLES);
}

void pki_bench_count_events(pki_bench_case *c)
{
    if (pki_bench_case_is_fine(c) && c->count && c->options.hardware)
        count_hardware(c);
    if (pki_bench_case_is_fine(c) && c->count && c->options.allocations)
        count_allocations(c);
    if (c->figures_lost)
        pki_bench_case_note(c, "figures beyond 16 names, or without memory, are missing");
}
