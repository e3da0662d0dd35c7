#include "bench/overhead.h"

#include <pk/bench.h>

#include <math.h>

#include "base/compiler.h"
#include "bench/stats/samples.h"

/* ---- what a loop takes ---- */

#define TRIES 21
#define TURNS 4096
#define SURE 0.99

/* One try, the place that took least: one interruption, or one unlucky place, changes nothing. */
static double least_of_places(const pki_bench_clock *clock, double fixed,
                              void (*const places[PKI_BENCH_PLACES])(uint64_t turns))
{
    double least = INFINITY;
    for (int i = 0; i < PKI_BENCH_PLACES; i++) {
        uint64_t start = clock->now(clock->self);
        places[i](TURNS);
        double taken = (double)(clock->now(clock->self) - start) - fixed;
        least = PKI_MIN(least, taken / TURNS);
    }
    return least;
}

/* The difference of two that were measured next to each other, over the tries: what it is at least,
 * and how well that is known. */
static double certain(double *differences, double *unsure)
{
    pki_samples_sort(differences, TRIES);
    pki_interval is = pki_samples_sign_interval(differences, TRIES, 1, SURE);
    *unsure = is.high - is.low;
    return PKI_MAX(is.low, 0);
}

static void measure_loops(pki_bench_overhead *o, const pki_bench_clock *clock,
                          const pki_bench_loops *loops)
{
    double loop[TRIES], call[TRIES], least[PKI_BENCH_LOOPS], of_call;
    o->loop = o->call = INFINITY;
    for (int try = 0; try < TRIES; try++) {
        for (int i = 0; i < PKI_BENCH_LOOPS; i++)
            least[i] = least_of_places(clock, o->clock, loops->run[i]);
        o->loop = PKI_MIN(o->loop, PKI_MAX(least[PKI_BENCH_LOOP_EMPTY], 0));
        o->call = PKI_MIN(o->call, PKI_MAX(least[PKI_BENCH_CALL_EMPTY], 0));
        loop[try] = least[PKI_BENCH_LOOP_CHAIN] - least[PKI_BENCH_CHAIN];
        call[try] = least[PKI_BENCH_CALL_CHAIN] - least[PKI_BENCH_CHAIN_IN_MEMORY];
    }
    o->loop_beside = PKI_MIN(certain(loop, &o->unsure), o->loop);
    o->call_beside = PKI_MIN(certain(call, &of_call), o->call);
}

/* ---- the clock ---- */

static void measure_clock(pki_bench_overhead *o, const pki_bench_clock *clock)
{
    double least = INFINITY, cpu = INFINITY, step = INFINITY;
    for (int i = 0; i < 1000; i++) {
        uint64_t first = clock->now(clock->self), second = clock->now(clock->self);
        double between = (double)(second - first);
        least = PKI_MIN(least, between);
        step = between > 0 ? PKI_MIN(step, between) : step;
    }
    for (int i = 0; i < 100; i++) {
        uint64_t first = clock->cpu(clock->self);
        clock->now(clock->self);
        clock->now(clock->self);
        cpu = PKI_MIN(cpu, (double)(clock->cpu(clock->self) - first));
    }
    o->clock = least;
    o->cpu_clock = cpu;
    o->step = isfinite(step) ? step : 1;
}

void pki_bench_overhead_measure(pki_bench_overhead *overhead, const pki_bench_clock *clock,
                                const pki_bench_loops *loops)
{
    measure_clock(overhead, clock);
    measure_loops(overhead, clock, loops);
}

double pki_bench_subtract_loop(double taken, double beside)
{
    return taken > beside ? taken - beside : 0;
}

/* ---- the loops that the harness measures itself by, each at several places ---- */

/* Overhead.h. */

/* So many bytes behind the begin of a cache line, and of what a processor fetches at once. */
#if defined(__x86_64__) || defined(__i386__)
#define NOP_BYTES "1"
#else
#define NOP_BYTES "4"
#endif
#define PLACE(bytes)                                                                               \
    __asm__ volatile(".p2align 6\n\t.rept " #bytes "/" NOP_BYTES "\n\tnop\n\t.endr");

#define TIMES(n) PK_BENCH_UNROLLED_ for (uint64_t left = (n); left; left--)

/* A link of the chain: the compiler has to go through the register. */
#define LINK(x)                                                                                    \
    x *= 3;                                                                                        \
    __asm__ volatile("" : "+r"(x));
#define CHAIN(x) LINK(x) LINK(x) LINK(x) LINK(x)
#define CHAINS(x) CHAIN(x) CHAIN(x) CHAIN(x) CHAIN(x)
#define MANY 16 /* chains in a row, so that the loop around them is next to nothing */

static uint64_t chain_state = 1;

/* Stands where the compiler cannot see what is called. */
static void (*volatile called)(void *);
static uint64_t in_memory = 1;

static void nothing(void *arg)
{
    (void)arg;
    __asm__ volatile("");
}

static void chain(void *arg)
{
    uint64_t *x = arg, y = *x;
    CHAIN(y)
    *x = y;
}

#define LOOPS_AT(place)                                                                            \
    static void loop_empty_##place(uint64_t turns)                                                 \
    {                                                                                              \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        __asm__ volatile("");                                                                      \
    }                                                                                              \
    static void loop_chain_##place(uint64_t turns)                                                 \
    {                                                                                              \
        uint64_t x = chain_state;                                                                  \
        PLACE(place)                                                                               \
        TIMES(turns){CHAIN(x)} chain_state = x;                                                    \
    }                                                                                              \
    static void chain_##place(uint64_t turns)                                                      \
    {                                                                                              \
        uint64_t x = chain_state;                                                                  \
        PLACE(place)                                                                               \
        for (uint64_t left = turns / MANY; left; left--) {                                         \
            CHAINS(x) CHAINS(x) CHAINS(x) CHAINS(x)                                                \
        }                                                                                          \
        chain_state = x;                                                                           \
    }                                                                                              \
    static void call_##place(uint64_t turns, void (*function)(void *))                             \
    {                                                                                              \
        called = function;                                                                         \
        void (*fn)(void *) = called;                                                               \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        fn(&in_memory);                                                                            \
    }                                                                                              \
    static void call_empty_##place(uint64_t turns)                                                 \
    {                                                                                              \
        call_##place(turns, nothing);                                                              \
    }                                                                                              \
    static void call_chain_##place(uint64_t turns)                                                 \
    {                                                                                              \
        call_##place(turns, chain);                                                                \
    }                                                                                              \
    static void chain_in_memory_##place(uint64_t turns)                                            \
    {                                                                                              \
        volatile uint64_t *x = &in_memory;                                                         \
        PLACE(place)                                                                               \
        TIMES(turns)                                                                               \
        {                                                                                          \
            uint64_t y = *x;                                                                       \
            CHAIN(y)                                                                               \
            *x = y;                                                                                \
        }                                                                                          \
    }

LOOPS_AT(0)
LOOPS_AT(16)
LOOPS_AT(32)
LOOPS_AT(48)

#define PLACES(name)                                                                               \
    {                                                                                              \
        name##_0, name##_16, name##_32, name##_48                                                  \
    }

const pki_bench_loops pki_bench_own_loops = {
    .run = {[PKI_BENCH_LOOP_EMPTY] = PLACES(loop_empty),
            [PKI_BENCH_LOOP_CHAIN] = PLACES(loop_chain),
            [PKI_BENCH_CHAIN] = PLACES(chain),
            [PKI_BENCH_CALL_EMPTY] = PLACES(call_empty),
            [PKI_BENCH_CALL_CHAIN] = PLACES(call_chain),
            [PKI_BENCH_CHAIN_IN_MEMORY] = PLACES(chain_in_memory)},
};
