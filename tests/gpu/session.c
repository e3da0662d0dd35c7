/* Sessions on a GPU: what perfkit finds, what goes wrong, and a whole training. */
#include "gpu.h"

#include <pk/gpu.h>
#include <pk/pk.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- status ---- */

/* What perfkit finds on this machine, and that one span, one sample and one session work at all.
 *
 * status --probe which GPU there is, as lines of the file of figures; nothing else */

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

int test_status(int argc, char **argv)
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

/* ---- what goes wrong on a GPU ---- */

/* Contexts that go while spans are in them, a kernel that writes where it may not, a fork. perfkit
 * says so, stops well, and does nothing that makes it worse. Each in a process of its own, started
 * anew. */

static pk_region faults_region = PK_REGION("faults.span");

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
        pk_gpu_begin(&faults_region, stream);
        cu.cuda_launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        pk_gpu_end(&faults_region, stream);
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
        pk_gpu_begin(&faults_region, stream);
        pk_gpu_end(&faults_region, stream);
        bool well = pk_start(pk_options(.backends = "cuda,nvml")) == PK_OK;
        pk_gpu_begin(&faults_region, stream);
        pk_gpu_end(&faults_region, stream);
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

int test_faults(int argc, char **argv)
{
    for (size_t i = 0; i < SCENARIOS && argc == 2; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].play();
            return gpu_result();
        }
    for (size_t i = 0; i < SCENARIOS; i++) {
        int status = gpu_anew("faults", scenarios[i].name, 60);
        if (status == 77)
            return 77;
        gpu_check(status == 0, "%s: ended with %d", scenarios[i].name, status);
    }
    return gpu_result();
}

/* ---- the training example ---- */

/* What perfkit costs it, in turns, and whether every kernel of it is tied to the region that
 * launched it.
 *
 * train PATH/cuda_train */

#define ROUNDS 7
#define FIRST 150 /* the window of CUPTI */
#define LAST 250
#define STEPS 400
#define BAR_EVENTS 1.01
#define BAR_WINDOW 1.05

typedef struct result {
    double step_ms, window_ms;
    char checksum[32];
} result;

static const char *program;
static char trace[512];

/* Its line of figures. Skips the test if there is no GPU, ends it if the program fails. */
static result run(const char *arguments)
{
    result r = {.step_ms = 0};
    char command[2048], line[512] = "";
    snprintf(command, sizeof command, "'%s' --steps %d %s", program, STEPS, arguments);
    FILE *output = popen(command, "r");
    while (output && fgets(line, sizeof line, output) && strncmp(line, "steps=", 6) != 0)
        ;
    int status = output ? pclose(output) : -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        gpu_skip("%.*s", (int)strcspn(line, "\n"), line);
    if (status != 0 || sscanf(line,
                              "steps=%*d batch=%*d step_ms=%lf window_ms=%lf total_ms=%*f "
                              "loss=%*f checksum=%31s",
                              &r.step_ms, &r.window_ms, r.checksum) != 3) {
        printf("%s: status %d, said: %s\n", command, status, line);
        exit(1);
    }
    return r;
}

static void check_kernels(const char *window)
{
    char arguments[700];
    snprintf(arguments, sizeof arguments, "--cupti %s --trace '%s'", window, trace);
    run(arguments);
    gpu_trace t = gpu_read_trace(trace);
    size_t seen = 0, tied = 0;
    for (size_t i = 0; i < t.count; i++)
        if (gpu_is(&t.events[i], "kernel", NULL)) {
            seen++;
            tied += t.events[i].region[0] != 0 && t.events[i].correlation != 0;
        }
    gpu_figure("train.tied", "%zu of %zu kernels", tied, seen);
    gpu_check(seen > 0, "no kernels: is CUPTI off? (PK_LOG=stderr says why)");
    gpu_check(tied == seen, "%zu of %zu", tied, seen);
    gpu_figure("train.kernels_per_step", "%.1f", (double)seen / (LAST - FIRST + 1));
    gpu_figure("train.spans", "forward %zu, backward %zu, optimizer %zu, copy %zu of %d each",
               gpu_count(&t, "gpu_user_annotation", "forward"),
               gpu_count(&t, "gpu_user_annotation", "backward"),
               gpu_count(&t, "gpu_user_annotation", "optimizer"),
               gpu_count(&t, "gpu_user_annotation", "copy"), STEPS);
    gpu_check(gpu_count(&t, "gpu_user_annotation", "forward") == STEPS, "of %d", STEPS);
}

static void check_graph(const char *checksum)
{
    char arguments[700];
    snprintf(arguments, sizeof arguments, "--graph --trace '%s'", trace);
    result off = run("--graph --off"), on = run(arguments);
    gpu_trace t = gpu_read_trace(trace);
    gpu_figure("train.graph", "%.4f ms a step without, %.4f with perfkit; %zu spans of %d",
               off.step_ms, on.step_ms, gpu_count(&t, "gpu_user_annotation", "forward"), STEPS);
    gpu_check(gpu_count(&t, "gpu_user_annotation", "forward") == STEPS, "spans of replays");
    gpu_check(strcmp(on.checksum, checksum) == 0 && strcmp(off.checksum, checksum) == 0,
              "other weights: %s, %s and %s", checksum, off.checksum, on.checksum);
}

static void measure(const char *window)
{
    double off[ROUNDS], events[ROUNDS], inside[ROUNDS], outside[ROUNDS];
    char with_events[700], with_cupti[700];
    result first = run("--off"); /* a warm-up, too */
    snprintf(with_events, sizeof with_events, "--trace '%s'", trace);
    snprintf(with_cupti, sizeof with_cupti, "--cupti %s --trace '%s'", window, trace);
    for (int i = 0; i < ROUNDS; i++) {
        result a = run("--off"), b = run(with_events), c = run(with_cupti);
        off[i] = a.step_ms;
        events[i] = b.step_ms / a.step_ms;
        inside[i] = c.window_ms / a.step_ms;
        outside[i] = c.step_ms / a.step_ms;
        gpu_check(strcmp(a.checksum, first.checksum) == 0 &&
                      strcmp(b.checksum, first.checksum) == 0 &&
                      strcmp(c.checksum, first.checksum) == 0,
                  "other weights with perfkit");
    }
    double e = gpu_median(events, ROUNDS), in = gpu_median(inside, ROUNDS);
    gpu_figure("train.off_ms", "%.4f", gpu_median(off, ROUNDS));
    gpu_figure("train.events", "%.4f x", e);
    gpu_figure("train.window", "%.4f x", in);
    gpu_figure("train.outside", "%.4f x", gpu_median(outside, ROUNDS));
    gpu_bar(e <= BAR_EVENTS, "events: %.4f x", e);
    gpu_bar(in <= BAR_WINDOW, "CUPTI: %.4f x in its window", in);
    gpu_bar(gpu_median(outside, ROUNDS) <= BAR_EVENTS, "and outside of it");
    check_graph(first.checksum);
}

int test_train(int argc, char **argv)
{
    const char *folder = getenv("TMPDIR");
    char window[32];
    if (argc != 2 || access(argv[1], X_OK) != 0)
        gpu_skip("cuda_train is not there: it needs nvcc to be built");
    program = argv[1];
    snprintf(window, sizeof window, "%d-%d", FIRST, LAST);
    snprintf(trace, sizeof trace, "%s/pk-gpu-train-%d.json", folder ? folder : "/tmp",
             (int)getpid());
    measure(window);
    check_kernels(window);
    return gpu_result();
}
