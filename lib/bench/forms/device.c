/* What is said of a benchmark on a device beside its time: bench/forms/document.h. */
#include "bench/forms/document.h"

#include <stdio.h>

const char *pki_bench_bound_name(uint32_t bound)
{
    return bound == PK_BENCH_BOUND_DEVICE   ? "device"
           : bound == PK_BENCH_BOUND_LAUNCH ? "launch"
                                            : "unknown";
}

static const char *bound_text(const pk_bench_result *r)
{
    switch (r->bound) {
    case PK_BENCH_BOUND_DEVICE:
        return "bound by the device";
    case PK_BENCH_BOUND_LAUNCH:
        return r->queued ? "launch-bound if not queued" : "launch-bound";
    default:
        return "what binds it is not known";
    }
}

void pki_bench_device_text(const pki_bench_row *row, char *text, size_t size)
{
    const pk_bench_result *r = &row->result;
    text[0] = 0;
    if (row->clock != PK_BENCH_CLOCK_GPU || !pki_bench_row_measured(row))
        return;
    int used = snprintf(text, size, "%s, %s: launching takes %s, %s",
                        row->cold ? "L2 flushed" : "L2 hot", r->queued ? "queued" : "not queued",
                        pki_bench_time(r->launch).text, bound_text(r));
    if (r->clock_high && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used,
                 r->clock_low < r->clock_high ? "; %u to %u MHz" : "; %u MHz", r->clock_low,
                 r->clock_high);
}
