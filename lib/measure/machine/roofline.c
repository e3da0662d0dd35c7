#include "measure/machine/roofline.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

#define MORE_AT_WORK 1.2

/* What so many threads can do. */
typedef struct roof {
    double bandwidth, peak[2];
} roof;

enum { DOUBLE, SINGLE };

static bool is_placed(const pki_region_row *r)
{
    bool on_devices = r->gpu.count || r->kernels.count;
    return r->time.sum > 0 && !on_devices && (r->flops || (r->bytes && r->kind == PK_COMPUTE));
}

bool pki_roofline_wanted(const pki_summary *s)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (is_placed(&s->regions[i]))
            return true;
    return false;
}

/* All processors do no less than one, whatever a noisy moment has said. */
static double of_threads(double one, double all, double threads)
{
    return PKI_MIN(threads * one, PKI_MAX(one, all));
}

static roof roof_of(const pki_roofline *r, double threads)
{
    return (roof){of_threads(r->bandwidth_one, r->bandwidth_all, threads),
                  {of_threads(r->double_one, r->double_all, threads),
                   of_threads(r->single_one, r->single_all, threads)}};
}

/* The achieved share of the attainable, and which of the two it is bound by. */
static double share_of(const pki_roofline_row *row, const roof *limits, int precision, bool *memory)
{
    double by_memory = row->bytes_per_second / limits->bandwidth;
    double by_compute = row->flops_per_second / limits->peak[precision];
    *memory = by_memory > by_compute;
    return PKI_MAX(by_memory, by_compute);
}

static bool place_region(const pki_roofline *r, const pki_region_row *region, pki_roofline_row *row)
{
    double seconds = region->time.sum / 1e9;
    double threads = PKI_MIN(PKI_MAX(region->threads, 1), (double)r->processors);
    roof limits = roof_of(r, threads);
    *row = (pki_roofline_row){.region = strdup(region->name),
                              .share = (double)region->self,
                              .threads = threads,
                              .bytes_per_second = threads * (double)region->bytes / seconds,
                              .flops_per_second = threads * (double)region->flops / seconds};
    if (region->bytes)
        row->intensity = (double)region->flops / (double)region->bytes;
    row->all_processors = row->flops_per_second > MORE_AT_WORK * limits.peak[SINGLE];
    if (row->all_processors)
        limits = roof_of(r, (double)r->processors);
    row->of_double = share_of(row, &limits, DOUBLE, &row->memory_bound_double);
    row->of_single = share_of(row, &limits, SINGLE, &row->memory_bound_single);
    return row->region != NULL;
}

static bool fill_limits(const pki_machine *m, pki_roofline *r)
{
    *r = (pki_roofline){.measured = PKI_MAX(m->measured, 1),
                        .host = strdup(m->host),
                        .cpu = strdup(m->cpu),
                        .processors = m->processors,
                        .bandwidth_one = (double)pki_machine_best(m, PKI_LIMIT_TRIAD, false),
                        .bandwidth_all = (double)pki_machine_best(m, PKI_LIMIT_TRIAD, true),
                        .double_one = (double)pki_machine_best(m, PKI_LIMIT_DOUBLE, false),
                        .double_all = (double)pki_machine_best(m, PKI_LIMIT_DOUBLE, true),
                        .single_one = (double)pki_machine_best(m, PKI_LIMIT_SINGLE, false),
                        .single_all = (double)pki_machine_best(m, PKI_LIMIT_SINGLE, true)};
    return r->host && r->cpu;
}

/* Each row's part of the self time of all regions. */
static void fill_shares(const pki_summary *s, pki_roofline *r)
{
    double all = 0;
    for (size_t i = 0; i < s->region_count; i++)
        all += (double)s->regions[i].self;
    for (size_t i = 0; i < r->row_count; i++)
        r->rows[i].share = all > 0 ? r->rows[i].share / all : 0;
}

bool pki_roofline_fill(const pki_machine *m, pki_summary *s)
{
    pki_roofline *r = &s->roofline;
    if (!pki_roofline_wanted(s))
        return true;
    bool filled = fill_limits(m, r);
    r->rows = calloc(s->region_count, sizeof *r->rows);
    /* A file that lacks one of them can say nothing of it. */
    if (!(r->bandwidth_one > 0 && r->double_one > 0 && r->single_one > 0))
        r->measured = 0;
    for (size_t i = 0; filled && r->rows && r->measured && i < s->region_count; i++)
        if (is_placed(&s->regions[i]))
            filled = place_region(r, &s->regions[i], &r->rows[r->row_count++]);
    fill_shares(s, r);
    return filled && r->rows;
}
