/* What goes wrong on a GPU: contexts that go while spans are in them, a kernel that writes where it
 * may not, a fork. perfkit says so, stops well, and does nothing that makes it worse. Each in a
 * process of its own, started anew.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

static pk_region region = PK_REGION("faults.span");

static pk_gpu_counts stop_and_count(void)
{
    pk_gpu_counts counts = {.size = sizeof counts};
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    pk_get_gpu_counts(&counts);
    gpu_check(counts.begun == counts.recorded + counts.dropped + counts.skipped + counts.lost,
              "%llu begun, %llu recorded, %llu dropped, %llu skipped, %llu lost",
              (unsigned long long)counts.begun, (unsigned long long)counts.recorded,
              (unsigned long long)counts.dropped, (unsigned long long)counts.skipped,
              (unsigned long long)counts.lost);
    return counts;
}

static void spans(cuda_stream stream, int n, cuda_function function)
{
    for (int i = 0; i < n; i++) {
        pk_gpu_begin(&region, stream);
        cu.cuda_launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        pk_gpu_end(&region, stream);
    }
}

static void destroyed_context(void)
{
    cuda_context context, second;
    cuda_stream stream;
    driver_load();
    const char *path = gpu_start("cuda");
    must(cu.cuda_create_context(&context, 0, 0));
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    spans(stream, 50, the_kernels.empty);
    must(cu.cuda_destroy_context(context)); /* with what has not been read */
    gpu_sleep_ms(50);
    must(cu.cuda_create_context(&second, 0, 0));
    driver_load_kernels();
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    spans(stream, 50, the_kernels.empty);
    must(cu.cuda_synchronize());
    pk_flush();
    gpu_figure("faults.destroyed", "%s", gpu_reason("cuda"));
    pk_gpu_counts counts = stop_and_count();
    gpu_check(counts.recorded >= 50, "%llu recorded", (unsigned long long)counts.recorded);
    must(cu.cuda_synchronize()); /* the second one is as well as before */
    gpu_read_trace(path);
}

static void reset_device(void)
{
    cuda_stream stream;
    driver_open();
    driver_load_kernels();
    const char *path = gpu_start("cuda");
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    spans(stream, 50, the_kernels.empty);
    must(cu.cuda_reset(0));
    gpu_sleep_ms(50); /* the collector looks at what is gone */
    pk_flush();
    gpu_figure("faults.reset", "%s", gpu_reason("cuda"));
    stop_and_count();
    gpu_read_trace(path);
}

static void illegal_address(void)
{
    cuda_stream stream;
    driver_open();
    driver_load_kernels();
    const char *path = gpu_start("cuda");
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    spans(stream, 10, the_kernels.empty);
    must(cu.cuda_stream_synchronize(stream));
    pk_flush(); /* those are read; what is not yet, is lost with the context */
    spans(stream, 1, the_kernels.stray);
    int code = cu.cuda_stream_synchronize(stream);
    gpu_check(code == CUDA_ILLEGAL_ADDRESS, "%d %s", code, driver_error(code));
    spans(stream, 10, the_kernels.empty);
    pk_flush();
    gpu_figure("faults.illegal", "%s", gpu_reason("cuda"));
    pk_gpu_counts counts = stop_and_count();
    gpu_check(counts.recorded >= 10, "%llu recorded", (unsigned long long)counts.recorded);
    gpu_check(cu.cuda_stream_synchronize(stream) == CUDA_ILLEGAL_ADDRESS, "the error is gone");
    gpu_read_trace(path);
}

static void forked(void)
{
    cuda_stream stream;
    int status = 0;
    driver_open();
    driver_load_kernels();
    const char *path = gpu_start("cuda,nvml");
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    spans(stream, 10, the_kernels.empty);
    pid_t child = fork();
    if (child == 0) {
        pk_gpu_begin(&region, stream);
        pk_gpu_end(&region, stream);
        bool well = pk_start(pk_options(.backends = "cuda,nvml")) == PK_OK;
        pk_gpu_begin(&region, stream);
        pk_gpu_end(&region, stream);
        printf("  in the child: %s\n", gpu_reason("cuda"));
        well = well && pk_stop() == PK_OK;
        fflush(stdout);
        _exit(well ? 0 : 1);
    }
    waitpid(child, &status, 0);
    gpu_check(status == 0, "the child ended with %d", status);
    spans(stream, 10, the_kernels.empty);
    must(cu.cuda_stream_synchronize(stream));
    pk_gpu_counts counts = stop_and_count();
    gpu_check(counts.recorded == 20, "%llu recorded", (unsigned long long)counts.recorded);
    gpu_figure("faults.fork", "the parent recorded %llu of 20",
               (unsigned long long)counts.recorded);
    gpu_read_trace(path);
}

static const struct scenario {
    const char *name;
    void (*play)(void);
} scenarios[] = {{"destroyed", destroyed_context},
                 {"reset", reset_device},
                 {"illegal", illegal_address},
                 {"fork", forked}};
#define SCENARIOS (sizeof scenarios / sizeof *scenarios)

/* Its exit status; -signal if one ended it. */
static int run_anew(const char *program, const char *scenario)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        execl(program, program, scenario, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < SCENARIOS && argc == 2; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].play();
            return gpu_result();
        }
    for (size_t i = 0; i < SCENARIOS; i++) {
        int status = run_anew("/proc/self/exe", scenarios[i].name);
        if (status == 77)
            return 77;
        gpu_check(status == 0, "%s: ended with %d", scenarios[i].name, status);
    }
    return gpu_result();
}
