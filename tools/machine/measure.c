#include "machine/measure.h"

#include "base/compiler.h"
#include "machine/arrays.h"
#include "machine/kernels.h"
#include "machine/rates.h"
#include "memory.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROCESSORS_MOST 4096u

typedef struct turn_work {
    const flops_kernel *flops;
    memory_kernel *memory;
    arrays *all;
    uint64_t turns;
} turn_work;

static void compute(void *user, unsigned member)
{
    const turn_work *w = user;
    (void)member;
    w->flops->run(w->turns);
}

static void add_up(void *user, unsigned member)
{
    (void)member;
    chain_of_additions(((const turn_work *)user)->turns);
}

static void move(void *user, unsigned member)
{
    const turn_work *w = user;
    const array_set *s = &w->all->sets[member];
    for (uint64_t i = 0; i < w->turns; i++)
        w->memory(s->a, s->b, s->c, s->count);
}

static void touch(void *user, unsigned member)
{
    arrays_touch(((turn_work *)user)->all, member);
}

/* ---- one limit ---- */

static void measure(team *t, team_work *work, turn_work *w, double worth, unsigned rounds,
                    pki_limit *limit)
{
    const rates_work rates = {work, w, &w->turns, worth};
    limit->all = t->count > 1;
    rates_measure(t, &rates, rounds, limit);
}

static void add_limit(machine_found *found, const char *name, bool all, pki_limit *limit)
{
    snprintf(limit->name, sizeof limit->name, "%s", name);
    limit->all = all;
    pki_machine_add(&found->machine, limit);
}

static void measure_memory(team *t, bool all, arrays *a, unsigned rounds, machine_found *found)
{
    /* Bytes of an element, as STREAM counts them: what the loop names, not what a cache fetches
     * before it can be written to. */
    const struct {
        const char *name;
        memory_kernel *kernel;
        double bytes;
    } loops[] = {
        {PKI_LIMIT_COPY, kernel_copy, 16},
        {PKI_LIMIT_TRIAD, kernel_triad, 24},
        {PKI_LIMIT_STREAMED, kernel_triad_streamed, 24},
    };
    turn_work w = {.all = a};
    team_do(t, touch, &w);
    for (size_t i = 0; i < PKI_COUNT_OF(loops); i++) {
        pki_limit limit;
        w.memory = loops[i].kernel;
        if (!w.memory)
            continue;
        measure(t, move, &w, loops[i].bytes * (double)arrays_count(a), rounds, &limit);
        add_limit(found, loops[i].name, all, &limit);
    }
}

static void measure_flops(team *t, bool all, unsigned rounds, machine_found *found)
{
    for (size_t i = 0; i < flops_kernel_count; i++) {
        const flops_kernel *k = &flops_kernels[i];
        turn_work w = {.flops = k};
        pki_limit limit;
        if (!k->has())
            continue;
        measure(t, compute, &w, (double)k->operations * t->count, rounds, &limit);
        add_limit(found, k->name, all, &limit);
    }
}

static void measure_clock(team *t, unsigned rounds, machine_found *found)
{
    turn_work w = {.turns = 0};
    pki_limit limit;
    if (!chain_of_additions)
        return;
    measure(t, add_up, &w, 1, rounds, &limit);
    found->clock_hz = (double)limit.best;
}

/* ---- one processor, and all ---- */

static bool measure_on(const int *processors, unsigned count, bool all, const machine_wish *wish,
                       machine_found *found, complaint *why)
{
    team t;
    arrays a;
    if (!arrays_make(&a, count, found->array_bytes, why))
        return false;
    if (!team_make(&t, processors, count, why))
        return false;
    if (!all)
        measure_clock(&t, wish->rounds, found);
    measure_flops(&t, all, wish->rounds, found);
    measure_memory(&t, all, &a, wish->rounds, found);
    /* The worse of the two. */
    if (t.wanted)
        found->on_processor = PKI_MIN(found->on_processor, (double)t.had / (double)t.wanted);
    team_finish(&t);
    arrays_free(&a);
    return true;
}

static int processor_here(const int *processors, unsigned count)
{
    int here = sched_getcpu();
    for (unsigned i = 0; i < count; i++)
        if (processors[i] == here)
            return here;
    return processors[0];
}

bool machine_measure(const machine_wish *wish, machine_found *found, complaint *why)
{
    int *processors = memory_zeroed(PROCESSORS_MOST, sizeof *processors);
    pki_machine_here(&found->machine);
    pki_bench_environment_read(&found->environment, "");
    found->machine.measured = (uint64_t)time(NULL);
    found->processors = team_processors(processors, PROCESSORS_MOST);
    found->on_processor = 1;
    arrays_choose(found, wish->memory_mib);
    int here = processor_here(processors, found->processors);
    bool done = measure_on(&here, 1, false, wish, found, why) &&
                measure_on(processors, found->processors, true, wish, found, why);
    free(processors);
    return done;
}
