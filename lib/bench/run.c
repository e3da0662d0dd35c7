/* What a benchmark's body calls: pk/bench.h. */
#include "bench/case.h"

#include "base/compiler.h"
#include "bench/allocations.h"
#include "bench/team.h"

#include <stdio.h>
#include <string.h>

static uint64_t cpu(const pk_bench_run *run)
{
    const pki_bench_clock *clock = run->owner->engine->clock;
    return clock->cpu(clock->self);
}

static void abandon(pk_bench_run *run, pk_bench_outcome outcome, const char *reason)
{
    run->skipped = true;
    pki_bench_case_abandon(run->owner, outcome, reason);
}

/* ---- the timed part ---- */

/* Reads memory until the caches hold nothing else. It was written once, so it has pages of its own,
 * and nothing has to be written back meanwhile. */
static void chill(const pki_bench_case *c)
{
    const volatile uint64_t *words = c->cold;
    for (size_t i = 0; i < c->cold_words; i += PKI_LINE / sizeof *words)
        (void)words[i];
}

static bool begin_device(pk_bench_run *run)
{
    pki_bench_case *c = run->owner;
    if (!c->timer)
        return true;
    if (pki_bench_queue_hold(c) && (!c->options.cold || c->device->flush(c->timer)) &&
        c->device->begin(c->timer))
        return true;
    abandon(run, PK_BENCH_OUTCOME_FAILED, c->device->why(c->timer));
    return false;
}

uint64_t pk_bench_begin(pk_bench_run *run)
{
    pki_bench_case *c = run->owner;
    if (run->begun && !run->skipped)
        abandon(run, PK_BENCH_OUTCOME_FAILED, "its loop was begun twice in one run");
    if (run->skipped)
        return 0;
    if (c->cold)
        chill(c);
    bool hardware = c->counting_hardware && pki_bench_counters_open(&run->counters);
    run->counting = hardware;
    run->begun = true;
    if (c->team)
        pki_bench_team_meet(c->team);
    if (!begin_device(run))
        return 0;
    if (c->counting_allocations && run->thread == 0)
        pki_bench_allocations_start();
    if (hardware)
        pki_bench_counters_start(&run->counters);
    run->cpu_start = cpu(run);
    run->start = pki_bench_now(run->owner);
    return run->iterations;
}

static void stop_counting(pk_bench_run *run)
{
    if (run->counting) {
        pki_bench_counters_stop(&run->counters);
        pki_bench_counters_read(&run->counters, &run->counted);
        pki_bench_counters_close(&run->counters);
    }
    if (run->owner->counting_allocations && run->thread == 0)
        pki_bench_allocations_stop();
}

void pk_bench_end(pk_bench_run *run)
{
    uint64_t end = pki_bench_now(run->owner), cpu_end = cpu(run);
    if (!run->begun || run->ended)
        return;
    run->end = end;
    run->cpu_end = cpu_end;
    run->ended = true;
    stop_counting(run);
    if (run->pausing) {
        run->paused += end - run->paused_at;
        run->cpu_paused += cpu_end - run->cpu_paused_at;
    }
    pki_bench_case *c = run->owner;
    if (c->timer && !run->skipped && !c->device->end(c->timer))
        abandon(run, PK_BENCH_OUTCOME_FAILED, c->device->why(c->timer));
    pki_bench_queue_release(c, run->iterations);
}

/* ---- pauses: the slow clock is read within, so only one reading of the fast one is timed ---- */

void pk_bench_pause(pk_bench_run *run)
{
    run->paused_at = pki_bench_now(run->owner);
    run->cpu_paused_at = cpu(run);
    if (run->owner->timer)
        abandon(run, PK_BENCH_OUTCOME_FAILED, "a stream's time cannot be paused");
    run->pausing = true;
}

void pk_bench_resume(pk_bench_run *run)
{
    if (!run->pausing)
        return;
    run->pausing = false;
    run->pauses++;
    run->cpu_paused += cpu(run) - run->cpu_paused_at;
    run->paused += pki_bench_now(run->owner) - run->paused_at;
}

void pk_bench_add_time(pk_bench_run *run, double ns)
{
    run->manual += ns;
}

/* ---- what a benchmark sets ---- */

void pk_bench_give_up(pk_bench_run *run, pk_bench_outcome outcome, const char *reason)
{
    abandon(run, outcome == PK_BENCH_OUTCOME_SKIPPED ? outcome : PK_BENCH_OUTCOME_FAILED, reason);
}

int64_t pk_bench_arg(const pk_bench_run *run, unsigned axis)
{
    const pki_bench_arguments *arguments = &run->owner->arguments;
    return axis < arguments->count ? arguments->values[axis] : 0;
}

uint32_t pk_bench_threads(const pk_bench_run *run)
{
    return run->owner->options.threads;
}

uint32_t pk_bench_thread(const pk_bench_run *run)
{
    return run->thread;
}

void *pk_bench_user(const pk_bench_run *run)
{
    return run->owner->options.user;
}

/* ---- what a benchmark asks: thread 0 speaks for all ---- */

void pk_bench_set_work(pk_bench_run *run, uint64_t bytes, uint64_t flops, uint64_t items)
{
    if (run->thread != 0)
        return;
    run->owner->bytes = bytes;
    run->owner->flops = flops;
    run->owner->items = items;
}

void pk_bench_label(pk_bench_run *run, const char *label)
{
    if (run->thread == 0)
        snprintf(run->owner->label, sizeof run->owner->label, "%s", label ? label : "");
}

void pk_bench_add_counter(pk_bench_run *run, const char *name, double value, pk_bench_unit unit)
{
    unsigned i = 0;
    name = name ? name : "";
    while (i < run->figure_count &&
           strncmp(run->figures[i].name, name, sizeof run->figures[i].name - 1) != 0)
        i++;
    if (i == PKI_BENCH_FIGURES) {
        run->figures_lost++;
        return;
    }
    pki_bench_figure *figure = &run->figures[i];
    if (i == run->figure_count) {
        run->figure_count++;
        snprintf(figure->name, sizeof figure->name, "%s", name);
        figure->value = 0;
    }
    figure->value += value;
    figure->unit = unit;
}
