/* Requests and spans through the public API. */
#include "session.h"
#include "../kit/rounds.h"
#include "tick.h"
#include "valgrind.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure/requests/requests.h"

/* ---- spans through the public API ---- */

/* Figures, hand-overs, what goes wrong and how it is counted. */

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
    assert_int_equal(
        pk_start(pk_options(.backends = "none",
                            .tuning = kit_tuning("clock=%s,ring_records=1024", the_clock))),
        PK_OK);
    kit_end_collector();
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
    for (int i = 0; i < 2000; i++) {
        PK_REGION_SCOPE(late);
    }
}

/* Of copies, too: with the ring full their ends are no calls, however many there are and whoever
 * looks in between. */
static void copies_end_while_the_ring_is_full(void **state)
{
    enum { COPIES = 60000 };
    (void)state;
    pk_stop();
    assert_int_equal(
        pk_start(pk_options(.backends = "none",
                            .tuning = kit_tuning("clock=%s,ring_records=1024", the_clock))),
        PK_OK);
    kit_end_collector();
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
    assert_int_equal((pk_get_span_counts)(&c), PK_EINVAL);
    assert_int_equal((pk_get_span_counts)(NULL), PK_EINVAL);
    c.size = sizeof c + 8;
    assert_int_equal((pk_get_span_counts)(&c), PK_EINVAL);
    c = (pk_span_counts){.size = offsetof(pk_span_counts, open), .open = 99};
    assert_int_equal((pk_get_span_counts)(&c), PK_OK);
    assert_int_equal(c.open, 99);
}

static const struct CMUnitTest spans_tests[] = {
    cmocka_unit_test_setup_teardown(a_span_is_a_sample_and_so_is_a_mark, start_session,
                                    stop_session),
    cmocka_unit_test_setup_teardown(it_ends_on_another_thread, start_session, stop_session),
    cmocka_unit_test_setup_teardown(none_is_nothing, start_session, stop_session),
    cmocka_unit_test_setup_teardown(a_second_end_counts_as_such, start_session, stop_session),
    cmocka_unit_test_setup_teardown(what_is_open_at_the_end_is_unfinished, start_session,
                                    stop_session),
    cmocka_unit_test_setup_teardown(drops_bias_nothing, start_session, stop_session),
    cmocka_unit_test_setup_teardown(copies_end_while_the_ring_is_full, start_session, stop_session),
    cmocka_unit_test_setup_teardown(a_child_ends_none_of_its_parents, start_session, stop_session),
    cmocka_unit_test_setup_teardown(counts_have_a_size, start_session, stop_session),
};

static int run_spans(void)
{
    pk_span_counts c = {.size = sizeof c};
    if (pk_get_span_counts(&c) != PK_EOFF)
        return 1;
    return both_clocks(spans_tests);
}

/* ---- requests through the public API ---- */

/* Stages, figures, limits, and what their time is put down to. */

static pk_region completion = PK_REGION("completion");

static const pk_stats *stage(const char *name, pk_kind kind)
{
    return stats_of(pk_region_named_of(kind, name));
}

static pk_request_counts requests_now(void)
{
    pk_request_counts c = {.size = sizeof c};
    assert_int_equal(pk_get_request_counts(&c), PK_OK);
    return c;
}

static void stages_are_distributions(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        pk_request r = pk_request_begin(&completion, i);
        assert_int_equal(r.span.id, i);
        spend();
        pk_request_schedule(&r);
        pk_request_prefill(&r, 32);
        spend();
        pk_request_tokens(&r, 1);
        pk_request_tokens(&r, 0); /* nothing */
        for (int k = 0; k < 3; k++) {
            spend();
            pk_request_tokens(&r, 2);
        }
        assert_int_equal(r.tokens, 7);
        pk_request_end(&r, i == 9 ? PK_REQUEST_CANCELLED : PK_REQUEST_FINISHED);
        pk_request_end(&r, PK_REQUEST_FINISHED); /* once is enough */
    }
    uint64_t whole = stats_of(&completion)->sum;
    assert_int_equal(the_stats.count, 10);
    uint64_t ttft = stage("time to first token", PK_OTHER)->sum;
    assert_int_equal(the_stats.count, 10);
    uint64_t queued = stage("request queue time", PK_WAIT)->sum;
    assert_int_equal(the_stats.count, 10);
    uint64_t intervals = stage("inter-token latency", PK_OTHER)->sum;
    assert_int_equal(the_stats.count, 30);
    uint64_t per_token = stage("time per output token", PK_OTHER)->sum;
    assert_int_equal(the_stats.count, 10);
    assert_true(queued < ttft && ttft + intervals <= whole + 30);
    uint64_t rounding = 10 * (2 + tick_ns());
    assert_in_range(per_token, intervals / 6 - rounding, intervals / 6 + rounding);
    pk_request_counts c = requests_now();
    assert_true(c.finished == 9 && c.cancelled == 1 && c.failed == 0 && c.tokens == 70);
    assert_int_equal(c.good, 9);
    pk_span_counts spans = {.size = sizeof spans};
    assert_int_equal(pk_get_span_counts(&spans), PK_OK);
    assert_true(spans.begun == 10 && spans.ended == 10 && spans.ended_twice == 10);
}

static pk_request served(double ttft_limit, double tpot_limit)
{
    pk_request_set_limits(ttft_limit, tpot_limit);
    pk_request r = pk_request_begin(&completion, 1);
    pk_request_schedule(&r);
    spend();
    pk_request_tokens(&r, 1);
    spend();
    pk_request_tokens(&r, 1);
    pk_request_end(&r, PK_REQUEST_FINISHED);
    return r;
}

static void limits_tell_good_ones(void **state)
{
    (void)state;
    served(0, 0);
    assert_int_equal(requests_now().good, 1);
    served(1e6, 1e6);
    assert_int_equal(requests_now().good, 2);
    served(1e-9, 0);
    served(0, 1e-9);
    assert_int_equal(requests_now().good, 2);
    pk_request_set_limits(-1, 0);
    pk_request none = {0};
    pk_request_schedule(&none);
    pk_request_tokens(&none, 5);
    pk_request_preempt(&none);
    pk_request_end(&none, PK_REQUEST_FAILED);
    assert_int_equal(requests_now().finished, 4);
    assert_int_equal(requests_now().failed, 0);
}

/* What others' prompts took of it. */
static void prompts_of_others_are_told(void **state)
{
    (void)state;
    pk_request r = pk_request_begin(&completion, 1), other = pk_request_begin(&completion, 2);
    pk_request_schedule(&r);
    pk_request_prefill(&r, 100);
    spend();
    pk_request_tokens(&r, 1);
    assert_int_equal(r.crowded, 0); /* it read alone */
    for (int i = 0; i < 4; i++)
        pk_request_tokens(&r, 1);
    assert_true(r.behind == 0 && r.clear_events == 4);
    pk_request_schedule(&other);
    pk_request_prefill(&other, 1000);
    spend();
    pk_request_tokens(&r, 1);
    assert_true(r.behind > 0 && r.behind_events == 1 && r.clear_events == 4);
    pk_request_tokens(&other, 1);
    assert_int_equal(other.crowded, 0);
    pk_request_preempt(&r);
    pk_request_preempt(&r); /* it waits already */
    spend();
    pk_request_schedule(&r);
    assert_true(r.preemptions == 1 && r.preempted > 0);
    pk_request third = pk_request_begin(&completion, 3);
    pk_request_schedule(&third);
    pk_request_prefill(&third, 300);
    pk_request_prefill(&other, 100);
    spend();
    pk_request_tokens(&third, 1);
    assert_in_range(third.crowded, third.reading / 4 - 1, third.reading / 4 + 1);
    pk_request_end(&r, PK_REQUEST_FINISHED);
    pk_request_end(&other, PK_REQUEST_FAILED);
    pk_request_end(&third, PK_REQUEST_FINISHED);
    pk_request_counts c = requests_now();
    assert_true(c.preemptions == 1 && c.failed == 1);
}

static void what_is_packed_comes_out_again(void **state)
{
    const pki_request_done d = {.total = 1024 * 1000,
                                .queued = 1024 * 100,
                                .preempted = 1024 * 7,
                                .ttft = 1024 * 400,
                                .generated = 1024 * 500,
                                .reading = 1024 * 293,
                                .crowded = 1024 * 50,
                                .behind = (uint64_t)1 << 60, /* more than it can hold */
                                .tokens = 5000000,
                                .preemptions = 4095,
                                .first_step = 4000000000u,
                                .steps = 1000000,
                                .outcome = PK_REQUEST_CANCELLED,
                                .good = true};
    const pk_span span = {.region = 77, .serial = 0xFFFFFFFF};
    pki_record r[2];
    (void)state;
    pki_request_pack(&d, &span, 123, r);
    assert_int_equal(pki_record_slots(r[0].what), 2);
    assert_true(pki_what_id(r[0].what) == 77 && (uint32_t)r[0].extra == 0xFFFFFFFF);
    pki_request_done e = pki_request_unpack(&r[0], &r[1]);
    assert_int_equal(e.behind, 0xFFFFFFF0 * (uint64_t)PKI_REQUEST_UNIT_NS);
    assert_false(pki_is_record(r[1].what));
    e.behind = d.behind;
    assert_true(e.total == d.total && e.queued == d.queued && e.preempted == d.preempted &&
                e.ttft == d.ttft && e.generated == d.generated && e.reading == d.reading);
    assert_true(e.crowded == d.crowded && e.tokens == d.tokens && e.preemptions == d.preemptions &&
                e.first_step == d.first_step && e.steps == d.steps && e.outcome == d.outcome &&
                e.good == d.good);
}

static void the_slowest_tenth_is_found(void **state)
{
    static pki_requests r;
    pki_request_summary s;
    (void)state;
    memset(&r, 0, sizeof r);
    for (uint64_t i = 1; i <= 100; i++) {
        pki_request_done d = {
            .total = i * 1000000, .queued = i > 90 ? i * 900000 : 0, .good = true};
        pki_requests_add(&r, &d, 3, (uint32_t)i, 1000000000);
    }
    assert_true(pki_requests_fill(&r, 0, 0, 0, &s));
    assert_int_equal(s.count, 100);
    assert_in_range(s.slow.count, 10, 40); /* a quarter of an octave at a time */
    assert_true(s.slow_from <= 91000000 && s.slow_from >= 50000000);
    assert_true((double)s.slow.queued / (double)s.slow.total >
                (double)s.all.queued / (double)s.all.total);
    assert_int_equal(s.all.queued + s.all.preempted + s.all.prefill + s.all.crowded + s.all.decode +
                         s.all.behind,
                     s.all.total);
    assert_int_equal(s.slowest_count, PKI_SLOW_REQUESTS);
    for (size_t i = 0; i < s.slowest_count; i++)
        assert_int_equal(s.slowest[i].serial, 100 - i);
    free(s.slowest);
    assert_true(pki_requests_fill(&r, 5, 0, 0, &s));
    assert_int_equal(s.slow.count, 0); /* all were good */
    free(s.slowest);
    assert_true(r.name_count == 1 && r.names[0] == 3);
}

static void a_cancelled_or_failed_one_is_not_slow(void **state)
{
    static pki_requests r;
    pki_request_summary s;
    (void)state;
    memset(&r, 0, sizeof r);
    for (uint32_t outcome = 0; outcome < 3; outcome++)
        for (uint32_t i = 0; i < 4; i++) {
            pki_request_done d = {.total = (i + 1) * 1000000,
                                  .outcome = outcome,
                                  .good = outcome == PK_REQUEST_FINISHED && i != 0};
            pki_requests_add(&r, &d, 3, outcome * 4 + i, 1000000000);
        }
    assert_true(pki_requests_fill(&r, 5, 0, 0, &s));
    assert_true(s.count == 12 && s.finished == 4 && s.good == 3);
    assert_int_equal(s.slow.count, 1);
    assert_int_equal(s.slow.total, 1000000);
    free(s.slowest);
}

static void requests_counts_have_a_size(void **state)
{
    (void)state;
    pk_request_counts c = {.size = 0};
    assert_int_equal((pk_get_request_counts)(&c), PK_EINVAL);
    assert_int_equal((pk_get_request_counts)(NULL), PK_EINVAL);
    c.size = offsetof(pk_request_counts, good);
    c.good = 99;
    assert_int_equal((pk_get_request_counts)(&c), PK_OK);
    assert_int_equal(c.good, 99);
    pk_stop();
    pk_request off = pk_request_begin(&completion, 1);
    assert_int_equal(off.span.region, 0);
    pk_request_tokens(&off, 1);
    pk_request_end(&off, PK_REQUEST_FINISHED);
}

static const struct CMUnitTest requests_tests[] = {
    cmocka_unit_test_setup_teardown(stages_are_distributions, start_session, stop_session),
    cmocka_unit_test_setup_teardown(limits_tell_good_ones, start_session, stop_session),
    cmocka_unit_test_setup_teardown(prompts_of_others_are_told, start_session, stop_session),
    cmocka_unit_test(what_is_packed_comes_out_again),
    cmocka_unit_test(the_slowest_tenth_is_found),
    cmocka_unit_test(a_cancelled_or_failed_one_is_not_slow),
    cmocka_unit_test_setup_teardown(requests_counts_have_a_size, start_session, stop_session),
};

int main(void)
{
    int failed = run_spans();
    failed += both_clocks(requests_tests);
    return failed;
}
