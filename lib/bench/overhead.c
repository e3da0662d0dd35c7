#include "bench/overhead.h"

#include "base/compiler.h"
#include "bench/stats/samples.h"

#include <math.h>

/* ---- the loops ---- */

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
