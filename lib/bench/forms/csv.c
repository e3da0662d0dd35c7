/* One line per row; RFC 4180. */
#include "bench/forms/document.h"
#include "bench/forms/markup.h"

#include <inttypes.h>

static void put_field(FILE *file, const char *text)
{
    fputc('"', file);
    while (*text) {
        const char *one;
        size_t length;
        text += pki_bench_character(text, &one, &length);
        if (*one == '"')
            fputc('"', file);
        fwrite(one, 1, length, file);
    }
    fputc('"', file);
}

static void put_real(FILE *file, double value, bool known)
{
    fputc(',', file);
    if (known)
        fprintf(file, "%.9g", value);
}

static void put_device(FILE *file, const pki_bench_row *row, bool known)
{
    const pk_bench_result *r = &row->result;
    put_real(file, r->launch, known);
    fprintf(file, ",%s", known ? pki_bench_bound_name(r->bound) : "");
    put_real(file, r->queued, known);
    put_real(file, row->cold, known);
    put_real(file, (double)r->throttled, known);
    put_real(file, r->clock_low, known && r->clock_high);
    put_real(file, r->clock_high, known && r->clock_high);
}

static void put_row(FILE *file, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    bool measured = pki_bench_row_measured(row);
    const double times[] = {r->median, r->low, r->high, r->mean, r->stddev, r->mad,
                            r->min,    r->p90, r->p95,  r->p99,  r->max,    r->cpu};
    put_field(file, row->name);
    fprintf(file, ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, row->repetition, r->threads,
            r->count, r->iterations);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        put_real(file, times[i], measured);
    put_real(file, r->bytes_per_second, r->bytes_per_second > 0);
    put_real(file, r->flops_per_second, r->flops_per_second > 0);
    put_real(file, r->items_per_second, r->items_per_second > 0);
    put_real(file, r->instructions, measured && r->instructions >= 0);
    put_real(file, r->cycles, measured && r->cycles >= 0);
    put_real(file, r->cache_misses, measured && r->cache_misses >= 0);
    put_real(file, r->branch_misses, measured && r->branch_misses >= 0);
    put_real(file, r->allocations, measured && r->allocations >= 0);
    fprintf(file, ",%s,", pki_bench_outcome_name(r));
    put_field(file, row->label);
    fputc(',', file);
    put_field(file, r->reason);
    put_device(file, row, measured && row->clock == PK_BENCH_CLOCK_GPU);
    fputs("\r\n", file);
}

void pki_bench_csv(const pki_bench_document *d, FILE *file)
{
    fputs("name,repetition,threads,samples,iterations,median_ns,low_ns,high_ns,mean_ns,stddev_ns,"
          "mad_ns,min_ns,p90_ns,p95_ns,p99_ns,max_ns,cpu_ns,bytes_per_second,flops_per_second,"
          "items_per_second,instructions,cycles,cache_misses,branch_misses,allocations,verdict,"
          "label,reason,launch_ns,bound,queued,cold,throttled,clock_low_mhz,clock_high_mhz\r\n",
          file);
    for (size_t i = 0; i < d->row_count; i++)
        put_row(file, &d->rows[i]);
}
