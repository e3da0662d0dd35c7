/* What is allocated on the device, as the report tells it, against what was: known sizes in
 * regions, a peak between, pinned memory, and a memory pool whose own figures the driver knows. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define MIB ((uint64_t)1 << 20)
#define KEPT 8u
#define PAIRS 2000u

enum { RELEASE_THRESHOLD = 4, RESERVED_NOW = 5, USED_NOW = 7 }; /* CUmemPool_attribute */

static pk_region kept = PK_REGION("memory.kept"), passing = PK_REGION("memory.passing"),
                 pooled = PK_REGION("memory.pooled"), pairs = PK_REGION("memory.pairs");

static int (*release)(cuda_memory memory);
static int (*host_alloc)(void **memory, size_t bytes, unsigned flags);
static int (*default_pool)(void **pool, int device);
static int (*alloc_async)(cuda_memory *memory, size_t bytes, cuda_stream stream);
static int (*free_async)(cuda_memory memory, cuda_stream stream);
static int (*get_attribute)(void *pool, int which, void *value);
static int (*set_attribute)(void *pool, int which, void *value);

static bool bind(void *to, const char *name)
{
    void *function = driver_function(name);
    memcpy(to, &function, sizeof function);
    return function;
}

static void bind_all(void)
{
    bool all = bind(&release, "cuMemFree_v2") && bind(&host_alloc, "cuMemHostAlloc") &&
               bind(&default_pool, "cuDeviceGetDefaultMemPool") &&
               bind(&alloc_async, "cuMemAllocAsync") && bind(&free_async, "cuMemFreeAsync") &&
               bind(&get_attribute, "cuMemPoolGetAttribute") &&
               bind(&set_attribute, "cuMemPoolSetAttribute");
    if (!all)
        gpu_skip("the driver is too old: it has no memory pools");
}

/* ---- what is done ---- */

static double ns_of_a_pair(void)
{
    cuda_memory block;
    uint64_t begun = gpu_now();
    for (unsigned i = 0; i < PAIRS; i++) {
        must(cu.cuda_memory(&block, MIB));
        must(release(block));
    }
    return (double)(gpu_now() - begun) / PAIRS;
}

static void allocate_in_regions(void)
{
    cuda_memory block;
    void *host;
    PK_SCOPE(kept) {
        for (unsigned i = 0; i < KEPT; i++)
            must(cu.cuda_memory(&block, MIB));
        must(host_alloc(&host, 3 * MIB, 0));
    }
    PK_SCOPE(passing) {
        must(cu.cuda_memory(&block, 64 * MIB)); /* the peak */
        must(release(block));
    }
}

typedef struct pool_truth {
    uint64_t reserved, used, reserved_after, used_after;
} pool_truth;

static pool_truth use_pool(cuda_stream stream)
{
    pool_truth t = {0, 0, 0, 0};
    uint64_t keep_all = UINT64_MAX;
    cuda_memory blocks[4];
    void *pool;
    must(default_pool(&pool, 0));
    must(set_attribute(pool, RELEASE_THRESHOLD, &keep_all));
    PK_SCOPE(pooled) {
        for (int i = 0; i < 4; i++)
            must(alloc_async(&blocks[i], 5 * MIB, stream));
        must(cu.cuda_stream_synchronize(stream));
        must(get_attribute(pool, RESERVED_NOW, &t.reserved));
        must(get_attribute(pool, USED_NOW, &t.used));
        for (int i = 0; i < 3; i++)
            must(free_async(blocks[i], stream));
        must(cu.cuda_stream_synchronize(stream));
    }
    must(get_attribute(pool, RESERVED_NOW, &t.reserved_after));
    must(get_attribute(pool, USED_NOW, &t.used_after));
    return t;
}

/* ---- what is told ---- */

static char *text;

/* The report's part about device memory, as text; each place is a line. */
static void read_report(const char *path)
{
    FILE *file = fopen(path, "r");
    size_t size = 1u << 22;
    text = calloc(1, size);
    if (file && text && fread(text, 1, size - 1, file) == 0)
        text[0] = 0;
    if (file)
        fclose(file);
    gpu_check(file && text && strstr(text, "\"gpu_memory\""), "no report in %s", path);
}

/* The first number of that name behind the texts; each may be NULL. */
static uint64_t number(const char *place, const char *what, const char *key)
{
    char quoted[64];
    const char *at = strstr(text, "\"gpu_memory\"");
    snprintf(quoted, sizeof quoted, "\"place\":\"%s\"", place);
    at = at ? strstr(at, quoted) : NULL;
    snprintf(quoted, sizeof quoted, "\"%s\"", what ? what : "");
    at = at && what ? strstr(at, quoted) : at;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    at = at ? strstr(at, quoted) : NULL;
    return at ? strtoull(at + strlen(quoted), NULL, 10) : UINT64_MAX;
}

static void check_regions(void)
{
    uint64_t live = number("gpu0", "memory.kept", "live"),
             at_peak = number("gpu0", "memory.passing", "at_peak"),
             freed = number("gpu0", "memory.passing", "freed"), host = number("host", NULL, "live"),
             peak = number("gpu0", NULL, "peak");
    gpu_figure("memory.kept", "%" PRIu64 " of %" PRIu64 " bytes live", live, KEPT * MIB);
    gpu_figure("memory.peak", "%" PRIu64 ", in all %" PRIu64 " of %" PRIu64, at_peak, peak,
               (KEPT + 64) * MIB);
    gpu_figure("memory.pinned", "%" PRIu64 " of %" PRIu64, host, 3 * MIB);
    gpu_check(live == KEPT * MIB, "%" PRIu64, live);
    gpu_check(at_peak == 64 * MIB && freed == 64 * MIB, "%" PRIu64 " %" PRIu64, at_peak, freed);
    gpu_check(peak == (KEPT + 64) * MIB, "%" PRIu64, peak);
    gpu_check(host >= 3 * MIB && host != UINT64_MAX, "%" PRIu64, host);
}

static void check_pool(const pool_truth *t)
{
    uint64_t reserved = number("gpu0", NULL, "most_reserved"),
             used = number("gpu0", NULL, "used_then"),
             after = number("gpu0", NULL, "pool_reserved"),
             used_after = number("gpu0", NULL, "pool_used"),
             live = number("gpu0", "memory.pooled", "live");
    gpu_figure("memory.pool",
               "%" PRIu64 " of %" PRIu64 " reserved, %" PRIu64 " of %" PRIu64 " used", reserved,
               t->reserved, used, t->used);
    gpu_figure("memory.pool_after",
               "%" PRIu64 " of %" PRIu64 " reserved, %" PRIu64 " of %" PRIu64 " used, %" PRIu64
               " bytes live",
               after, t->reserved_after, used_after, t->used_after, live);
    gpu_check(reserved == t->reserved, "%" PRIu64 " of %" PRIu64, reserved, t->reserved);
    gpu_check(used == t->used, "%" PRIu64 " of %" PRIu64, used, t->used);
    gpu_check(after == t->reserved_after, "%" PRIu64 " of %" PRIu64, after, t->reserved_after);
    gpu_check(used_after == t->used_after, "%" PRIu64 " of %" PRIu64, used_after, t->used_after);
    gpu_check(live == 5 * MIB, "%" PRIu64, live);
}

static void check_pairs(double off, double on)
{
    const char *all = strstr(text, "\"gpu_memory\"");
    uint64_t told = number("gpu0", "memory.pairs", "allocations");
    gpu_figure("memory.pairs", "%" PRIu64 " of %u", told, PAIRS);
    gpu_figure("memory.cost", "%.2f us without, %.2f us with it", off / 1e3, on / 1e3);
    gpu_check(told == PAIRS, "%" PRIu64, told);
    gpu_check(all && strstr(all, "\"untied\":0,\"dropped\":0,\"lost\":0"), "not all in regions");
}

int main(void)
{
    char report[512];
    const char *folder = getenv("TMPDIR");
    cuda_stream stream;
    driver_open();
    bind_all();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    double off = ns_of_a_pair(), on = 0;
    snprintf(report, sizeof report, "%s/pk-gpu-%d.report.json", folder ? folder : "/tmp",
             (int)getpid());
    setenv("PK_COSTS", "memory", 1);
    setenv("PK_REPORT_PATH", report, 1);
    gpu_start("-nvml");
    gpu_need("cupti");
    allocate_in_regions();
    pool_truth truth = use_pool(stream);
    PK_SCOPE(pairs) {
        on = ns_of_a_pair();
    }
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    read_report(report);
    check_regions();
    check_pool(&truth);
    check_pairs(off, on);
    free(text);
    unlink(report);
    return gpu_result();
}
