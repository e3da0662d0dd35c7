/* Stream capture: what the driver allows in one, that spans in a graph are measured at each replay,
 * and that neither a begin nor the collector's questions ever invalidate a capture. */
#include <pthread.h>
#include <stdio.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define SPIN_NS 200000
#define REPLAYS 3

static pk_region replayed = PK_REGION("capture.replayed"), polled = PK_REGION("capture.polled");
static cuda_stream stream, other;
static cuda_memory memory;

static pk_gpu_counts counts_now(void)
{
    pk_gpu_counts counts = {.size = sizeof counts};
    pk_get_gpu_counts(&counts);
    return counts;
}

static cuda_graph capture_span(int mode, cuda_exec *exec)
{
    cuda_graph graph;
    must(cu.cuda_begin_capture(stream, mode));
    pk_gpu_begin(&replayed, stream);
    driver_spin(stream, SPIN_NS, memory, 0);
    pk_gpu_end(&replayed, stream);
    int code = cu.cuda_end_capture(stream, &graph);
    gpu_check(code == CUDA_OK, "mode %d: end of the capture: %d %s", mode, code,
              driver_error(code));
    if (code != CUDA_OK)
        gpu_skip("a capture was invalidated: nothing more can be tried");
    must(cu.cuda_instantiate(exec, graph, 0));
    return graph;
}

static void announced_replays(int mode)
{
    cuda_exec exec;
    pk_stats stats;
    cuda_graph graph = capture_span(mode, &exec);
    uint64_t before = counts_now().replayed;
    for (int i = 0; i < REPLAYS; i++) {
        pk_gpu_graph_launching(exec, graph, stream);
        must(cu.cuda_launch_graph(exec, stream));
    }
    must(cu.cuda_stream_synchronize(stream));
    pk_flush();
    pk_flush();
    uint64_t got = counts_now().replayed - before;
    gpu_check(got == REPLAYS, "mode %d: %llu spans of %d replays", mode, (unsigned long long)got,
              REPLAYS);
    gpu_check(pk_region_gpu_stats(&replayed, &stats) == PK_OK && (double)stats.min >= SPIN_NS * 0.9,
              "%llu ns for %d", (unsigned long long)stats.min, SPIN_NS);
    gpu_bar(stats.max < SPIN_NS * 3, "%llu ns for %d", (unsigned long long)stats.max, SPIN_NS);
    must(cu.cuda_exec_destroy(exec));
    must(cu.cuda_graph_destroy(graph));
}

static void silent_replays(void)
{
    cuda_exec exec;
    cuda_graph graph = capture_span(CUDA_CAPTURE_THREAD, &exec);
    uint64_t before = counts_now().sampled;
    for (int i = 0; i < REPLAYS; i++) {
        must(cu.cuda_launch_graph(exec, stream));
        must(cu.cuda_stream_synchronize(stream));
        gpu_sleep_ms(50);
        pk_flush();
    }
    uint64_t got = counts_now().sampled - before;
    gpu_figure("capture.sampled", "%llu of %d replays that nobody announced",
               (unsigned long long)got, REPLAYS);
    gpu_check(got >= 1, "none of %d replays was seen", REPLAYS);
    must(cu.cuda_exec_destroy(exec));
    must(cu.cuda_graph_destroy(graph));
}

/* A capture in GLOBAL mode forbids what the collector does to all threads, unless they have said
 * otherwise for themselves. Spans of another stream wait to be read meanwhile. */
static void the_poller_and_a_global_capture(void)
{
    cuda_graph graph;
    uint64_t before = counts_now().recorded;
    for (int i = 0; i < 20; i++) {
        pk_gpu_begin(&polled, other);
        driver_spin(other, 10000000, memory, 1);
        pk_gpu_end(&polled, other);
    }
    must(cu.cuda_begin_capture(stream, CUDA_CAPTURE_GLOBAL));
    driver_launch(stream, the_kernels.empty);
    for (int i = 0; i < 20; i++) {
        gpu_sleep_ms(15);
        pk_flush(); /* on this thread, too */
    }
    uint64_t read = counts_now().recorded - before;
    int code = cu.cuda_end_capture(stream, &graph);
    gpu_check(code == CUDA_OK, "%d %s", code, driver_error(code));
    gpu_check(read > 0, "no span was read during the capture: it proves nothing");
    gpu_figure("capture.global", "%llu spans read during it, the capture ended with %d",
               (unsigned long long)read, code);
    must(cu.cuda_stream_synchronize(other));
}

static void *query(void *event)
{
    static int code;
    code = cu.cuda_event_query(event);
    return &code;
}

/* The control: the same question by somebody who does not take care. */
static void a_careless_thread(void)
{
    cuda_event event;
    cuda_graph graph;
    pthread_t thread;
    void *code = NULL;
    must(cu.cuda_event_create(&event, 0));
    must(cu.cuda_event_record(event, other));
    must(cu.cuda_stream_synchronize(other));
    must(cu.cuda_begin_capture(stream, CUDA_CAPTURE_GLOBAL));
    driver_launch(stream, the_kernels.empty);
    if (pthread_create(&thread, NULL, query, event) == 0)
        pthread_join(thread, &code);
    int end = cu.cuda_end_capture(stream, &graph);
    gpu_figure("capture.careless", "cuEventQuery %d, end of the capture %d",
               code ? *(int *)code : -1, end);
    gpu_check(end != CUDA_OK, "a bare cuEventQuery did not invalidate the capture: no control");
}

/* Codes, for docs/internals/backends.md: what the driver of this machine says to each. */
static void matrix(void)
{
    cuda_event event;
    cuda_stream blocking;
    cuda_graph graph;
    int status = -1;
    must(cu.cuda_event_create(&event, 0));
    must(cu.cuda_stream_create(&blocking, 0));
    int outside = cu.cuda_event_record_flags(event, stream, CUDA_EXTERNAL);
    must(cu.cuda_begin_capture(blocking, CUDA_CAPTURE_RELAXED));
    int inside = cu.cuda_event_record_flags(event, blocking, CUDA_EXTERNAL);
    int plain = cu.cuda_event_record(event, blocking);
    int asked = cu.cuda_event_query(event);
    int legacy = cu.cuda_stream_is_capturing(CUDA_LEGACY_STREAM, &status);
    int end = cu.cuda_end_capture(blocking, &graph);
    gpu_figure("capture.external_outside", "%d %s", outside, driver_error(outside));
    gpu_figure("capture.external_inside", "%d %s", inside, driver_error(inside));
    gpu_figure("capture.record_inside", "%d %s", plain, driver_error(plain));
    gpu_figure("capture.query_captured", "%d %s", asked, driver_error(asked));
    gpu_figure("capture.legacy_asked", "%d %s", legacy, driver_error(legacy));
    gpu_figure("capture.end", "%d %s", end, driver_error(end));
}

int main(void)
{
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    must(cu.cuda_stream_create(&other, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&memory, 16 * sizeof(spun)));
    const char *path = gpu_start("cuda");
    gpu_need("cuda");
    announced_replays(CUDA_CAPTURE_RELAXED);
    announced_replays(CUDA_CAPTURE_THREAD);
    announced_replays(CUDA_CAPTURE_GLOBAL);
    silent_replays();
    the_poller_and_a_global_capture();
    a_careless_thread();
    matrix();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_gpu_counts counts = counts_now();
    gpu_figure("capture.counts", "%llu captured, %llu replayed, %llu skipped, %llu lost",
               (unsigned long long)counts.captured, (unsigned long long)counts.replayed,
               (unsigned long long)counts.skipped, (unsigned long long)counts.lost);
    gpu_read_trace(path);
    return gpu_result();
}
