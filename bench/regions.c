/* bench/regions.c - what a region costs: bench-regions region | off | threads | cold | overlap. */
#include <pk/pk.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "harness.h"

static pk_region one = PK_REGION("one"), other = PK_REGION("other");

/* ---- region: what a recorded one costs, and what else a program calls while it records ---- */

/* Statistics and trace are both on unless a table says otherwise; the rings are emptied between
 * the batches, on this thread, outside the timing. */

enum { PAIRS = 9984, STEPS = 512 }; /* PAIRS is a multiple of 64 */

static pk_counter counter = PK_COUNTER("counter", "things");

static void run_one(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_end(&one);
    }
}

static void run_c_scope(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        PK_REGION_SCOPE(one);
    }
}

static void run_next(uint64_t n)
{
    pk_region_begin(&one);
    for (uint64_t i = 0; i < n; i += 2) {
        pk_region_next(&one, &other);
        pk_region_next(&other, &one);
    }
    pk_region_end(&one);
}

static void run_add(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        pk_region_add(&one, 64, 2);
        pk_region_end(&one);
    }
}

static void run_counter(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk_counter_set(&counter, (double)i);
}

static void run_mark(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        pk_region_mark(&one);
}

static void run_named(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region *region = pk_region_named("known by name");
        pk_region_begin(region);
        pk_region_end(region);
    }
}

static void run_regions(uint64_t n, unsigned regions)
{
    for (uint64_t i = 0; i < n; i++)
        bench_many_pairs(regions);
}

static void run_steps(uint64_t n, unsigned regions)
{
    for (uint64_t i = 0; i < n; i++) {
        bench_many_pairs(regions);
        pk_step(1);
    }
}

static void run_20(uint64_t n)
{
    run_regions(n, 20);
}

static void run_20_steps(uint64_t n)
{
    run_steps(n, 20);
}

static void run_200(uint64_t n)
{
    run_regions(n, 200);
}

static void run_200_steps(uint64_t n)
{
    run_steps(n, 200);
}

static void empty_rings(void)
{
    pk_flush();
}

static bench_case regions[] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS},
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "64 regions in rotation", .run = bench_64_run, .n = PAIRS},
    {.name = "next", .run = run_next, .n = PAIRS},
    {.name = "PK_REGION_SCOPE", .run = run_c_scope, .n = PAIRS},
    {.name = "pk::scope", .run = bench_cpp_scope_run, .n = PAIRS},
};

static bench_case next_alone[] = {
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "next", .run = run_next, .n = PAIRS},
};

static bench_case others[] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS},
    {.name = "begin + add + end", .run = run_add, .n = PAIRS},
    {.name = "pk_region_named + begin + end", .run = run_named, .n = PAIRS},
    {.name = "pk_counter_set", .run = run_counter, .n = PAIRS},
    {.name = "pk_region_mark", .run = run_mark, .n = PAIRS},
};

static bench_case steps_20[] = {
    {.name = "20 regions", .run = run_20, .n = STEPS},
    {.name = "20 regions + pk_step", .run = run_20_steps, .n = STEPS},
};

static bench_case steps_200[] = {
    {.name = "200 regions", .run = run_200, .n = STEPS / 8},
    {.name = "200 regions + pk_step", .run = run_200_steps, .n = STEPS / 8},
};

static bench_case light[] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS},
    {.name = "begin + end", .run = run_one, .n = PAIRS},
    {.name = "64 regions in rotation", .run = bench_64_run, .n = PAIRS},
};

#define SIZE(cases) (sizeof(cases) / sizeof *(cases))

static void measure(const char *title, bench_case *cases, size_t count, unsigned long rounds)
{
    for (size_t i = 0; i < count; i++)
        cases[i].after = empty_rings;
    bench_rounds(cases, count, rounds);
    bench_print(title, cases, count);
}

/* A session of its own for each table: a trace file does not grow beyond half a gigabyte. */
static void session(const pk_options *options)
{
    if (pk_start(options) != PK_OK)
        bench_fail(pk_error_message());
}

static void end_session(void)
{
    pk_counts counts = {.size = sizeof counts};
    if (pk_stop() != PK_OK || pk_get_counts(&counts) != PK_OK)
        bench_fail(pk_error_message());
    if (counts.dropped || counts.points_dropped)
        bench_fail("a ring was full: the figures above are not of recorded regions");
    bench_scratch_empty();
}

static void with_trace(const char *title, bench_case *cases, size_t count, unsigned long rounds)
{
    session(pk_options(.trace_path = bench_scratch("region.json")));
    measure(title, cases, count, rounds);
    end_session();
}

static void full_ring(unsigned long rounds)
{
    session(pk_options(.tuning = "ring_records=64"));
    bench_rounds(light, 2, rounds);
    pk_stop();
    bench_print("ring full: dropped and counted", light, 2);
}

static int region_bench(int argc, char **argv)
{
    unsigned long rounds = bench_number(argc, argv, "--rounds", 51);
    bench_pin(0);
    bench_floor_prepare();
    with_trace("statistics and trace", regions, SIZE(regions), rounds);
    with_trace("next, against begin + end", next_alone, SIZE(next_alone), rounds);
    with_trace("other calls", others, SIZE(others), rounds);
    with_trace("a step of 20 regions", steps_20, SIZE(steps_20), rounds);
    with_trace("a step of 200 regions", steps_200, SIZE(steps_200), rounds);
    session(NULL);
    measure("statistics only", light, SIZE(light), rounds);
    end_session();
    full_ring(rounds);
    return 0;
}

/* ---- off: what perfkit costs that is not started, against the same loop without it ---- */

enum { OFF_PAIRS = 640000 };

static uint64_t state = 1;

static void run_one_apart(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        bench_barrier();
        pk_region_end(&one);
    }
}

static void run_next_apart(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_next(&one, &other);
        bench_barrier();
    }
}

/* A few dependent operations, as short as anybody would put into a region. What a region forbids,
 * to keep the state in a register, the loop without it must not do either. */
static inline void work(void)
{
    uint64_t x = state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state = x;
    bench_barrier();
}

static void run_work(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        work();
}

static void run_work_in_region(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        pk_region_begin(&one);
        work();
        pk_region_end(&one);
    }
}

static bench_case empty[] = {
    {.name = "the loop", .run = bench_loop_run, .n = OFF_PAIRS},
    {.name = "begin + end", .run = run_one_apart, .n = OFF_PAIRS},
    {.name = "64 regions in rotation", .run = bench_64_run, .n = OFF_PAIRS},
    {.name = "next", .run = run_next_apart, .n = OFF_PAIRS},
    {.name = "pk::scope", .run = bench_cpp_scope_run, .n = OFF_PAIRS},
};

static bench_case working[] = {
    {.name = "a random number", .run = run_work, .n = OFF_PAIRS},
    {.name = "a random number in a region", .run = run_work_in_region, .n = OFF_PAIRS},
};

static int off_bench(int argc, char **argv)
{
    unsigned long rounds = bench_number(argc, argv, "--rounds", 101);
    bench_pin(0);
    bench_rounds(empty, 5, rounds);
    bench_print("not started", empty, 5);
    bench_rounds(working, 2, rounds);
    bench_print("not started, around work", working, 2);
    return 0;
}

/* ---- threads: two at once, each on its own processor ---- */

/* Do they get in each other's way? Both run the same case at the same time. */

enum { THREADS = 2, CASES = 2 };

static pthread_barrier_t together;
static unsigned long threads_rounds;

static void meet(void)
{
    pthread_barrier_wait(&together);
}

/* Nobody empties rings while the other thread is still measuring. */
static void meet_and_empty(void)
{
    meet();
    pk_flush();
}

static const bench_case threads_cases[CASES] = {
    {.name = "floor", .run = bench_floor_run, .n = PAIRS, .before = meet, .after = meet_and_empty},
    {.name = "begin + end", .run = run_one, .n = PAIRS, .before = meet, .after = meet_and_empty},
};

typedef struct worker {
    pthread_t thread;
    unsigned index;
    bench_case cases[CASES];
} worker;

static void *work_in_thread(void *arg)
{
    worker *w = arg;
    bench_pin(w->index);
    bench_floor_prepare();
    memcpy(w->cases, threads_cases, sizeof threads_cases);
    bench_rounds(w->cases, CASES, threads_rounds);
    return NULL;
}

static int threads_bench(int argc, char **argv)
{
    static worker workers[THREADS];
    static const char *const titles[] = {"two threads at once: one", "the other"};
    threads_rounds = bench_number(argc, argv, "--rounds", 101);
    if (pthread_barrier_init(&together, NULL, THREADS) != 0)
        bench_fail("pthread_barrier_init");
    if (pk_start(pk_options(.trace_path = bench_scratch("threads.json"))) != PK_OK)
        bench_fail(pk_error_message());
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].index = i;
        if (pthread_create(&workers[i].thread, NULL, work_in_thread, &workers[i]) != 0)
            bench_fail("pthread_create");
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        bench_print(titles[i], workers[i].cases, CASES);
    return pk_stop() == PK_OK ? 0 : 1;
}

/* ---- cold: a region in a program whose caches are its own ---- */

/* Between two regions other memory is walked. Timed one by one, on the wall, since a batch would be
 * warm; medians, less what timing nothing takes. */

enum { LINE = 64, REPETITIONS_MAX = 100000, BETWEEN_FLUSHES = 1000 };

static pki_record *ring;
static uint64_t ring_at;
static unsigned char *memory;
static size_t bytes;

/* All of it is written when the clock starts: what it has under way is not the region's. */
static inline void walk(void)
{
    for (size_t i = 0; i < bytes; i += LINE)
        memory[i]++;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Each with its code where its caller's is, as in a program. */
#define TIMED(name, what)                                                                          \
    static __attribute__((noinline)) double name(void)                                             \
    {                                                                                              \
        walk();                                                                                    \
        uint64_t start = pki_cycle_counter();                                                      \
        what;                                                                                      \
        bench_barrier();                                                                           \
        return (double)(pki_cycle_counter() - start);                                              \
    }

TIMED(time_nothing, (void)0)
TIMED(time_floor, bench_floor_pair(ring, ring_at))
TIMED(time_pair, (pk_region_begin(&one), pk_region_end(&one)))

typedef struct candidate {
    const char *name;
    double (*time)(void);
    double ticks[REPETITIONS_MAX];
} candidate;

static candidate candidates[] = {
    {.name = "nothing", .time = time_nothing},
    {.name = "floor", .time = time_floor},
    {.name = "begin + end", .time = time_pair},
};

enum { CANDIDATES = sizeof candidates / sizeof *candidates };

static void repeat(unsigned long repetitions)
{
    for (unsigned long i = 0; i < repetitions; i++) {
        for (size_t c = 0; c < CANDIDATES; c++)
            candidates[c].ticks[i] = candidates[c].time();
        ring_at++;
        if (i % BETWEEN_FLUSHES == 0)
            pk_flush();
    }
}

static double tick_ns(void)
{
    uint64_t ns = bench_wall_ns(), ticks = pki_cycle_counter();
    while (bench_wall_ns() - ns < 50000000)
        ;
    return (double)(bench_wall_ns() - ns) / (double)(pki_cycle_counter() - ticks);
}

static void print(unsigned long repetitions)
{
    static const double shares[] = {0.25, 0.5, 0.75, 0.9};
    double unit = tick_ns();
    double nothing = bench_quantile(candidates[0].ticks, repetitions, 0.5) * unit;
    printf("%-38s %8s %8s %8s %8s\n", "one region, caches cold: net ns", "25 %", "median", "75 %",
           "90 %");
    for (size_t c = 1; c < CANDIDATES; c++) {
        printf("  %-36s", candidates[c].name);
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
            printf(" %8.1f",
                   bench_quantile(candidates[c].ticks, repetitions, shares[i]) * unit - nothing);
        putchar('\n');
    }
}

static int cold_bench(int argc, char **argv)
{
    unsigned long repetitions = bench_number(argc, argv, "--repetitions", 5000);
    bytes = bench_number(argc, argv, "--bytes", 3 << 20);
    if (repetitions > REPETITIONS_MAX)
        repetitions = REPETITIONS_MAX;
    memory = malloc(bytes);
    if (!memory)
        bench_fail("no memory");
    memset(memory, 1, bytes);
    bench_pin(0);
    ring = bench_floor_prepare();
    if (pk_start(pk_options(.trace_path = bench_scratch("cold.json"))) != PK_OK)
        bench_fail(pk_error_message());
    repeat(repetitions);
    print(repetitions);
    free(memory);
    return pk_stop() == PK_OK ? 0 : 1;
}

/* ---- overlap: what a clock read hides ---- */

/* On some processors it runs beside the instructions around it, and what a recorder adds to two
 * clock reads is lost in them; on others it waits for those before it, and nearly everything is
 * added. */

enum { BATCH = 20000 };

#define SIX(x) x x x x x x
#define TIMES_24(x) SIX(x) SIX(x) SIX(x) SIX(x)

#define HIDE(x) __asm__ volatile("" : "+r"(x)) /* the compiler does not know what is in x */

static uint64_t cell;
static volatile uint64_t sink;

static __attribute__((noinline)) void call(void)
{
    __asm__ volatile("");
}

static inline void nothing(void) {}

static inline void add(void)
{
    uint64_t a = 0;
    TIMES_24(a++; HIDE(a);)
}

static inline void test(void)
{
    uint64_t zero = 0;
    TIMES_24(HIDE(zero); if (__builtin_expect(zero != 0, 0)) sink = 1;)
}

static inline void load(void)
{
    TIMES_24((void)*(volatile uint64_t *)&cell;)
}

static inline void store(void)
{
    TIMES_24(*(volatile uint64_t *)&cell = 1;)
}

static inline void multiply(void)
{
    uint64_t a = 3;
    TIMES_24(a *= 3; HIDE(a);)
}

static inline void call_6(void)
{
    SIX(call();)
}

#define ALONE_AND_WITH(what)                                                                       \
    static void what##_alone(uint64_t n)                                                           \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++)                                                           \
            what();                                                                                \
    }                                                                                              \
    static void what##_with(uint64_t n)                                                            \
    {                                                                                              \
        for (uint64_t i = 0; i < n; i++) {                                                         \
            uint64_t now = pki_cycle_counter();                                                    \
            HIDE(now);                                                                             \
            what();                                                                                \
        }                                                                                          \
    }

ALONE_AND_WITH(nothing)
ALONE_AND_WITH(add)
ALONE_AND_WITH(test)
ALONE_AND_WITH(load)
ALONE_AND_WITH(store)
ALONE_AND_WITH(multiply)
ALONE_AND_WITH(call_6)

#define ALONE(what, text)                                                                          \
    {                                                                                              \
        .name = (text), .run = what##_alone, .n = BATCH                                            \
    }
#define WITH(what)                                                                                 \
    {                                                                                              \
        .run = what##_with, .n = BATCH                                                             \
    }

/* In pairs: alone, and with a clock read. */
static bench_case overlaps[] = {
    ALONE(nothing, "nothing"),
    WITH(nothing),
    ALONE(add, "24 additions"),
    WITH(add),
    ALONE(load, "24 loads"),
    WITH(load),
    ALONE(store, "24 stores"),
    WITH(store),
    ALONE(test, "24 branches not taken"),
    WITH(test),
    ALONE(call_6, "6 calls"),
    WITH(call_6),
    ALONE(multiply, "a chain of 24 multiplications"),
    WITH(multiply),
};

enum { OVERLAPS = sizeof overlaps / sizeof *overlaps };

static int overlap_bench(int argc, char **argv)
{
    bench_pin(0);
    bench_rounds(overlaps, OVERLAPS, bench_number(argc, argv, "--rounds", 101));
    const bench_case *clock = &overlaps[1];
    printf("%-38s %10s %22s\n", "beside a clock read", "alone, ns", "added to the clock, ns");
    printf("  %-36s %10.2f\n", "the clock read", clock->ns);
    for (const bench_case *c = overlaps + 2; c < overlaps + OVERLAPS; c += 2)
        printf("  %-36s %10.2f %22.2f\n", c[0].name, c[0].ns, c[1].ns - clock->ns);
    return 0;
}

int main(int argc, char **argv)
{
    static const bench_program programs[] = {{"region", region_bench},
                                             {"off", off_bench},
                                             {"threads", threads_bench},
                                             {"cold", cold_bench},
                                             {"overlap", overlap_bench}};
    return bench_programs(programs, sizeof programs / sizeof *programs, argc, argv);
}
