/* Benchmarks on a GPU. */
#include "gpu.h"

#include <pk/bench.h>
#include <pk/pk.h>

#include <stdio.h>
#include <string.h>

/* ---- pk_bench on a device ---- */

/* pk_bench on a device: what the queueing, the cold cache and the clocks are on a real one, and
 * whether kernels of known length come out as long as they are. */

static cuda_stream stream;
static cuda_memory memory;

/* Reads `bytes` from `from`, a line of 32 bytes at a time, in one block of 1024 threads. */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry walk(.param .u64 from, .param .u64 bytes)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .u32 %t, %x, %sum;\n"
                          "    .reg .u64 %at, %from, %end;\n"
                          "    ld.param.u64 %from, [from];\n"
                          "    cvta.to.global.u64 %from, %from;\n"
                          "    ld.param.u64 %end, [bytes];\n"
                          "    add.u64 %end, %end, %from;\n"
                          "    mov.u32 %t, %tid.x;\n"
                          "    mul.wide.u32 %at, %t, 32;\n"
                          "    add.u64 %at, %at, %from;\n"
                          "    mov.u32 %sum, 0;\n"
                          "next:\n"
                          "    setp.ge.u64 %p, %at, %end;\n"
                          "    @%p bra done;\n"
                          "    ld.global.cg.u32 %x, [%at];\n"
                          "    add.u32 %sum, %sum, %x;\n"
                          "    add.u64 %at, %at, 32768;\n"
                          "    bra next;\n"
                          "done:\n"
                          "    setp.eq.u32 %p, %sum, 1;\n"
                          "    @%p st.global.u32 [%from], %sum;\n"
                          "    ret;\n"
                          "}\n";

#define WALKED ((size_t)1 << 20)

static cuda_function walk_function;

static void walk(void *arg)
{
    uint64_t bytes = WALKED;
    void *arguments[] = {&memory, &bytes};
    (void)arg;
    must(cu.cuda_launch(walk_function, 1, 1, 1, 1024, 1, 1, 0, stream, arguments, NULL));
}

static void empty(void *arg)
{
    (void)arg;
    driver_launch(stream, the_kernels.empty);
}

static void spin(void *ns)
{
    driver_spin(stream, *(const uint64_t *)ns, memory, 0);
}

static void empty_and_wait(void *arg)
{
    empty(arg);
    must(cu.cuda_stream_synchronize(stream));
}

/* -- measuring -- */

static pk_bench_result measure(const char *name, void (*fn)(void *), void *arg,
                               struct pk_bench_options o)
{
    pk_bench_result r;
    memset(&r, 0, sizeof r);
    r.size = sizeof r;
    o.size = sizeof o;
    o.clock = PK_BENCH_CLOCK_GPU;
    o.stream = stream;
    pk_status status = pk_bench(name, fn, arg, &o, &r);
    gpu_check(status == PK_OK, "%s: %s", name, r.reason);
    printf("%s: %.1f ns (%.1f .. %.1f), launch %.1f ns, %zu samples of %zu; %s; %s\n", name,
           r.median, r.low, r.high, r.launch, (size_t)r.count, (size_t)r.iterations, r.verdict_text,
           r.note);
    return r;
}

static const char *bound(const pk_bench_result *r)
{
    return r->bound == PK_BENCH_BOUND_LAUNCH   ? "launch"
           : r->bound == PK_BENCH_BOUND_DEVICE ? "device"
                                               : "unknown";
}

static void show(const char *key, const pk_bench_result *r)
{
    gpu_figure(key, "%.3f us, +- %.2f %%; launching %.3f us; %s; bound: %s; %zu samples of %zu",
               r->median / 1e3, r->median > 0 ? 50 * (r->high - r->low) / r->median : 0,
               r->launch / 1e3, r->queued ? "queued" : "not queued", bound(r), (size_t)r->count,
               (size_t)r->iterations);
}

/* -- what is asked -- */

static void launches(void)
{
    pk_bench_result queued = measure("empty", empty, NULL, (struct pk_bench_options){.size = 0});
    pk_bench_result loose =
        measure("empty, unqueued", empty, NULL, (struct pk_bench_options){.unqueued = 1});
    gpu_check(queued.queued, "the stream is not held back: %s", queued.note);
    gpu_check(queued.median <= 1.05 * loose.median, "queued %.0f ns, unqueued %.0f ns",
              queued.median, loose.median);
    show("bench.empty", &queued);
    show("bench.empty_unqueued", &loose);
    gpu_figure("bench.clocks", "%u to %u MHz, %zu samples throttled; warm after %.0f ms, %s",
               queued.clock_low_mhz, queued.clock_high_mhz, (size_t)queued.throttled,
               (double)queued.warmup_time / 1e6, queued.warmup_steady ? "steady" : "given up");
    pk_bench_result_release(&queued);
    pk_bench_result_release(&loose);
}

/* So many launches in one sample, and whether the queue took them. */
static void queue(void)
{
    static const uint64_t tries[] = {900, 1000, 1020, 2000};
    char text[128] = "";
    for (int i = 0; i < 4; i++) {
        struct pk_bench_options o = {.iterations = tries[i], .max_samples = 20};
        pk_bench_result r = measure("empty, many", empty, NULL, o);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%u %s", i ? ", " : "", (unsigned)tries[i],
                 r.queued ? "yes" : "no");
        pk_bench_result_release(&r);
    }
    gpu_figure("bench.queue", "%s", text);
}

static void lengths(void)
{
    static const unsigned us[] = {10, 100, 1000};
    for (int i = 0; i < 3; i++) {
        uint64_t ns = us[i] * UINT64_C(1000);
        char key[32];
        spun seen;
        pk_bench_result r = measure("spin", spin, &ns, (struct pk_bench_options){.size = 0});
        must(cu.cuda_to_host(&seen, memory, sizeof seen));
        double truth = (double)(seen.ended - seen.began);
        snprintf(key, sizeof key, "bench.spin.%u_us", us[i]);
        gpu_figure(key, "%.3f us, the kernel's own timer %.3f us", r.median / 1e3, truth / 1e3);
        gpu_check(r.median >= 0.98 * (double)ns, "%u us are measured as %.0f ns", us[i], r.median);
        gpu_bar(r.median <= 1.02 * truth + 1500, "%.0f ns are measured as %.0f", truth, r.median);
        pk_bench_result_release(&r);
    }
}

static void cache(void)
{
    pk_bench_result hot = measure("walk", walk, NULL, (struct pk_bench_options){.size = 0});
    pk_bench_result one =
        measure("walk, one at a time", walk, NULL, (struct pk_bench_options){.iterations = 1});
    pk_bench_result cold = measure("walk, cold", walk, NULL, (struct pk_bench_options){.cold = 1});
    gpu_check(cold.median > 1.1 * one.median, "cold %.0f ns, hot %.0f ns", cold.median, one.median);
    gpu_figure("bench.cold", "%.3f us; hot, also one at a time, %.3f us; hot in a row %.3f us",
               cold.median / 1e3, one.median / 1e3, hot.median / 1e3);
    pk_bench_result_release(&hot);
    pk_bench_result_release(&one);
    pk_bench_result_release(&cold);
}

static void waits(void)
{
    pk_bench_result r =
        measure("empty and wait", empty_and_wait, NULL, (struct pk_bench_options){.size = 0});
    gpu_check(!r.queued, "a body that waits for the device was queued");
    show("bench.waits", &r);
    pk_bench_result_release(&r);
}

int test_bench(int argc, char **argv)
{
    (void)argc, (void)argv;
    cuda_module module;
    driver_open();
    driver_load_kernels();
    must(cu.cuda_module_load(&module, ptx));
    must(cu.cuda_module_function(&walk_function, module, "walk"));
    must(cu.cuda_memory(&memory, WALKED));
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    launches();
    lengths();
    cache();
    waits();
    queue();
    return gpu_result();
}
