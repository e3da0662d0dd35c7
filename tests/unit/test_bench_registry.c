/* Registered benchmarks, and the command line of a program of them. */
#include <pk/bench.h>
#include <pk/pk.h>

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "bench/bench.h"
#include "bench/options.h"
#include "bench/registry.h"

/* ---- registered benchmarks ---- */

/* Their parameters and names, options, driving them from outside, threads. */

/* -- benchmarks: their order is the list's -- */

static int64_t seen_arguments[3];

PK_BENCH(plain)
{
    PK_BENCH_LOOP {
        pk_clobber();
    }
}

PK_BENCH(product)
{
    for (unsigned i = 0; i < 3; i++)
        seen_arguments[i] = pk_bench_arg(bench, i);
    PK_BENCH_LOOP {
        pk_clobber();
    }
}
PK_BENCH_ARGS(product, "", 7, -3)
PK_BENCH_RANGE(product, "n", 8, 100, 4)
PK_BENCH_STEPS(product, "k", 1, 6, 2)

static unsigned in_loop, most_in_loop, seen_threads;
static uint64_t numbers_seen;

PK_BENCH(crowd)
{
    pki_fetch_add(&numbers_seen, (uint64_t)1 << (8 * pk_bench_thread(bench)));
    pki_store(&seen_threads, pk_bench_threads(bench));
    PK_BENCH_LOOP {
        unsigned here = __atomic_add_fetch(&in_loop, 1, __ATOMIC_SEQ_CST);
        if (here > pki_load(&most_in_loop))
            pki_store(&most_in_loop, here);
        while (pki_load(&most_in_loop) < 3)
            sched_yield(); /* nobody leaves before all have come: they start together */
        __atomic_sub_fetch(&in_loop, 1, __ATOMIC_SEQ_CST);
    }
}
PK_BENCH_THREADS(crowd, 3)
PK_BENCH_OPTIONS(crowd)
{
    options->iterations = 5;
    options->bytes = 10;
}

/* One of its threads does not come. */
PK_BENCH(absent)
{
    if (pk_bench_thread(bench) == 1)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "not on this thread");
    PK_BENCH_LOOP {
        pk_clobber();
    }
}
PK_BENCH_THREADS(absent, 2)

/* -- the list -- */

static size_t find(const char *name)
{
    for (size_t i = 0; i < pk_bench_instance_count_(); i++)
        if (strcmp(pk_bench_instance_name_(i), name) == 0)
            return i;
    fail_msg("there is no \"%s\"", name);
    return 0;
}

static void names(void **state)
{
    (void)state;
    /* 2 values, 8 32 100, 1 3 5; the last one turns fastest */
    assert_int_equal(pk_bench_instance_count_(), 1 + 2 * 3 * 3 + 1 + 1);
    assert_string_equal(pk_bench_instance_name_(0), "plain");
    assert_string_equal(pk_bench_instance_name_(1), "product/7/n:8/k:1");
    assert_string_equal(pk_bench_instance_name_(2), "product/7/n:8/k:3");
    assert_string_equal(pk_bench_instance_name_(4), "product/7/n:32/k:1");
    assert_string_equal(pk_bench_instance_name_(9), "product/7/n:100/k:5");
    assert_string_equal(pk_bench_instance_name_(18), "product/-3/n:100/k:5");
    assert_string_equal(pk_bench_instance_name_(19), "crowd/threads:3");
    assert_null(pk_bench_instance_name_(1000));
    const pki_bench_instance *last = pki_bench_instance_at(18);
    assert_int_equal(last->family, 1);
    assert_int_equal(last->member, 17);
}

/* -- driving -- */

static void arguments_arrive(void **state)
{
    (void)state;
    pki_bench_handle *handle;
    pki_bench_sample sample;
    assert_int_equal(pk_bench_open_(find("product/-3/n:32/k:5"), &handle), PK_OK);
    assert_int_equal(pk_bench_take_(handle, 1000, &sample), PK_OK);
    assert_int_equal(sample.iterations, 1000);
    assert_true(sample.wall >= 0 && sample.time >= 0);
    assert_int_equal(seen_arguments[0], -3);
    assert_int_equal(seen_arguments[1], 32);
    assert_int_equal(seen_arguments[2], 5);
    pk_bench_close_(handle);
}

static void iterations_are_found(void **state)
{
    (void)state;
    pki_bench_handle *handle;
    pki_bench_sample sample = {0};
    /* Of some nanoseconds, so many; but one that is interrupted each time takes long enough. */
    for (int i = 0; i < 20 && sample.iterations <= 1; i++) {
        assert_int_equal(pk_bench_open_(find("plain"), &handle), PK_OK);
        assert_int_equal(pk_bench_take_(handle, 0, &sample), PK_OK);
        pk_bench_close_(handle);
    }
    assert_true(sample.iterations > 1);
    pk_bench_close_(NULL);
    assert_int_equal(pk_bench_open_(1000, &handle), PK_ENOENT);
    assert_null(handle);
}

static void threads_start_together(void **state)
{
    (void)state;
    pki_bench_handle *handle;
    pki_bench_sample sample;
    in_loop = most_in_loop = 0;
    numbers_seen = 0;
    assert_int_equal(pk_bench_open_(find("crowd/threads:3"), &handle), PK_OK);
    for (int i = 0; i < 20; i++)
        assert_int_equal(pk_bench_take_(handle, 5, &sample), PK_OK);
    pk_bench_close_(handle);
    assert_int_equal(most_in_loop, 3);
    assert_int_equal(seen_threads, 3);
    assert_true(numbers_seen == 20 * 0x010101); /* each number once per sample */
}

static void a_thread_that_stays_away_holds_up_nobody(void **state)
{
    (void)state;
    pki_bench_handle *handle;
    pki_bench_sample sample;
    assert_int_equal(pk_bench_open_(find("absent/threads:2"), &handle), PK_OK);
    assert_int_equal(pk_bench_take_(handle, 10, &sample), PK_ENOTSUP);
    assert_non_null(strstr(pk_error_message(), "not on this thread"));
    pk_bench_close_(handle);
}

/* -- options -- */

static void the_command_line_wins(void **state)
{
    (void)state;
    pki_bench_case c;
    struct pk_bench_options over = {.size = sizeof over, .iterations = 9, .max_samples = 3};
    const pki_bench_instance *crowd = pki_bench_instance_at(find("crowd/threads:3"));
    const pki_bench_engine *engine = pki_bench_engine_get();
    assert_int_equal(pki_bench_instance_case(crowd, engine, NULL, &c), PK_OK);
    assert_int_equal(c.options.iterations, 5);
    assert_int_equal(c.options.threads, 3);
    assert_int_equal(c.bytes, 10);
    assert_int_equal(pki_bench_instance_case(crowd, engine, &over, &c), PK_OK);
    assert_int_equal(c.options.iterations, 9);
    assert_int_equal(c.options.min_samples, 3);
    over = (struct pk_bench_options){.size = sizeof over, .cold = 1};
    assert_int_equal(pki_bench_instance_case(crowd, engine, &over, &c), PK_OK);
    assert_int_equal(c.options.iterations, 1);
}

/* -- registration while the program runs -- */

static void body(pk_bench_run *bench)
{
    for (uint64_t n = pk_bench_begin(bench); n; n--)
        pk_clobber();
    pk_bench_end(bench);
}

static void added(void **state)
{
    (void)state;
    size_t before = pk_bench_instance_count_();
    char name[] = "added";
    assert_int_equal(pk_bench_add(name, body, pk_bench_options(.iterations = 4)), PK_OK);
    name[0] = 'x';
    assert_int_equal(pk_bench_instance_count_(), before + 1);
    assert_string_equal(pk_bench_instance_name_(before), "added");
    assert_int_equal(pk_bench_add(NULL, body, NULL), PK_EINVAL);
    assert_int_equal(pk_bench_add("", body, NULL), PK_EINVAL);
    assert_int_equal(pk_bench_add("x", NULL, NULL), PK_EINVAL);
    assert_int_equal(pk_bench_add("x", body, pk_bench_options(.precision = 2)), PK_EINVAL);
    assert_int_equal(pk_bench_instance_count_(), before + 1);
}

/* -- parameters that make no list -- */

static pk_status expand_with(uint32_t kind, const int64_t *values, uint32_t count)
{
    static pk_bench_entry entries[16];
    static pk_bench_axis axes[16];
    static unsigned used;
    size_t all;
    pk_bench_entry *entry = &entries[used];
    pk_bench_axis *axis = &axes[used++];
    *entry = (pk_bench_entry){.name = "odd", .body = body, .compiler = "", .flags = ""};
    *axis = (pk_bench_axis){.key = "n", .kind = kind, .count = count, .values = values};
    pk_bench_attach_(entry, axis);
    pk_bench_register_(entry);
    pk_status status = pki_bench_instances(&all);
    axis->kind = PK_BENCH_AXIS_LIST_; /* so that those that follow can be listed */
    axis->count = 1;
    assert_int_equal(pki_bench_instances(&all), PK_OK);
    return status;
}

static void odd_parameters_are_refused(void **state)
{
    (void)state;
    const int64_t down[] = {8, 4, 2}, no_step[] = {1, 5, 0}, once[] = {1, 5, 1}, zero[] = {0, 8, 2},
                  many[] = {1, 100000, 1}, huge[] = {1, INT64_MAX, 2}, none[] = {0};
    assert_int_equal(expand_with(PK_BENCH_AXIS_TIMES_, down, 3), PK_EINVAL);
    assert_int_equal(expand_with(PK_BENCH_AXIS_TIMES_, once, 3), PK_EINVAL);
    assert_int_equal(expand_with(PK_BENCH_AXIS_TIMES_, zero, 3), PK_EINVAL);
    assert_int_equal(expand_with(PK_BENCH_AXIS_STEPS_, no_step, 3), PK_EINVAL);
    assert_int_equal(expand_with(PK_BENCH_AXIS_STEPS_, many, 3), PK_EINVAL);
    assert_int_equal(expand_with(PK_BENCH_AXIS_THREADS_, none, 1), PK_EINVAL);
    assert_int_equal(expand_with(PK_BENCH_AXIS_TIMES_, huge, 3),
                     PK_OK); /* 1, 2, 4, ... 2^62, the end */
}

/* -- pk_bench -- */

static uint64_t called;

static void count_call(void *arg)
{
    assert_ptr_equal(arg, &called);
    called++;
}

static void one_function(void **state)
{
    (void)state;
    pk_bench_result r = PK_BENCH_RESULT;
    struct pk_bench_options o = {.size = sizeof o, .iterations = 100, .max_samples = 12};
    assert_int_equal(pk_bench("count", count_call, &called, &o, &r), PK_OK);
    assert_int_equal(r.count, 12);
    assert_int_equal(r.size, sizeof r);
    assert_int_equal(called, 100 * 12 + r.warmup_iterations);
    assert_true(r.min <= r.low && r.low <= r.median && r.median <= r.high && r.high <= r.max);
    assert_true(*r.verdict_text);
    pk_bench_result_release(&r);
    assert_null(r.samples);
    pk_bench_result_release(&r);
    pk_bench_result_release(NULL);
    assert_int_equal(pk_bench(NULL, count_call, &called, &o, NULL), PK_OK);
    assert_int_equal(pk_bench("x", NULL, NULL, NULL, NULL), PK_EINVAL);
    r.size = 4;
    assert_int_equal(pk_bench("x", count_call, &called, &o, &r), PK_EINVAL);
}

static pk_status inner;

static void measures(void *arg)
{
    (void)arg;
    inner = pk_bench("inner", count_call, &called, NULL, NULL);
}

static void a_benchmark_measures_no_benchmark(void **state)
{
    (void)state;
    struct pk_bench_options o = {.size = sizeof o, .iterations = 1, .max_samples = 2};
    assert_int_equal(pk_bench("outer", measures, NULL, &o, NULL), PK_OK);
    assert_int_equal(inner, PK_EBUSY);
}

static const struct CMUnitTest bench_registry_tests[] = {
    cmocka_unit_test(names),
    cmocka_unit_test(arguments_arrive),
    cmocka_unit_test(iterations_are_found),
    cmocka_unit_test(threads_start_together),
    cmocka_unit_test(a_thread_that_stays_away_holds_up_nobody),
    cmocka_unit_test(the_command_line_wins),
    cmocka_unit_test(added),
    cmocka_unit_test(odd_parameters_are_refused),
    cmocka_unit_test(one_function),
    cmocka_unit_test(a_benchmark_measures_no_benchmark),
};

/* ---- the command line of a program of benchmarks ---- */

static pki_bench_args args;

/* Words are separated by blanks. */
static bool parse(const char *line)
{
    static char words[512];
    char *argv[64] = {(char[]){"program"}}, *rest = NULL;
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return pki_bench_args_parse(&args, argc, argv);
}

static void everything(void **state)
{
    (void)state;
    assert_true(parse("--filter ^sum/ --list --repetitions 9 --precision 0.5% --confidence 0.99"
                      " --min-time 0.5 --max-time=3s --min-samples 7 --max-samples 70"
                      " --sample-time 50us --iterations 12 --max-warmup 20ms --hardware"
                      " --allocations --alone --seed 42 --json a --csv b --markdown c --junit -"
                      " --histogram --quiet"));
    assert_string_equal(args.filter, "^sum/");
    assert_true(args.list && args.alone && args.quiet && !args.help);
    assert_int_equal(args.repetitions, 9);
    assert_true(args.over.precision == 0.005 && args.over.confidence == 0.99);
    assert_int_equal(args.over.min_time, 500000000);
    assert_int_equal(args.over.max_time, 3000000000);
    assert_int_equal(args.over.min_samples, 7);
    assert_int_equal(args.over.max_samples, 70);
    assert_int_equal(args.over.sample_time, 50000);
    assert_int_equal(args.over.iterations, 12);
    assert_int_equal(args.over.max_warmup, 20000000);
    assert_int_equal(args.over.hardware, 1);
    assert_int_equal(args.over.allocations, 1);
    assert_int_equal(args.over.seed, 42);
    assert_string_equal(args.files[PKI_BENCH_JSON], "a");
    assert_string_equal(args.files[PKI_BENCH_CSV], "b");
    assert_string_equal(args.files[PKI_BENCH_MARKDOWN], "c");
    assert_string_equal(args.files[PKI_BENCH_JUNIT], "-");
    assert_int_equal(args.picture, PKI_BENCH_HISTOGRAM);
}

static void nothing(void **state)
{
    (void)state;
    assert_true(parse(""));
    assert_int_equal(args.repetitions, 1);
    assert_null(args.filter);
    assert_int_equal(args.over.size, sizeof args.over);
    assert_true(parse("--cold -h --unqueued --sparkline"));
    assert_true(args.over.unqueued == 1);
    assert_true(args.help && args.over.cold == 1 && args.picture == PKI_BENCH_SPARKLINE);
}

static void refused(const char *line, const char *why)
{
    if (parse(line))
        fail_msg("%s: taken", line);
    if (!strstr(args.complaint, why))
        fail_msg("%s: \"%s\" says nothing of \"%s\"", line, args.complaint, why);
}

static void complaints(void **state)
{
    (void)state;
    refused("--fliter x", "no option \"--fliter\"");
    refused("--filte x", "no option");
    refused("--filters x", "no option");
    refused("sum", "\"sum\" is no option");
    refused("-x", "is no option");
    refused("--", "no option");
    refused("--json", "needs a value");
    refused("--json=", "is no value");
    refused("--list=yes", "no option \"--list=yes\"");
    refused("--repetitions 0", "is no value");
    refused("--repetitions -1", "is no value");
    refused("--repetitions 1.5", "is no value");
    refused("--repetitions 99999999999", "is no value");
    refused("--repetitions 1001", "above 1000");
    refused("--seed 99999999999999999999", "is no value");
    refused("--min-time x", "is no value");
    refused("--min-time 0", "is no value");
    refused("--min-time 5d", "is no value");
    refused("--min-time 0x5s", "is no value");
    refused("--min-time -1s", "is no value");
    refused("--min-time 1e300", "is no value");
    refused("--min-time nan", "is no value");
    refused("--precision 100%", "is no value");
    refused("--precision 1%%", "is no value");
    refused("--precision 1", "is no value");
    refused("--confidence 0.2", "below 50%");
    refused("--min-time 3s --max-time 2s", "below --min-time");
    refused("--min-samples 3 --max-samples 2", "below --min-samples");
    refused("--cold --iterations 2", "one iteration");
    refused("--json - --csv -", "only one");
}

/* Every option is in the help, and no other. */
static void help(void **state)
{
    (void)state;
    char *text = NULL, word[64];
    size_t size, found = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    pki_bench_args_help("program", file);
    fclose(file);
    for (const char *at = text; (at = strstr(at, "\n  --")); at++) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 3, " ,"), at + 3);
        bool taken = parse(word);
        assert_true(taken || strstr(args.complaint, "needs a value"));
        found++;
    }
    assert_int_equal(found, 27);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 100)
            fail_msg("%zu columns: %s", strlen(line), line);
    free(text);
}

static const struct CMUnitTest bench_args_tests[] = {
    cmocka_unit_test(everything),
    cmocka_unit_test(nothing),
    cmocka_unit_test(complaints),
    cmocka_unit_test(help),
};

int main(void)
{
    int failed = cmocka_run_group_tests(bench_registry_tests, NULL, NULL);
    failed += cmocka_run_group_tests(bench_args_tests, NULL, NULL);
    return failed;
}
