/* What CUPTI tells on a GPU: kernels, waits and memory against the truth, and CUPTI that is
 * somebody else's. */
#include "gpu.h"

#include <pk/gpu.h>
#include <pk/pk.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- kernels as CUPTI shows them ---- */

/* Each tied to its region, none before its launch or behind the end of waiting for it, and as long
 * as the device's own timers say. */

#define TIED 200u
#define EACH 20u
#define KERNEL_OFF_NS 2500 /* of its own length: 13 us in place of 10 are wrong */
#define BOUND_NS 20000     /* twice the 8 to 9 us that others have seen between the clocks */

static pk_region even = PK_REGION("kernels.even"), odd = PK_REGION("kernels.odd");
static pk_region waiting = PK_REGION_OF(PK_WAIT, "kernels.wait"),
                 length = PK_REGION("kernels.length");
static const uint64_t lengths[] = {10000, 100000, 1000000, 10000000};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static cuda_stream kernels_stream;
static cuda_memory kernels_memory;
static spun kernels_truth[LENGTHS * EACH];

static void launch_in_regions(void)
{
    for (unsigned i = 0; i < TIED; i++) {
        pk_region *region = i % 2 ? &odd : &even;
        pk_region_begin(region);
        driver_spin(kernels_stream, 20000, kernels_memory, 0);
        pk_region_end(region);
        PK_REGION_SCOPE(waiting);
        must(cu.cuda_stream_synchronize(kernels_stream));
    }
}

static void launch_lengths(void)
{
    for (unsigned i = 0; i < LENGTHS * EACH; i++) {
        pk_region_begin(&length);
        pk_gpu_begin(&length, kernels_stream);
        driver_spin(kernels_stream, lengths[i / EACH], kernels_memory, i);
        pk_gpu_end(&length, kernels_stream);
        pk_region_end(&length);
        must(cu.cuda_stream_synchronize(kernels_stream));
    }
    must(cu.cuda_to_host(kernels_truth, kernels_memory, sizeof kernels_truth));
}

static int by_start(const void *a, const void *b)
{
    const gpu_event *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Those events alone, in the order of time. */
static size_t pick(const gpu_trace *t, const char *category, const char *name, gpu_event *to,
                   size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count && count < room; i++)
        if (gpu_is(&t->events[i], category, name))
            to[count++] = t->events[i];
    qsort(to, count, sizeof *to, by_start);
    return count;
}

/* The call that has a kernel's correlation. */
static const gpu_event *launch_of(const gpu_trace *t, const gpu_event *kernel)
{
    for (size_t i = 0; i < t->count; i++)
        if (t->events[i].correlation == kernel->correlation &&
            strncmp(t->events[i].category, "cuda_", 5) == 0)
            return &t->events[i];
    return NULL;
}

static void check_ties(const gpu_trace *t, const gpu_event *spins, size_t count)
{
    size_t right = 0, calls = 0;
    for (size_t i = 0; i < count && i < TIED; i++) {
        right += strcmp(spins[i].region, i % 2 ? "kernels.odd" : "kernels.even") == 0;
        calls += launch_of(t, &spins[i]) != NULL;
    }
    gpu_figure("kernels.tied", "%zu of %u to their region, %zu to a call", right, TIED, calls);
    gpu_check(right == TIED, "%zu of %u", right, TIED);
    gpu_check(calls == TIED, "%zu of %u", calls, TIED);
}

/* Launch, kernel, end of the wait: the smallest distance is negative if effect comes before cause.
 */
static void check_causality(const gpu_trace *t, const gpu_event *spins, size_t count)
{
    static gpu_event waits[TIED];
    double before[TIED], behind[TIED];
    size_t n = pick(t, "cpu_op", "kernels.wait", waits, TIED), used = 0;
    for (size_t i = 0; i < count && i < n; i++) {
        const gpu_event *launch = launch_of(t, &spins[i]);
        if (!launch)
            continue;
        before[used] = spins[i].start - launch->start;
        behind[used++] = waits[i].end - spins[i].end;
    }
    gpu_check(used == TIED, "only %zu of %u could be compared", used, TIED);
    if (!used)
        return;
    double least_before = gpu_quantile(before, used, 0),
           least_behind = gpu_quantile(behind, used, 0);
    gpu_figure("kernels.launch_to_start_us", "least %.2f, median %.2f", least_before / 1e3,
               gpu_median(before, used) / 1e3);
    gpu_figure("kernels.end_to_wait_us", "least %.2f, median %.2f", least_behind / 1e3,
               gpu_median(behind, used) / 1e3);
    gpu_bar(least_before >= -BOUND_NS, "a kernel began %.0f ns before its launch", -least_before);
    gpu_bar(least_behind >= -BOUND_NS, "a kernel ended %.0f ns after the wait", -least_behind);
}

static void show_lengths(const char *what, const gpu_event *events)
{
    for (unsigned l = 0; l < LENGTHS; l++) {
        double over[EACH], most = 0;
        char key[64];
        for (unsigned i = 0; i < EACH; i++) {
            const spun *s = &kernels_truth[l * EACH + i];
            const gpu_event *e = &events[l * EACH + i];
            over[i] = (e->end - e->start) - (double)(s->ended - s->began);
        }
        most = gpu_quantile(over, EACH, 0.9);
        snprintf(key, sizeof key, "lengths.%s.%llu_us", what,
                 (unsigned long long)lengths[l] / 1000);
        gpu_figure(key, "%+.2f us, p90 %+.2f us", gpu_median(over, EACH) / 1e3, most / 1e3);
        gpu_bar(most < 100000 && gpu_quantile(over, EACH, 0.1) > -5000, "%s of %llu ns: %+.0f ns",
                what, (unsigned long long)lengths[l], most);
        gpu_check(strcmp(what, "kernel") != 0 || fabs(gpu_median(over, EACH)) < KERNEL_OFF_NS,
                  "%s of %llu ns: %+.0f ns", what, (unsigned long long)lengths[l],
                  gpu_median(over, EACH));
    }
}

static void show_clock(void)
{
    const spun *s = &kernels_truth[LENGTHS * EACH - 1];
    gpu_figure("lengths.sm_mhz", "%.0f by clock64 over globaltimer",
               (double)(s->clock_ended - s->clock_began) * 1e3 / (double)(s->ended - s->began));
}

int test_kernels(int argc, char **argv)
{
    (void)argc, (void)argv;
    static gpu_event spins[TIED + LENGTHS * EACH], spans[LENGTHS * EACH];
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&kernels_stream, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&kernels_memory, sizeof kernels_truth));
    const char *path = gpu_start("cuda,cupti");
    gpu_need("cuda");
    gpu_need("cupti");
    launch_in_regions();
    launch_lengths();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    size_t count = pick(&t, "kernel", "spin", spins, TIED + LENGTHS * EACH);
    gpu_check(count == TIED + LENGTHS * EACH, "%zu kernels of %zu", count,
              (size_t)TIED + LENGTHS * EACH);
    check_ties(&t, spins, count);
    check_causality(&t, spins, count);
    if (count == TIED + LENGTHS * EACH)
        show_lengths("kernel", spins + TIED);
    size_t got = pick(&t, "gpu_user_annotation", "kernels.length", spans, LENGTHS * EACH);
    if (gpu_check(got == LENGTHS * EACH, "%zu spans of %zu", got, (size_t)LENGTHS * EACH))
        show_lengths("span", spans);
    show_clock();
    return gpu_result();
}

/* ---- what is allocated on the device, as the report tells it, against what was ---- */

/* Known sizes in regions, a peak between, pinned memory, and a memory pool whose own figures the
 * driver knows. */

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

/* -- what is done -- */

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
    {
        PK_REGION_SCOPE(kept);
        for (unsigned i = 0; i < KEPT; i++)
            must(cu.cuda_memory(&block, MIB));
        must(host_alloc(&host, 3 * MIB, 0));
    }
    PK_REGION_SCOPE(passing);
    must(cu.cuda_memory(&block, 64 * MIB)); /* the peak */
    must(release(block));
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
    {
        PK_REGION_SCOPE(pooled);
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

/* -- what is told -- */

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

int test_memory(int argc, char **argv)
{
    (void)argc, (void)argv;
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
    {
        PK_REGION_SCOPE(pairs);
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

/* ---- waits that CUPTI tells of while the program does not wait ---- */

/* Those would be perfkit's own questions to the driver, and "CUDA waits" and "idle after a wait"
 * would be about perfkit. First nothing is done at all; then a long kernel is under way in a span,
 * so that the collector has to ask. */

#define IDLE_MS 5000 /* longer than from one anchor of the clock to the next */
#define BUSY_NS 500000000
#define PIECES 4

static pk_region region = PK_REGION("idle.span");

static size_t count_between(const gpu_trace *t, double from, double to, const char *category)
{
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += gpu_is(&t->events[i], category, NULL) && t->events[i].start >= from &&
                 t->events[i].start < to;
    return count;
}

int test_idle(int argc, char **argv)
{
    (void)argc, (void)argv;
    cuda_stream stream;
    cuda_memory memory;
    double moments[4];
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&memory, sizeof(spun)));
    const char *path = gpu_start("cuda,cupti");
    gpu_need("cuda");
    gpu_need("cupti");
    pk_gpu_begin(&region, stream);
    driver_launch(stream, the_kernels.empty);
    pk_gpu_end(&region, stream);
    must(cu.cuda_stream_synchronize(stream));
    moments[0] = (double)gpu_now();
    gpu_sleep_ms(IDLE_MS);
    moments[1] = (double)gpu_now();
    for (int i = 0; i < PIECES; i++) {
        pk_gpu_begin(&region, stream);
        driver_spin(stream, BUSY_NS / PIECES, memory, 0);
        pk_gpu_end(&region, stream);
    }
    gpu_sleep_ms(BUSY_NS / 1000000 + 100);
    pk_flush();
    moments[2] = (double)gpu_now();
    must(cu.cuda_stream_synchronize(stream)); /* the control */
    moments[3] = (double)gpu_now();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        moments[i] -= t.base_monotonic;
    size_t idle = count_between(&t, moments[0], moments[1], "cuda_sync");
    size_t busy = count_between(&t, moments[1], moments[2], "cuda_sync");
    size_t own = count_between(&t, moments[2], moments[3], "cuda_sync");
    gpu_figure("idle.waits", "%zu in %d s without work", idle, IDLE_MS / 1000);
    gpu_figure("idle.waits_busy", "%zu in 0.6 s of kernels in spans that nobody waits for", busy);
    gpu_figure("idle.waits_own", "%zu of the program's 1", own);
    gpu_check(idle == 0, "%zu waits", idle);
    gpu_check(busy == 0, "%zu waits", busy);
    gpu_check(own == 1, "%zu: no control", own);
    return gpu_result();
}

/* ---- CUPTI is somebody else's ---- */

/* Perfkit keeps to events, and says who holds it; and who comes after perfkit is told by CUPTI.
 * Each in a process of its own, started anew. */

/* After NVIDIA's CUPTI API reference. */
typedef void cupti_callback(void *user, int domain, uint32_t id, const void *data);
typedef int cupti_subscribe(void **subscriber, cupti_callback *callback, void *user);

#define MULTIPLE_SUBSCRIBERS 39
#define TOO_MANY_SUBSCRIBERS 12 /* before 11.6 or so */

static pk_region holder_region = PK_REGION("holder.span");

static void ignore(void *user, int domain, uint32_t id, const void *data)
{
    (void)user, (void)domain, (void)id, (void)data;
}

static int subscribe(void)
{
    static void *subscriber;
    const char *given = getenv("PK_CUPTI_LIBRARY");
    void *library = dlopen(given && *given ? given : "libcupti.so.13", RTLD_NOW);
    void *function = library ? dlsym(library, "cuptiSubscribe") : NULL;
    cupti_subscribe *call;
    if (!function)
        gpu_skip("no CUPTI: %s", dlerror());
    memcpy(&call, &function, sizeof call);
    return call(&subscriber, ignore, NULL);
}

static void one_span(void)
{
    cuda_stream stream;
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    pk_gpu_begin(&holder_region, stream);
    driver_launch(stream, the_kernels.empty);
    pk_gpu_end(&holder_region, stream);
    must(cu.cuda_stream_synchronize(stream));
}

static void other_first(void)
{
    pk_gpu_counts counts = {.size = sizeof counts};
    pk_backend_info info = {.size = sizeof info};
    driver_open();
    driver_load_kernels();
    int code = subscribe();
    if (code != 0)
        gpu_skip("cuptiSubscribe: %d", code);
    const char *path = gpu_start("cuda,cupti");
    one_span();
    pk_flush();
    pk_backend_status("cupti", &info);
    gpu_figure("holder.other_first", "%s: %s", info.live ? "on" : "off", info.reason);
    gpu_check(!info.live && info.reason[0], "perfkit took CUPTI from somebody");
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_get_gpu_counts(&counts);
    gpu_check(counts.recorded == 1, "%llu spans", (unsigned long long)counts.recorded);
    gpu_read_trace(path);
}

static void perfkit_first(void)
{
    driver_open();
    driver_load_kernels();
    const char *path = gpu_start("cuda,cupti");
    one_span();
    pk_flush();
    gpu_need("cupti");
    int code = subscribe();
    gpu_figure("holder.perfkit_first", "cuptiSubscribe answers the next one with %d", code);
    gpu_check(code == MULTIPLE_SUBSCRIBERS || code == TOO_MANY_SUBSCRIBERS, "%d", code);
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    int after = subscribe();
    gpu_figure("holder.given_back", "and after pk_stop with %d", after);
    gpu_check(after == 0, "%d", after);
    gpu_read_trace(path);
}

int test_holder(int argc, char **argv)
{
    if (argc == 2) {
        if (strcmp(argv[1], "other") == 0)
            other_first();
        else
            perfkit_first();
        return gpu_result();
    }
    int other = gpu_anew("holder", "other", 60), ours = gpu_anew("holder", "ours", 60);
    gpu_check(other == 0 || other == 77, "somebody else first: ended with %d", other);
    gpu_check(ours == 0 || ours == 77, "perfkit first: ended with %d", ours);
    return gpu_result() ? 1 : other == 77 && ours == 77 ? 77 : 0;
}
