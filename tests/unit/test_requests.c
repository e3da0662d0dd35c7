/* Requests through the public API: stages, figures, limits, and what their time is put down to. */
#include "session.h"
#include "tick.h"

#include <string.h>

#include "measure/requests/requests.h"

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
    pk_request_limits(ttft_limit, tpot_limit);
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
    pk_request_limits(-1, 0);
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

static void counts_have_a_size(void **state)
{
    (void)state;
    pk_request_counts c = {.size = 0};
    assert_int_equal(pk_get_request_counts(&c), PK_EINVAL);
    assert_int_equal(pk_get_request_counts(NULL), PK_EINVAL);
    c.size = offsetof(pk_request_counts, good);
    c.good = 99;
    assert_int_equal(pk_get_request_counts(&c), PK_OK);
    assert_int_equal(c.good, 99);
    pk_stop();
    pk_request off = pk_request_begin(&completion, 1);
    assert_int_equal(off.span.region, 0);
    pk_request_tokens(&off, 1);
    pk_request_end(&off, PK_REQUEST_FINISHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(stages_are_distributions, start_session, stop_session),
        cmocka_unit_test_setup_teardown(limits_tell_good_ones, start_session, stop_session),
        cmocka_unit_test_setup_teardown(prompts_of_others_are_told, start_session, stop_session),
        cmocka_unit_test(what_is_packed_comes_out_again),
        cmocka_unit_test(the_slowest_tenth_is_found),
        cmocka_unit_test(a_cancelled_or_failed_one_is_not_slow),
        cmocka_unit_test_setup_teardown(counts_have_a_size, start_session, stop_session),
    };
    return both_clocks(tests);
}
