/* A real program: the demo's trainer with and without a session, in turns. Each run is a child
 * process, so it starts as the one before did; what it takes is its CPU time, with the loader's
 * and the collector's. */
#include <pk/pk.h>

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

#include "options.h"
#include "trainer.h"

enum { RUNS_MAX = 200 };

static bool train(const options *o)
{
    trainer t;
    bool good = trainer_init(&t, o) && trainer_run(&t, NULL);
    trainer_finish(&t);
    return good;
}

static bool child(const options *o, bool recording)
{
    if (recording && pk_start(pk_options(.trace_path = bench_scratch("train.json"))) != PK_OK)
        return false;
    bool good = train(o);
    return good && (!recording || pk_stop() == PK_OK);
}

/* Seconds of CPU time. */
static double run(const options *o, bool recording)
{
    struct rusage used;
    pid_t pid = bench_fork();
    if (pid == 0)
        bench_leave(child(o, recording));
    bench_join(pid, "a training run", &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void print(double off[], double on[], double shares[], size_t runs)
{
    double noise = bench_quantile(off, runs, 0.9) - bench_quantile(off, runs, 0.1);
    double median = bench_quantile(off, runs, 0.5);
    printf("the demo's trainer, CPU time of %zu runs each, in turns\n", runs);
    printf("  %-36s %8.3f s, 80 %% of the runs within %.2f %%\n", "without a session", median,
           noise / median * 100);
    printf("  %-36s %8.3f s\n", "with statistics and a trace", bench_quantile(on, runs, 0.5));
    printf("  %-36s %8.2f %%, from %.2f %% to %.2f %%\n", "more, median and middle half",
           bench_quantile(shares, runs, 0.5), bench_quantile(shares, runs, 0.25),
           bench_quantile(shares, runs, 0.75));
}

int main(int argc, char **argv)
{
    double off[RUNS_MAX], on[RUNS_MAX], shares[RUNS_MAX];
    unsigned long runs = bench_number(argc, argv, "--runs", 21);
    char *arguments[] = {argv[0], (char[]){"--quiet"}, (char[]){"--steps"}, (char[]){"30"}, NULL};
    options o;
    if (!options_parse(&o, 4, arguments))
        return 2;
    bench_scratch("");
    run(&o, false);
    for (unsigned long i = 0; i < runs && i < RUNS_MAX; i++) {
        off[i] = run(&o, false);
        on[i] = run(&o, true);
        shares[i] = (on[i] / off[i] - 1) * 100;
    }
    print(off, on, shares, runs < RUNS_MAX ? runs : RUNS_MAX);
    return 0;
}
