/* What perfkit finds on this machine, and that one span, one sample and one session work at all.
 *
 *     status --probe      which GPU there is, as lines of the file of figures; nothing else
 */
#include <stdio.h>
#include <string.h>

#include <pk/pk.h>

#include "driver.h"
#include "gpu.h"

static pk_region region = PK_REGION("status.span");

static int probe(void)
{
    char name[128] = "";
    int version = 0, devices = 0;
    driver_load();
    must(cu.cuda_device_name(name, sizeof name, 0));
    must(cu.cuda_device_count(&devices));
    must(cu.cuda_driver_version(&version));
    printf("device\t%d x %s\n", devices, name);
    printf("cuda\t%d.%d\n", version / 1000, version % 1000 / 10);
    return 0;
}

static void show_backends(void)
{
    static const char *const names[] = {"cuda", "cupti", "nvtx", "nvml"};
    static const char *const keys[] = {"status.cuda", "status.cupti", "status.nvtx", "status.nvml"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pk_backend_info info = {.size = sizeof info};
        pk_backend_status(names[i], &info);
        gpu_figure(keys[i], "%s %s %s", info.live ? "on" : "off", info.version, info.reason);
    }
}

static void one_span(void)
{
    cuda_stream stream;
    cuda_memory memory;
    must(cu.cuda_stream_create(&stream, CUDA_NON_BLOCKING));
    must(cu.cuda_memory(&memory, sizeof(spun)));
    pk_gpu_begin(&region, stream);
    driver_spin(stream, 1000000, memory, 0);
    pk_gpu_end(&region, stream);
    must(cu.cuda_stream_synchronize(stream));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--probe") == 0)
        return probe();
    driver_open();
    driver_load_kernels();
    uint64_t begun = gpu_now();
    const char *path = gpu_start("cuda,cupti,nvtx,nvml");
    gpu_figure("start.ms", "%.2f", (double)(gpu_now() - begun) / 1e6);
    one_span();
    gpu_sleep_ms(2000); /* NVML samples meanwhile */
    show_backends();
    gpu_need("cuda");
    begun = gpu_now();
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_figure("stop.ms", "%.2f", (double)(gpu_now() - begun) / 1e6);

    pk_stats stats;
    pk_gpu_counts counts = {.size = sizeof counts};
    pk_get_gpu_counts(&counts);
    gpu_check(counts.begun == 1 && counts.recorded == 1, "%llu begun, %llu recorded",
              (unsigned long long)counts.begun, (unsigned long long)counts.recorded);
    gpu_check(pk_region_gpu_stats(&region, &stats) == PK_OK && stats.min > 900000,
              "1 ms of spinning took %llu ns", (unsigned long long)stats.min);
    gpu_bar(stats.min < 3000000, "1 ms of spinning took %llu ns", (unsigned long long)stats.min);
    size_t samples = gpu_count_lines(path, "\"gpu0.power\"");
    gpu_figure("nvml.samples", "%zu of gpu0.power in 2 s", samples);
    gpu_read_trace(path);
    return gpu_result();
}
