/* The training example: what perfkit costs it, in turns, and whether every kernel of it is tied to
 * the region that launched it.
 *
 *     train PATH/cuda_train
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

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
    size_t kernels = 0, tied = 0;
    for (size_t i = 0; i < t.count; i++)
        if (gpu_is(&t.events[i], "kernel", NULL)) {
            kernels++;
            tied += t.events[i].region[0] != 0 && t.events[i].correlation != 0;
        }
    gpu_figure("train.tied", "%zu of %zu kernels", tied, kernels);
    gpu_check(kernels > 0, "no kernels: is CUPTI off? (PK_LOG=stderr says why)");
    gpu_check(tied == kernels, "%zu of %zu", tied, kernels);
    gpu_figure("train.kernels_per_step", "%.1f", (double)kernels / (LAST - FIRST + 1));
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

int main(int argc, char **argv)
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
