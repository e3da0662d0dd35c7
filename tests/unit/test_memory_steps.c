/* Memory at the ends of steps: a counter in the trace where costs=memory asks for it, nothing where
 * it does not. */
#include "folder.h"

#include <errno.h>

#include <pk/pk.h>

#include "base/clock.h"
#include "session/costs/memory_steps.h"
#include "session/windows/metrics_costs.h"

#define STEPS 12
#define BLOCK (4u << 20)
#define SAMPLE "\"name\":\"memory.resident\",\"pid\""

/* Longer than what is between two readings, however slow the machine is. */
static void work(void)
{
    uint64_t until = pki_monotonic_ns() + 2 * (uint64_t)PKI_MEMORY_STEP_LEAST;
    while (pki_monotonic_ns() < until)
        ;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

static char *trace_of(const char *costs, bool short_steps)
{
    size_t size;
    assert_int_equal(
        pk_start(pk_options(.costs = costs, .backends = "none", .trace_path = "run.json")), PK_OK);
    errno = 99;
    for (int i = 0; i < STEPS; i++) {
        if (!short_steps)
            work();
        pk_step(1);
    }
    assert_int_equal(errno, 99);
    assert_int_equal(pk_stop(), PK_OK);
    return read_file("run.json", &size);
}

static void each_long_step_has_a_sample(void **state)
{
    (void)state;
    char *trace = trace_of("memory", false);
    assert_true(count(trace, SAMPLE) >= STEPS); /* and looks while none ended */
    free(trace);
}

static void none_without(void **state)
{
    (void)state;
    char *trace = trace_of("io", false);
    assert_int_equal(count(trace, SAMPLE), 0);
    free(trace);
    trace = trace_of(NULL, false);
    assert_int_equal(count(trace, SAMPLE), 0);
    free(trace);
}

/* The sample that a step's end left, with more memory in use than at the one before. */
static double last_value(const char *trace)
{
    double last = 0;
    for (const char *at = trace; (at = strstr(at, SAMPLE)); at++) {
        const char *value = strstr(at, "\"bytes\":");
        assert_non_null(value);
        last = strtod(value + 8, NULL);
    }
    return last;
}

static void values_are_the_kernels(void **state)
{
    size_t size;
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.costs = "memory", .backends = "none", .trace_path = "run.json")),
        PK_OK);
    char *volatile block = malloc(BLOCK);
    assert_non_null(block);
    memset(block, 1, BLOCK);
    work();
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    char *trace = read_file("run.json", &size);
    assert_true(last_value(trace) > BLOCK);
    free(trace);
    free(block);
}

/* What it takes is in perfkit's own account, and a session of its own begins at 0. */
static void it_is_in_the_account(void **state)
{
    (void)state;
    free(trace_of("memory", false));
    assert_true(pki_memory_steps_spent() > 0);
    free(trace_of(NULL, true));
    assert_int_equal(pki_memory_steps_spent(), 0);
}

/* In metrics it is a family of its own, and takes no counter's place among the first 16. */
static void metrics_keep_the_programs_counters(void **state)
{
    static char names[16][24];
    static pk_counter counters[16];
    size_t size;
    (void)state;
    assert_int_equal(
        pk_start(pk_options(.costs = "memory", .backends = "none", .metrics_path = "run.prom")),
        PK_OK);
    work();
    pk_step(1); /* memory.resident is the first */
    for (int i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "of the program %d", i);
        counters[i] = (pk_counter)PK_COUNTER(names[i], "");
        pk_counter_set(&counters[i], i);
    }
    assert_int_equal(pk_stop(), PK_OK);
    char *text = read_file("run.prom", &size);
    assert_int_equal(count(text, "name=\"of the program "), 16);
    assert_int_equal(count(text, "name=\"memory.resident\""), 0);
    assert_int_equal(count(text, "\npk_process_resident_memory_bytes{"), 1);
    free(text);
}

static void counters_with_a_family_of_their_own(void **state)
{
    static pki_metrics_costs none, some = {.memory.looks = 1,
                                           .allocated_known = true,
                                           .place_count = 2,
                                           .places = {{.name = "gpu1"}, {.name = "host"}}};
    static const char *const have[] = {"memory.resident", "memory.allocated", "memory.pinned",
                                       "gpu1.allocated", "gpu1.pool_reserved"};
    static const char *const lack[] = {"gpu10.allocated", "gpu1.memory", "gpu0.allocated",
                                       "host.memory",     "gpu1",        "straggler"};
    (void)state;
    for (size_t i = 0; i < PKI_COUNT_OF(have); i++) {
        assert_true(pki_metrics_costs_have(&some, have[i]));
        assert_false(pki_metrics_costs_have(&none, have[i]));
    }
    for (size_t i = 0; i < PKI_COUNT_OF(lack); i++)
        assert_false(pki_metrics_costs_have(&some, lack[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_long_step_has_a_sample, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(none_without, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(values_are_the_kernels, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(it_is_in_the_account, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(metrics_keep_the_programs_counters, enter_folder,
                                        leave_folder),
        cmocka_unit_test(counters_with_a_family_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
