/* Spans through the public API: figures, hand-overs, what goes wrong and how it is counted. */
#include "session.h"
#include "valgrind.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pk_region request = PK_REGION("request"), parsed = PK_REGION_OF(PK_DATA, "parsed");
static pk_region late = PK_REGION("late");

static pk_span_counts spans_now(void)
{
    pk_span_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_get_span_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, counts.ended + counts.open);
    return counts;
}

static void a_span_is_a_sample_and_so_is_a_mark(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        pk_span s = pk_span_begin(&request, 7);
        assert_int_equal(s.id, 7);
        spend();
        pk_span_mark(&s, &parsed);
        spend();
        pk_span_mark(&s, &late);
        pk_span_end(&s);
    }
    uint64_t marks = stats_of(&parsed)->sum;
    assert_true(the_stats.count == 100 && the_stats.self == 0);
    marks += stats_of(&late)->sum;
    assert_int_equal(the_stats.count, 100);
    stats_of(&request);
    assert_true(the_stats.count == 100 && the_stats.self == 0 && the_stats.sum >= marks);
    pk_span_counts c = spans_now();
    assert_true(c.begun == 100 && c.open == 0);
    assert_int_equal(c.dropped + c.ended_twice + c.of_earlier, 0);
    assert_int_equal(stop_and_count().points, 400);
    assert_int_equal(counts_now().begun, 0);
}

static void *end_it(void *span)
{
    pk_span_mark(span, &parsed);
    pk_span_end(span);
    return NULL;
}

static void on_another_thread(pk_span *span)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_it, span), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void it_ends_on_another_thread(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        pk_span s = pk_span_begin(&request, (uint64_t)i);
        on_another_thread(&s);
    }
    assert_int_equal(count_of(&request), 20);
    assert_int_equal(count_of(&parsed), 20);
    assert_int_equal(spans_now().ended, 20);
    assert_int_equal(stop_and_count().threads, 21);
}

static void none_is_nothing(void **state)
{
    (void)state;
    pk_span none = {0};
    pk_span_mark(&none, &parsed);
    pk_span_end(&none);
    pk_span_end(&none);
    pk_stop();
    pk_span off = pk_span_begin(&request, 3);
    assert_memory_equal(&off, &none, sizeof none);
    pk_span_end(&off);
    pk_span_counts c = spans_now();
    assert_int_equal(c.begun + c.ended_twice + c.of_earlier + c.dropped, 0);
}

static void a_second_end_counts_as_such(void **state)
{
    (void)state;
    pk_span s = pk_span_begin(&request, 1), copy = s;
    pk_span_end(&s);
    pk_span_end(&s);
    pk_span_mark(&s, &parsed);
    assert_int_equal(spans_now().ended_twice, 2);
    pk_span_end(&copy);
    assert_int_equal(spans_now().ended_twice, 3);
    assert_int_equal(count_of(&request), 1);
    assert_int_equal(spans_now().ended, 1);
    assert_int_equal(pk_region_stats(&parsed, &the_stats), PK_ENOENT);
}

static void what_is_open_at_the_end_is_unfinished(void **state)
{
    pk_span kept = pk_span_begin(&request, 1);
    assert_int_equal(spans_now().open, 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(spans_now().open, 1);
    pk_span_end(&kept); /* off: nobody counts */
    assert_int_equal(start_session(state), 0);
    pk_span_mark(&kept, &parsed);
    pk_span_end(&kept);
    pk_span_counts c = spans_now();
    assert_int_equal(c.of_earlier, 2);
    assert_int_equal(c.begun + c.ended_twice, 0);
    assert_int_equal(pk_region_stats(&request, &the_stats), PK_ENOENT);
}

/* Nobody empties the ring: what finds no room is in the distribution all the same. */
static void drops_bias_nothing(void **state)
{
    enum { SPANS = 5000 };
    (void)state;
    pk_stop();
    assert_int_equal(pk_start(pk_options(.clock = the_clock, .backends = "none",
                                         .ring_records = 1024, .collector = "none")),
                     PK_OK);
    pk_span open = pk_span_begin(&late, 1);
    for (uint64_t i = 0; i < SPANS; i++) {
        pk_span s = pk_span_begin(&request, i);
        pk_span_mark(&s, &parsed);
        pk_span_end(&s);
    }
    pk_span dropped = pk_span_begin(&request, SPANS);
    assert_int_equal(count_of(&request), SPANS);
    assert_int_equal(count_of(&parsed), SPANS);
    assert_int_equal(pk_flush(), PK_OK);
    pk_span_end(&dropped); /* there is room again: its end has a record, its begin has none */
    pk_span_counts c = spans_now();
    assert_true(c.begun == SPANS + 2 && c.open == 1 && c.dropped > SPANS);
    assert_int_equal(counts_now().points_dropped, c.dropped);
    assert_int_equal(count_of(&request), SPANS + 1);
    pk_span_end(&open);
    assert_int_equal(stop_and_count().points + c.dropped, 3 * (SPANS) + 4);
    c = spans_now();
    assert_true(c.open == 0 && c.ended_twice == 0);
}

static void fill_ring(void)
{
    for (int i = 0; i < 2000; i++)
        PK_SCOPE(late) {
        }
}

/* Of copies, too: with the ring full their ends are no calls, however many there are and whoever
 * looks in between. */
static void copies_end_while_the_ring_is_full(void **state)
{
    enum { COPIES = 60000 };
    (void)state;
    pk_stop();
    assert_int_equal(pk_start(pk_options(.clock = the_clock, .backends = "none",
                                         .ring_records = 1024, .collector = "none")),
                     PK_OK);
    pk_span s = pk_span_begin(&request, 1), other = pk_span_begin(&request, 2);
    fill_ring();
    for (int i = 0; i < COPIES; i++) {
        pk_span copy = s;
        pk_span_end(&copy);
        if (i % 10000 == 0) /* folded: the next one finds nobody waiting */
            assert_int_equal(spans_now().ended, 1);
    }
    pk_span_counts c = spans_now();
    assert_int_equal(c.begun, 2);
    assert_int_equal(c.ended, 1);
    assert_int_equal(c.open, 1);
    assert_int_equal(c.ended_twice, COPIES - 1);
    assert_int_equal(count_of(&request), 1);
    pk_span_end(&other);
    assert_int_equal(pk_flush(), PK_OK);
    pk_span copy = other;
    pk_span_end(&copy); /* this one has a record */
    c = spans_now();
    assert_true(c.ended == 2 && c.open == 0 && c.ended_twice == COPIES);
    assert_int_equal(count_of(&request), 2);
    assert_true(the_stats.sum >= the_stats.min + the_stats.max);
}

static void a_child_ends_none_of_its_parents(void **state)
{
    (void)state;
    if (forked_child_may_not_record())
        skip();
    pk_span s = pk_span_begin(&request, 1);
    pid_t child = fork();
    if (child == 0) {
        pk_span_end(&s);
        bool fine = pk_start(pk_options(.backends = "none")) == PK_OK;
        pk_span own = pk_span_begin(&request, 2);
        pk_span_end(&own);
        pk_span_end(&s);
        pk_span_counts c = {.size = sizeof c};
        fine = fine && pk_get_span_counts(&c) == PK_OK && c.begun == 1 && c.ended == 1;
        _exit(fine && pk_stop() == PK_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pk_span_end(&s);
    assert_int_equal(count_of(&request), 1);
}

static void counts_have_a_size(void **state)
{
    (void)state;
    pk_span_counts c = {.size = 0};
    assert_int_equal(pk_get_span_counts(&c), PK_EINVAL);
    assert_int_equal(pk_get_span_counts(NULL), PK_EINVAL);
    c.size = sizeof c + 8;
    assert_int_equal(pk_get_span_counts(&c), PK_EINVAL);
    c = (pk_span_counts){.size = offsetof(pk_span_counts, open), .open = 99};
    assert_int_equal(pk_get_span_counts(&c), PK_OK);
    assert_int_equal(c.open, 99);
}

int main(void)
{
    pk_span_counts c = {.size = sizeof c};
    if (pk_get_span_counts(&c) != PK_EOFF)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_span_is_a_sample_and_so_is_a_mark, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(it_ends_on_another_thread, start_session, stop_session),
        cmocka_unit_test_setup_teardown(none_is_nothing, start_session, stop_session),
        cmocka_unit_test_setup_teardown(a_second_end_counts_as_such, start_session, stop_session),
        cmocka_unit_test_setup_teardown(what_is_open_at_the_end_is_unfinished, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(drops_bias_nothing, start_session, stop_session),
        cmocka_unit_test_setup_teardown(copies_end_while_the_ring_is_full, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(a_child_ends_none_of_its_parents, start_session,
                                        stop_session),
        cmocka_unit_test_setup_teardown(counts_have_a_size, start_session, stop_session),
    };
    return both_clocks(tests);
}
