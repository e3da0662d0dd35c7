/* A thread without a context: what the driver answers there, and that spans begun and ended on it
 * are recorded all the same and leave it without one. And the time between two events, backwards.
 */
#include <pthread.h>
#include <stdio.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

#define SPANS 100

static pk_region region = PK_REGION("threads.span");
static cuda_stream stream;
static cuda_event first, second;

static void show(const char *key, int code)
{
    gpu_figure(key, "%d %s", code, driver_error(code));
}

/* Whatever the codes are, the documentation says that they may be INVALID_CONTEXT and nothing else.
 */
static void check_code(const char *key, int code)
{
    show(key, code);
    gpu_check(code == CUDA_OK || code == CUDA_INVALID_CONTEXT, "%s: %d %s", key, code,
              driver_error(code));
}

static void *bare(void *unused)
{
    float ms = 0;
    int capturing = 0;
    check_code("threads.query", cu.cuda_event_query(second));
    check_code("threads.elapsed", cu.cuda_event_elapsed(&ms, first, second));
    check_code("threads.is_capturing", cu.cuda_stream_is_capturing(stream, &capturing));
    check_code("threads.record",
               cu.cuda_event_record(first, stream)); /* the last: it is under way */
    return unused;
}

static void *spans(void *unused)
{
    cuda_context context = (cuda_context)(void *)&context;
    for (int i = 0; i < SPANS; i++) {
        pk_gpu_begin(&region, stream);
        pk_gpu_end(&region, stream);
    }
    must(cu.cuda_get_current(&context));
    gpu_check(context == NULL, "perfkit left a context behind");
    return unused;
}

static void on_a_thread(void *(*function)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, NULL) == 0)
        pthread_join(thread, NULL);
}

static void backwards(void)
{
    float forth = 0, back = 0;
    must(cu.cuda_event_record(first, stream));
    driver_launch(stream, the_kernels.empty);
    must(cu.cuda_event_record(second, stream));
    must(cu.cuda_stream_synchronize(stream));
    int code = cu.cuda_event_elapsed(&forth, first, second);
    int reversed = cu.cuda_event_elapsed(&back, second, first);
    gpu_figure("threads.reversed", "%d %s: %.6f ms one way, %.6f ms the other", reversed,
               driver_error(reversed), (double)forth, (double)back);
    gpu_check(code == CUDA_OK, "%d %s", code, driver_error(code));
    gpu_check(reversed != CUDA_OK || back == -forth, "%.6f and %.6f ms", (double)forth,
              (double)back);
}

int main(void)
{
    pk_gpu_counts counts = {.size = sizeof counts};
    driver_open();
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    must(cu.cuda_event_create(&first, 0));
    must(cu.cuda_event_create(&second, 0));
    backwards();
    on_a_thread(bare);
    gpu_start("cuda");
    gpu_need("cuda");
    on_a_thread(spans);
    must(cu.cuda_stream_synchronize(stream));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_get_gpu_counts(&counts);
    gpu_figure("threads.spans", "%llu of %d recorded", (unsigned long long)counts.recorded, SPANS);
    gpu_check(counts.recorded == SPANS, "%llu recorded, %llu dropped, %llu skipped, %llu lost",
              (unsigned long long)counts.recorded, (unsigned long long)counts.dropped,
              (unsigned long long)counts.skipped, (unsigned long long)counts.lost);
    return gpu_result();
}
