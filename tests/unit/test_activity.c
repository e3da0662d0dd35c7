/* What backends hand over, in a session: into its report and its statistics; from one session to
 * the next, and not into a child. */
#include "document.h"
#include "session.h"

#include <sys/wait.h>

#include "core/names.h"
#include "session/activity.h"
#include "session/session.h"

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_counter memory = PK_COUNTER("gpu0.memory", "bytes");

static int start_report(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.report_path = "run.json", .backends = "none"));
}

static int stop_report(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static uint64_t now(void)
{
    return pki_activity_ns_of_ticks(pki_activity_ticks());
}

/* As within a backend's collect. */
static void hand_over(pki_activity_kind kind, uint64_t start, uint64_t end)
{
    pki_activity a = {.kind = kind,
                      .name = "thing",
                      .name_length = 5,
                      .start = start,
                      .end = end,
                      .region = pki_region_id(&work)};
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_add(&a);
    pthread_mutex_unlock(&pki_drain_lock);
}

static void one_step(pki_activity_kind kind)
{
    uint64_t start = now();
    spend();
    uint64_t end = now();
    hand_over(kind, start, end);
    pk_step(1);
}

static json_t *report(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("run.json");
}

static uint64_t number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(member(object, key));
}

static const json_t *figure(const json_t *report, const char *name)
{
    const json_t *gpu = json_array_get(member(report, "gpus"), 0);
    return member(member(gpu, "per_step"), name);
}

static void into_the_report(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        one_step(PKI_ACTIVITY_KERNEL);
    json_t *r = report();
    assert_int_equal(json_array_size(member(r, "gpus")), 1);
    assert_int_equal(number(figure(r, "kernels"), "count"), 9); /* the first step is warm-up */
    assert_int_equal(number(figure(r, "kernels"), "min"), 1);
    assert_int_equal(number(member(r, "activities"), "count"), 10);
    const json_t *kernel = json_array_get(member(r, "kernels"), 0);
    assert_string_equal(json_string_value(member(kernel, "name")), "thing");
    assert_string_equal(json_string_value(member(kernel, "region")), "work");
    json_decref(r);
}

static void spans_have_statistics_of_their_own(void **state)
{
    (void)state;
    hand_over(PKI_ACTIVITY_SPAN, 1000, 4000);
    assert_int_equal(pk_region_stats(&work, &the_stats), PK_ENOENT);
    json_t *r = report();
    const json_t *region = json_array_get(member(r, "regions"), 0);
    assert_int_equal(number(member(region, "gpu"), "sum"), 3000);
    assert_int_equal(number(member(region, "time"), "count"), 0);
    json_decref(r);
}

/* A source that has begun and tells late: its steps wait for it. */
static void steps_wait_for_their_sources(void **state)
{
    uint64_t starts[10];
    (void)state;
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0);
    pki_activity_begins(PKI_SOURCE_CUPTI, 0);
    pki_activity_measures(0, true);
    pthread_mutex_unlock(&pki_drain_lock);
    for (int i = 0; i < 10; i++) {
        starts[i] = now();
        spend();
        pk_step(1);
        pk_flush();
        pthread_mutex_lock(&pki_drain_lock);
        pki_activity_finalised(PKI_SOURCE_CUDA, now()); /* the other one has not */
        pthread_mutex_unlock(&pki_drain_lock);
    }
    for (int i = 0; i < 10; i++)
        hand_over(PKI_ACTIVITY_KERNEL, starts[i], starts[i] + 100);
    json_t *r = report();
    assert_int_equal(number(member(r, "activities"), "late"), 0);
    assert_int_equal(number(figure(r, "kernels"), "sum"), 9);
    json_decref(r);
}

static void late_ones_are_counted(void **state)
{
    (void)state;
    hand_over(PKI_ACTIVITY_KERNEL, 1, 2);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0);
    pki_activity_begins(PKI_SOURCE_CUPTI, 0);
    pthread_mutex_unlock(&pki_drain_lock);
    spend();
    uint64_t before = now();
    pk_step(1);
    assert_int_equal(pk_flush(), PK_OK);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_ends(PKI_SOURCE_CUPTI); /* nobody waits for it any more */
    pki_activity_finalised(PKI_SOURCE_CUDA, now());
    pthread_mutex_unlock(&pki_drain_lock);
    hand_over(PKI_ACTIVITY_KERNEL, before - 1, before);
    json_t *r = report();
    assert_int_equal(number(member(r, "activities"), "late"), 1);
    json_decref(r);
}

static void memory_in_use(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&pki_drain_lock);
        pki_activity_counter(&memory, 1000 + i);
        pthread_mutex_unlock(&pki_drain_lock);
        one_step(PKI_ACTIVITY_KERNEL);
    }
    json_t *r = report();
    assert_int_equal(number(figure(r, "memory"), "count"), 9);
    assert_int_equal(number(figure(r, "memory"), "max"), 1009);
    json_decref(r);
}

static void nothing_from_the_session_before(void **state)
{
    (void)state;
    one_step(PKI_ACTIVITY_KERNEL);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_begins(PKI_SOURCE_CUDA, 0); /* and never says more */
    pthread_mutex_unlock(&pki_drain_lock);
    json_decref(report());
    for (int round = 0; round < 3; round++) {
        assert_int_equal(pk_start(pk_options(.report_path = "run.json", .backends = "none")),
                         PK_OK);
        for (int i = 0; i < 3; i++)
            one_step(PKI_ACTIVITY_MEMSET);
        json_t *r = report();
        assert_int_equal(number(member(r, "activities"), "count"), 3);
        assert_int_equal(json_array_size(member(r, "kernels")), 0);
        assert_int_equal(number(json_array_get(member(r, "gpus"), 0), "memsets"), 3);
        json_decref(r);
    }
}

/* In the child nothing is on; a session of its own starts with nothing. */
static void child(void)
{
    if (pki_activity_counted().added != 0)
        _exit(2);
    if (pk_start(pk_options(.report_path = "child.json", .backends = "none")) != PK_OK)
        _exit(3);
    one_step(PKI_ACTIVITY_KERNEL);
    _exit(pk_stop() == PK_OK ? 0 : 4);
}

static void not_into_a_child(void **state)
{
    int status;
    (void)state;
    if (strstr(SANITIZERS, "thread"))
        skip();
    if (getenv("PK_TEST_QEMU"))
        skip(); /* qemu-user dies of threads that a fork's child starts */
    for (int i = 0; i < 5; i++)
        one_step(PKI_ACTIVITY_KERNEL);
    pid_t pid = fork();
    if (pid == 0)
        child();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    json_t *r = load_document("child.json");
    assert_int_equal(number(member(r, "activities"), "count"), 1);
    json_decref(r);
    r = report();
    assert_int_equal(number(member(r, "activities"), "count"), 5);
    json_decref(r);
}

#define with_report(test) cmocka_unit_test_setup_teardown(test, start_report, stop_report)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_report(into_the_report),
        with_report(spans_have_statistics_of_their_own),
        with_report(steps_wait_for_their_sources),
        with_report(late_ones_are_counted),
        with_report(memory_in_use),
        with_report(nothing_from_the_session_before),
        with_report(not_into_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
