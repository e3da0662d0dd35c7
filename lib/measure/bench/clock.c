#include "measure/bench/clock.h"

#include "base/clock.h"
#include "base/compiler.h"

#include <math.h>

static uint64_t system_now(void *self)
{
    (void)self;
    return pki_monotonic_ns();
}

static uint64_t system_cpu(void *self)
{
    struct timespec now = {0, 0};
    (void)self;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const pki_bench_clock pki_bench_system_clock = {system_now, system_cpu, NULL};

/* ---- the loops ---- */

#define TRIES 15
#define TURNS 20000

/* A link of the chain: the compiler has to go through the register. */
#define LINK(x)                                                                                    \
    x *= 3;                                                                                        \
    __asm__ volatile("" : "+r"(x));
#define CHAIN(x) LINK(x) LINK(x) LINK(x) LINK(x)
#define CHAINS(x) CHAIN(x) CHAIN(x) CHAIN(x) CHAIN(x)
#define MANY 16 /* chains in a row, so that the loop around them is next to nothing */

static uint64_t chain_state = 1;

static void loop_empty(void)
{
    for (uint64_t left = TURNS; left; left--)
        __asm__ volatile("");
}

static void loop_chain(void)
{
    uint64_t x = chain_state;
    for (uint64_t left = TURNS; left; left--) {
        CHAIN(x)
    }
    chain_state = x;
}

static void chain_alone(void)
{
    uint64_t x = chain_state;
    for (uint64_t left = TURNS / MANY; left; left--) {
        CHAINS(x) CHAINS(x) CHAINS(x) CHAINS(x)
    }
    chain_state = x;
}

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

/* Stands where the compiler cannot see what is called. */
static void (*volatile called)(void *);
static uint64_t in_memory = 1;

static void call_with(void (*function)(void *))
{
    called = function;
    void (*fn)(void *) = called;
    for (uint64_t left = TURNS; left; left--)
        fn(&in_memory);
}

static void call_empty(void)
{
    call_with(nothing);
}

static void call_chain(void)
{
    call_with(chain);
}

/* The same work, its operand in memory too, without a call. */
static void chain_in_memory(void)
{
    volatile uint64_t *x = &in_memory;
    for (uint64_t left = TURNS; left; left--) {
        uint64_t y = *x;
        CHAIN(y)
        *x = y;
    }
}

static void (*const loops[])(void) = {loop_empty, loop_chain, chain_alone,
                                      call_empty, call_chain, chain_in_memory};
enum { LOOP_EMPTY, LOOP_CHAIN, CHAIN_ALONE, CALL_EMPTY, CALL_CHAIN, CHAIN_IN_MEMORY, LOOPS };

static void measure_loops(const pki_bench_clock *clock, double fixed, double *least)
{
    for (int i = 0; i < LOOPS; i++)
        least[i] = INFINITY;
    for (int try = 0; try < TRIES; try++)
        for (int i = 0; i < LOOPS; i++) {
            uint64_t start = clock->now(clock->self);
            loops[i]();
            double taken = (double)(clock->now(clock->self) - start) - fixed;
            least[i] = PKI_MIN(least[i], taken / TURNS);
        }
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

void pki_bench_overhead_measure(pki_bench_overhead *overhead, const pki_bench_clock *clock)
{
    double least[LOOPS];
    measure_clock(overhead, clock);
    measure_loops(clock, overhead->clock, least);
    overhead->loop = PKI_MAX(least[LOOP_EMPTY], 0);
    overhead->call = PKI_MAX(least[CALL_EMPTY], 0);
    overhead->loop_beside = PKI_MAX(least[LOOP_CHAIN] - least[CHAIN_ALONE], 0);
    overhead->call_beside = PKI_MAX(least[CALL_CHAIN] - least[CHAIN_IN_MEMORY], 0);
    overhead->loop_beside = PKI_MIN(overhead->loop_beside, overhead->loop);
    overhead->call_beside = PKI_MIN(overhead->call_beside, overhead->call);
}

double pki_bench_without(double taken, double empty, double beside)
{
    if (!(taken > empty))
        return 0;
    if (taken >= 2 * empty)
        return taken - beside;
    return taken - empty + (empty - beside) * (taken - empty) / empty;
}
