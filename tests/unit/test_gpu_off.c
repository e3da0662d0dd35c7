/* pk/gpu.h where there is no GPU: nothing happens, and it is said why. */
#include "session.h"

#include <errno.h>
#include <string.h>

#include <pk/gpu.h>

#include "session/activity.h"
#include "session/session.h"

static pk_region forward = PK_REGION("forward"), backward = PK_REGION("backward");
static pk_stats stats;

static pk_gpu_counts gpu_counts_now(void)
{
    pk_gpu_counts c = {.size = sizeof c};
    assert_int_equal(pk_get_gpu_counts(&c), PK_OK);
    return c;
}

static void spans_are_nothing(void **state)
{
    (void)state;
    unsigned rounds = 0;
    errno = 77;
    for (int i = 0; i < 3; i++) {
        PK_GPU_SCOPE(forward, NULL);
        pk_gpu_begin(&backward, NULL);
        rounds++;
        if (i == 1)
            continue; /* ends it, too */
        pk_gpu_end(&backward, NULL);
    }
    pk_gpu_graph_launching(NULL, NULL, NULL);
    assert_int_equal(rounds, 3);
    assert_int_equal(errno, 77);
    assert_int_equal(gpu_counts_now().begun, 0);
    assert_int_equal(pk_region_gpu_stats(&forward, &stats), PK_ENOENT);
    assert_int_equal(stats.count, 0);
}

static void a_reason_in_words(void **state)
{
    (void)state;
    pk_backend_info info = {.size = sizeof info};
    assert_int_equal(pk_backend_status("cuda", &info), PK_OK);
    assert_int_equal(info.live, 0);
    assert_true(strlen(info.reason) > 5);
}

static void counts_of_another_version(void **state)
{
    (void)state;
    pk_gpu_counts c;
    memset(&c, 0xFF, sizeof c);
    c.size = 16;
    assert_int_equal((pk_get_gpu_counts)(&c), PK_OK);
    assert_int_equal(c.size, 16);
    assert_int_equal(c.begun, 0);
    assert_int_equal(c.recorded, UINT64_MAX); /* not asked for */
    c.size = sizeof c + 8;
    assert_int_equal((pk_get_gpu_counts)(&c), PK_EINVAL);
    c.size = 0;
    assert_int_equal((pk_get_gpu_counts)(&c), PK_EINVAL);
    assert_int_equal((pk_get_gpu_counts)(NULL), PK_EINVAL);
}

static void add_span(uint64_t ns)
{
    const pki_activity a = {.kind = PKI_ACTIVITY_SPAN,
                            .name = "forward",
                            .name_length = 7,
                            .start = 1000,
                            .end = 1000 + ns,
                            .region = pki_region_id(&forward)};
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_add(&a);
    pthread_mutex_unlock(&pki_drain_lock);
}

static void distribution_of_spans(void **state)
{
    (void)state;
    for (uint64_t ns = 1; ns <= 100; ns++)
        add_span(ns * 1000);
    assert_int_equal(pk_region_gpu_stats(&forward, &stats), PK_OK);
    assert_int_equal(stats.count, 100);
    assert_int_equal(stats.sum, 5050000);
    assert_int_equal(stats.self, 5050000);
    assert_int_equal(stats.max, 100000);
    assert_in_range(pk_stats_quantile(&stats, 0.5), 49500, 50500);
    assert_int_equal(pk_region_stats(&forward, &stats), PK_ENOENT); /* the CPU's is another */
    pk_stop();
    assert_int_equal(pk_region_gpu_stats(&forward, &stats), PK_OK);
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    assert_int_equal(pk_region_gpu_stats(&forward, &stats), PK_ENOENT);
    assert_int_equal(pk_region_gpu_stats(NULL, &stats), PK_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(spans_are_nothing, start_session, stop_session),
        cmocka_unit_test_setup_teardown(a_reason_in_words, start_session, stop_session),
        cmocka_unit_test(counts_of_another_version),
        cmocka_unit_test_setup_teardown(distribution_of_spans, start_session, stop_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
