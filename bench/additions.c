/* Is a short kernel's figure right, wherever its loop lies? Chains of 1 to 20 dependent additions,
 * each in a loop at eight places, measured as a program's benchmarks are: in turns, until each is
 * precise. A launch is a process, whose library calibrates itself anew; `--launches` says how many.
 *
 * What is there is measured beside each sample, without pk_bench and without a loop to speak of: a
 * long chain of the same additions, between two readings of the clock. docs/internals/bench.md has
 * the figures. */
#include <pk/bench.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/registry.h"
#include "bench/case.h"
#include "bench/stats/samples.h"
#include "bench/rounds.h"

#include "harness.h"

#define PLACES 8
#define BAR_SHARE 0.03
#define BAR_NS 0.1

/* ---- the kernels ---- */

#define ADD_1                                                                                      \
    x += by;                                                                                       \
    __asm__ volatile("" : "+r"(x)); /* the next one needs it, and cannot be added to it */
#define ADD_2 ADD_1 ADD_1
#define ADD_3 ADD_2 ADD_1
#define ADD_4 ADD_2 ADD_2
#define ADD_8 ADD_4 ADD_4
#define ADD_20 ADD_8 ADD_8 ADD_4
#define ADD_100 ADD_20 ADD_20 ADD_20 ADD_20 ADD_20

/* So many bytes behind a multiple of 64. */
#if defined(__x86_64__) || defined(__i386__)
#define NOP_BYTES "1"
#else
#define NOP_BYTES "4"
#endif
#define PLACE(bytes)                                                                               \
    __asm__ volatile(".p2align 6\n\t.rept " #bytes "/" NOP_BYTES "\n\tnop\n\t.endr")

static volatile uint64_t in_sum = 1, in_by = 0x5DEECE66D;

#define KERNEL(count, place)                                                                       \
    PK_BENCH(additions_##count##_at_##place)                                                       \
    {                                                                                              \
        uint64_t x = in_sum, by = in_by;                                                           \
        PLACE(place);                                                                              \
        PK_BENCH_LOOP {                                                                            \
            ADD_##count                                                                            \
        }                                                                                          \
        in_sum = x;                                                                                \
    }
#define KERNELS(count)                                                                             \
    KERNEL(count, 0)                                                                               \
    KERNEL(count, 8)                                                                               \
    KERNEL(count, 16)                                                                              \
    KERNEL(count, 24)                                                                              \
    KERNEL(count, 32)                                                                              \
    KERNEL(count, 40)                                                                              \
    KERNEL(count, 48)                                                                              \
    KERNEL(count, 56)

static const unsigned additions[] = {1, 2, 3, 4, 8, 20};
enum { LENGTHS = sizeof additions / sizeof *additions, CELLS = LENGTHS * PLACES };

KERNELS(1)
KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(8)
KERNELS(20)

/* ---- what is there ---- */

enum { CHAIN = 20000 };

typedef struct reference {
    double *values; /* ns of an addition, one beside each sample */
    size_t count, room;
} reference;

static double an_addition(void)
{
    uint64_t x = in_sum, by = in_by, start = bench_wall_ns();
    for (int i = 0; i < CHAIN / 100; i++) {
        ADD_100
    }
    uint64_t end = bench_wall_ns();
    in_sum = x;
    return (double)(end - start) / CHAIN;
}

static void beside_sample(void *user)
{
    reference *t = user;
    if (t->count == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        t->values = realloc(t->values, t->room * sizeof *t->values);
        if (!t->values)
            bench_fail("no memory");
    }
    t->values[t->count++] = an_addition();
}

/* ---- one launch ---- */

static unsigned cell_of(const char *name)
{
    unsigned count, place, i = 0;
    if (sscanf(name, "additions_%u_at_%u", &count, &place) != 2)
        bench_fail(name);
    while (i < LENGTHS && additions[i] != count)
        i++;
    return i * PLACES + place / 8;
}

static void write_cell(pki_bench_case *c, reference *t)
{
    pk_bench_result r = PK_BENCH_RESULT;
    unsigned cell = cell_of(c->name);
    if (!pki_bench_result_fill(&r, c) || !r.count)
        bench_fail(c->name);
    double one = bench_quantile(t->values, t->count, 0.5);
    printf("%u %.6f %.6f %.6f %.6f %u %s\n", cell, one * additions[cell / PLACES], r.median,
           (r.high - r.low) / 2, r.overhead, r.verdict, r.verdict_text);
    pk_bench_result_release(&r);
    pki_bench_case_finish(c);
    free(t->values);
}

static void launch(void)
{
    static pki_bench_case cases[CELLS];
    static reference references[CELLS];
    size_t count;
    if (pki_bench_instances(&count) != PK_OK || count != CELLS)
        bench_fail("the kernels are not those that the table names");
    for (unsigned i = 0; i < CELLS; i++) {
        if (pki_bench_instance_case(pki_bench_instance_at(i), pki_bench_engine_get(), NULL,
                                    &cases[i]) != PK_OK)
            bench_fail(pk_error_message());
        cases[i].options.user = &references[i];
        cases[i].options.before = beside_sample;
    }
    if (pki_bench_run_rounds(cases, CELLS, true, (uint64_t)getpid(), NULL, NULL) != PK_OK)
        bench_fail(pk_error_message());
    for (unsigned i = 0; i < CELLS; i++)
        write_cell(&cases[i], &references[i]);
}

/* ---- many of them ---- */

typedef struct tally {
    unsigned launches, held, steady, noisy_but_known;
    double lowest, highest, truth, median; /* off the truth, ns; the last two of the worst */
} tally;

static tally tallies[CELLS];

static double bar(double truth)
{
    return fmax(BAR_SHARE * truth, BAR_NS);
}

static void take(const char *line)
{
    unsigned cell, verdict;
    double truth, median, half, overhead;
    if (sscanf(line, "%u %lf %lf %lf %lf %u", &cell, &truth, &median, &half, &overhead, &verdict) !=
            6 ||
        cell >= CELLS)
        bench_fail(line);
    tally *t = &tallies[cell];
    double off = median - truth;
    if (fabs(off) >= fmax(-t->lowest, t->highest)) {
        t->truth = truth;
        t->median = median;
    }
    t->launches++;
    t->held += fabs(off) <= bar(truth);
    t->steady += verdict == PK_BENCH_VERDICT_STEADY;
    t->noisy_but_known += verdict == PK_BENCH_VERDICT_NOISY && half < 0.001 * median;
    t->lowest = fmin(t->lowest, off);
    t->highest = fmax(t->highest, off);
}

static void run_launch(void)
{
    char line[512], program[4000] = "", command[sizeof program + 16];
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
        bench_fail("readlink");
    snprintf(command, sizeof command, "'%s' --one", program);
    FILE *from = popen(command, "r");
    if (!from)
        bench_fail("popen");
    while (fgets(line, sizeof line, from)) {
        take(line);
        if (getenv("PK_BENCH_ADDITIONS_LINES"))
            fputs(line, stderr);
    }
    if (pclose(from) != 0)
        bench_fail("a launch failed");
}

static bool sum_up(void)
{
    unsigned all = 0, held = 0, steady = 0, contradictions = 0;
    puts(
        "additions  within the bar   per place 0, 8, ..., 56          off by, ns        worst, ns");
    for (unsigned i = 0; i < LENGTHS; i++) {
        tally sum = {0};
        char places[128] = "";
        for (unsigned p = 0; p < PLACES; p++) {
            const tally *t = &tallies[i * PLACES + p];
            size_t used = strlen(places);
            snprintf(places + used, sizeof places - used, " %3u", t->held);
            if (fmax(-t->lowest, t->highest) >= fmax(-sum.lowest, sum.highest)) {
                sum.truth = t->truth;
                sum.median = t->median;
            }
            sum.launches += t->launches;
            sum.held += t->held;
            sum.lowest = fmin(sum.lowest, t->lowest);
            sum.highest = fmax(sum.highest, t->highest);
            steady += t->steady;
            contradictions += t->noisy_but_known;
        }
        printf("%9u  %5u of %-5u %s  %+.3f .. %+.3f  %.3f for %.3f\n", additions[i], sum.held,
               sum.launches, places, sum.lowest, sum.highest, sum.median, sum.truth);
        all += sum.launches;
        held += sum.held;
    }
    printf(
        "%u of %u within 3 %% or 0.1 ns; %u steady, %u called noisy with an interval below 0.1 %%\n",
        held, all, steady, contradictions);
    return held == all;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--one") == 0) {
        launch();
        return 0;
    }
    unsigned long launches = bench_number(argc, argv, "--launches", 50);
    printf("dependent additions in a loop at %u places, %lu launches of each\n", PLACES, launches);
    for (unsigned long i = 0; i < launches; i++)
        run_launch();
    return sum_up() ? 0 : 1;
}
