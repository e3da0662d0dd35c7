/* What finding out costs that there is no GPU: pk_start to pk_stop in a process of its own each
 * time, with no backend, with single ones and with all of them, in turns.
 *
 * On a machine with a GPU it is what a session costs there.
 */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { ROUNDS = 41 };

static const char *const lists[] = {"none", "cuda", "nvml", "cuda,cupti,nvtx,nccl,nvml"};
enum { LISTS = sizeof lists / sizeof *lists };

/* In the process of its own: one session, its nanoseconds printed. */
static int once(const char *backends)
{
    uint64_t begun = bench_wall_ns();
    if (pk_start(pk_options(.backends = backends)) != PK_OK || pk_stop() != PK_OK)
        bench_fail(pk_error_message());
    printf("%llu\n", (unsigned long long)(bench_wall_ns() - begun));
    return 0;
}

static double in_a_process(const char *backends)
{
    char program[1024], command[1200], line[64] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n <= 0)
        bench_fail("/proc/self/exe");
    program[n] = 0;
    snprintf(command, sizeof command, "'%s' %s", program, backends);
    FILE *output = popen(command, "r");
    if (!output || !fgets(line, sizeof line, output) || pclose(output) != 0)
        bench_fail(command);
    return strtod(line, NULL) * 1e-6;
}

static void show_status(const char *name)
{
    pk_backend_info info = {.size = sizeof info};
    pk_backend_status(name, &info);
    printf("  %-8s %s %s\n", name, info.live ? "on" : "off:", info.reason);
}

int main(int argc, char **argv)
{
    static double ms[LISTS][ROUNDS], more[LISTS][ROUNDS];
    if (argc == 2)
        return once(argv[1]);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < LISTS; i++) {
            ms[i][round] = in_a_process(lists[i]);
            more[i][round] = ms[i][round] - ms[0][round];
        }
    printf("%-38s %10s %10s %10s\n", "pk_start to pk_stop, once in a process", "ms", "more", "p90");
    for (int i = 0; i < LISTS; i++)
        printf("  backends %-27s %10.2f %10.2f %10.2f\n", lists[i],
               bench_quantile(ms[i], ROUNDS, 0.5), bench_quantile(more[i], ROUNDS, 0.5),
               bench_quantile(more[i], ROUNDS, 0.9));
    printf("\n");
    show_status("cuda");
    show_status("cupti");
    show_status("nvml");
    return 0;
}
