/* tests/unit/script_clock.h - time as a test wants it: it passes where the test says, and each
 * reading takes so much. No test here waits for anything, or depends on how fast the machine is. */
#ifndef SCRIPT_CLOCK_H
#define SCRIPT_CLOCK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "bench/case.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"

static struct {
    double now, cpu;  /* ns */
    double read_cost; /* of a reading, in both */
    double step;      /* what now() is rounded down to */
} script;

static uint64_t script_now(void *self)
{
    (void)self;
    script.now += script.read_cost;
    script.cpu += script.read_cost;
    return script.step > 0 ? (uint64_t)(floor(script.now / script.step) * script.step)
                           : (uint64_t)script.now;
}

static uint64_t script_cpu(void *self)
{
    (void)self;
    return (uint64_t)script.cpu;
}

static void pass(double ns)
{
    script.now += ns;
    script.cpu += ns;
}

static const pki_bench_clock script_clock = {script_now, script_cpu, NULL};
static pki_bench_engine engine;

/* A reading takes 20 ns, in steps of 1, and the loops nothing. */
static int start_script(void **state)
{
    (void)state;
    memset(&script, 0, sizeof script);
    script.now = 1e9;
    script.read_cost = 20;
    memset(&engine, 0, sizeof engine);
    engine.clock = &script_clock;
    engine.overhead.clock = 20;
    engine.overhead.cpu_clock = 40; /* two readings of the other clock lie within */
    engine.overhead.step = 1;
    engine.cold_bytes = 4096;
    return 0;
}

static void close_to(double is, double should, double by)
{
    if (!(fabs(is - should) <= by))
        fail_msg("is %.12g, should be %.12g", is, should);
}

static pki_bench_case make(const char *name, void (*body)(pk_bench_run *),
                           const struct pk_bench_options *options)
{
    struct pk_bench_options whole;
    pki_bench_case c;
    assert_int_equal(pki_bench_options_fill(&whole, options), PK_OK);
    pki_bench_case_init(&c, &engine, name, &whole);
    c.body = body;
    return c;
}

static void run_together(pki_bench_case *cases, size_t count, bool together)
{
    assert_int_equal(pki_bench_run_rounds(cases, count, together, 1, NULL, NULL), PK_OK);
}

static pk_bench_result result_of(pki_bench_case *c)
{
    pk_bench_result r;
    memset(&r, 0, sizeof r);
    assert_true(pki_bench_result_fill(&r, c));
    pki_bench_case_finish(c);
    return r;
}

static pk_bench_result measured(void (*body)(pk_bench_run *),
                                const struct pk_bench_options *options)
{
    pki_bench_case c = make("one", body, options);
    run_together(&c, 1, true);
    return result_of(&c);
}

#endif
