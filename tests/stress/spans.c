/* Spans that many threads hand to each other, through rings that are too small for them: each is
 * counted once, and each is in the distribution, whatever was dropped.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"

enum { THREADS = 64, BATCH = 100, ROUNDS = 40 };

static pk_region request = PK_REGION("request"), seen = PK_REGION("seen");
static pk_span spans[THREADS][BATCH];
static pthread_barrier_t together;
static unsigned rounds;

static void *hand_over(void *argument)
{
    unsigned me = (unsigned)(uintptr_t)argument, neighbour = (me + 1) % THREADS;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < BATCH; i++)
            spans[me][i] = pk_span_begin(&request, me);
        pthread_barrier_wait(&together);
        for (unsigned i = 0; i < BATCH; i++) {
            must_equal(spans[neighbour][i].id, neighbour);
            pk_span_mark(&spans[neighbour][i], &seen);
            pk_span_end(&spans[neighbour][i]);
        }
        pthread_barrier_wait(&together);
    }
    return NULL;
}

static void run_all(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, hand_over, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    pthread_barrier_destroy(&together);
}

static uint64_t samples_of(const pk_region *region)
{
    static pk_stats stats;
    assert_int_equal(pk_region_stats(region, &stats), PK_OK);
    return stats.count;
}

static void check(uint32_t ring_records, const char *trace)
{
    rounds = kit_scaled(ROUNDS);
    uint64_t all = (uint64_t)THREADS * BATCH * rounds;
    assert_int_equal(
        pk_start(pk_options(.ring_records = ring_records, .trace_path = trace, .backends = "none")),
        PK_OK);
    run_all();
    assert_int_equal(pk_stop(), PK_OK);
    pk_span_counts c = {.size = sizeof c};
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_span_counts(&c), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(c.begun, all);
    assert_int_equal(c.ended, all);
    assert_int_equal(c.open + c.ended_twice + c.of_earlier, 0);
    assert_int_equal(samples_of(&request), all);
    assert_int_equal(samples_of(&seen), all);
    assert_int_equal(counts.points_dropped, c.dropped);
    assert_int_equal(counts.points + counts.points_dropped, 3 * all);
    assert_int_equal(counts.begun, 0);
}

static void none_is_lost_where_there_is_room(void **state)
{
    (void)state;
    check(0, NULL);
}

static void none_is_lost_where_there_is_none(void **state)
{
    (void)state;
    check(256, kit_path("spans.json"));
}

int main(void)
{
    kit_watchdog(280);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_lost_where_there_is_room),
        cmocka_unit_test(none_is_lost_where_there_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
