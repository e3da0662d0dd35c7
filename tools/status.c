/* pk status: what perfkit finds here, before anybody measures with it. */
#include <pk/pk.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/tuning.h"
#include "command.h"
#include "core/names.h"
#include "core/overhead.h"
#include "core/thread.h"
#include "out/gz.h"

/* ---- the parts of pk status, each a few lines on stdout ---- */

extern char **environ;

static double hz_of_counter(void)
{
    struct timespec pause = {0, 20000000};
    pki_clock_sample a = pki_clock_read(0);
    nanosleep(&pause, NULL);
    pki_clock_sample b = pki_clock_read(0);
    return (double)(b.ticks - a.ticks) * 1e9 / (double)(b.ns - a.ns);
}

static void show_clock(void)
{
    const char *why_not = "";
    bool trusted = pki_cycle_counter_trusted(&why_not);
    double hz = trusted ? hz_of_counter() : 1e9;
    if (trusted)
        printf("clock     %s at %.3f GHz, in steps of %.2f ns\n", PKI_CYCLE_COUNTER_NAME, hz / 1e9,
               (double)pki_clock_step(0) * 1e9 / hz);
    else
        printf("clock     CLOCK_MONOTONIC in steps of %.2f ns: %s\n", (double)pki_clock_step(1),
               why_not);
    printf("region    %.1f ns for a begin and an end, recorded\n", pki_measure_region_ns(!trusted));
}

static void show_limit(const char *what, const struct rlimit *limit)
{
    if (limit->rlim_cur == RLIM_INFINITY)
        printf(", %s unlimited", what);
    else
        printf(", %s %llu MiB", what, (unsigned long long)limit->rlim_cur >> 20);
}

static void show_limits(void)
{
    struct rlimit limit;
    printf("limits    %d names, %d levels, a ring of 65536 records (2 MiB) per thread by default\n",
           PKI_NAMES_MAX - 1, PKI_DEPTH_MAX);
    printf("memory    1024 MiB by default, reserved and used as needed");
    if (getrlimit(RLIMIT_AS, &limit) == 0)
        show_limit("address space", &limit);
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0)
        show_limit("file size", &limit);
    printf("\ntraces    JSON%s\n", pki_gz_available() ? ", gzip" : "; gzip not in this build");
}

static void show_world(void)
{
    pki_world world;
    pki_world_detect(&world);
    if (world.size)
        printf("rank      %d of %d, from the launcher's variables, on %s\n", world.rank, world.size,
               world.host);
    else
        printf("rank      none: no launcher's variables, on %s\n", world.host);
}

static void show_backends(void)
{
    static const char *const names[] = {"cuda", "cupti", "nvtx", "nccl", "nvml"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pk_backend_info info = {.size = sizeof info};
        if (pk_backend_status(names[i], &info) == PK_OK)
            printf("%-9s %s%s%s%s%s\n", names[i], info.live ? "live" : "off",
                   info.version[0] ? " " : "", info.version, info.reason[0] ? ": " : "",
                   info.reason);
    }
}

/* A misspelt variable does nothing, silently; here it shows. */
static void show_environment(void)
{
    for (char **e = environ; *e; e++) {
        size_t n = strcspn(*e, "=");
        if (strncmp(*e, "PK_", 3) == 0)
            printf("%s%s\n", *e,
                   pki_variable_is_known(*e, n) ? "" : "   (perfkit does not know this variable)");
    }
}

/* ---- pk status: what perfkit finds here, before anybody measures with it ---- */

static const option_table command_options = {
    .command = "status",
    .usage = "",
    .about =
        "What perfkit finds on this machine and in this environment: the clock and what a region\n"
        "costs with it, limits of memory and files, the rank that a launcher gave, the backends\n"
        "and why they are off, and the PK_ variables that are set.",
    .notes = "Exit status: 0; 2 if pk_start with these variables would fail.",
    .who = "",
};

/* Would pk_start(NULL) work here? Its words, if not. A session without files says so without
 * leaving any. */
static int try_start(void)
{
    pk_status status =
        pk_start(pk_options(.tuning = "arena_path=none", .trace_path = "", .report_path = ""));
    if (status)
        return complain("pk_start would fail: %s (%s)", pk_error_message(), pk_status_name(status));
    pk_stop();
    return EXIT_OK;
}

int command_status(int argc, char **argv)
{
    operands files;
    int status = options_read(&command_options, &files, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (files.count)
        return complain("status takes no file, thus not \"%s\" (pk status --help)", files.all[0]);
    printf("perfkit   %s\n", pk_version());
    show_clock();
    show_limits();
    show_world();
    show_backends();
    show_environment();
    return try_start();
}
