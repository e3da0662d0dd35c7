/* Waits that CUPTI tells of while the program does not wait: those would be perfkit's own questions
 * to the driver, and "CUDA waits" and "idle after a wait" would be about perfkit. First nothing is
 * done at all; then a long kernel is under way in a span, so that the collector has to ask.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

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

int main(void)
{
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
