/* CUPTI is somebody else's: perfkit keeps to events, and says who holds it; and who comes after
 * perfkit is told by CUPTI. Each in a process of its own, started anew.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

/* After NVIDIA's CUPTI API reference. */
typedef void cupti_callback(void *user, int domain, uint32_t id, const void *data);
typedef int cupti_subscribe(void **subscriber, cupti_callback *callback, void *user);

#define MULTIPLE_SUBSCRIBERS 39
#define TOO_MANY_SUBSCRIBERS 12 /* before 11.6 or so */

static pk_region region = PK_REGION("holder.span");

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
    pk_gpu_begin(&region, stream);
    driver_launch(stream, the_kernels.empty);
    pk_gpu_end(&region, stream);
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

static int run_anew(const char *scenario)
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        execl("/proc/self/exe", "holder", scenario, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        if (strcmp(argv[1], "other") == 0)
            other_first();
        else
            perfkit_first();
        return gpu_result();
    }
    int other = run_anew("other"), ours = run_anew("ours");
    gpu_check(other == 0 || other == 77, "somebody else first: ended with %d", other);
    gpu_check(ours == 0 || ours == 77, "perfkit first: ended with %d", ours);
    return gpu_result() ? 1 : other == 77 && ours == 77 ? 77 : 0;
}
