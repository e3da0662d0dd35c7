/* What windows have of a counter's values whose records are dropped meanwhile, half entered when a
 * window is cut: their sum is the run's, to the last bit. */
#include "cutting.h"

/* The only bucket with something in it. */
static uint32_t *bucket_of_value(pki_values *v)
{
    for (uint32_t i = 0; i < PKI_VALUE_BANKS * PK_STATS_BUCKETS; i++) {
        pki_slot *bank = &v->banks[i / PK_STATS_BUCKETS];
        uint32_t bucket = i % PK_STATS_BUCKETS;
        if (pki_slot_bucket(bank, bucket))
            return (uint32_t *)pki_follow(bank, bank->chunks[bucket / PKI_CHUNK_BUCKETS]) +
                   bucket % PKI_CHUNK_BUCKETS;
    }
    return NULL;
}

static void a_value_without_its_bucket(void **state)
{
    (void)state;
    uint32_t *bucket = bucket_of_value(lose_value(300));
    *bucket = 0;
    cut_and_forget(false);
    assert_true(level_sum.moments.count == 2 && level_sum.used == 1);
    *bucket = 1;
    cut_and_forget(false);
    assert_true(level_sum.moments.count == 2 && level_sum.used == 1); /* a bucket alone waits */
    cut_and_forget(true);
    expect_all_values();
}

/* The count is the last of its moments, and the bucket comes behind them all. */
static void the_sums_before_the_count(double first, double second)
{
    cut_and_forget(false);
    pki_values *v = lose_value(first);
    cut_and_forget(false);
    uint32_t *bucket = bucket_of_value(v);
    lose_value(second);
    assert_int_equal(*bucket, 2); /* both are in it */
    v->moments.count--;
    (*bucket)--;
    cut_and_forget(false);
    v->moments.count++;
    cut_and_forget(false);
    (*bucket)++;
    cut_and_forget(false);
    cut_and_forget(true);
    expect_all_values();
}

static void sums_without_their_count(void **state)
{
    (void)state;
    the_sums_before_the_count(100, 100.5);
}

/* Beyond what buckets tell apart. */
static void an_extreme_without_its_count(void **state)
{
    (void)state;
    the_sums_before_the_count(1e29, 1e30);
}

/* As without memory for it. It is no extreme of the run, and yet has some. */
static void a_value_without_room(void **state)
{
    (void)state;
    cut_and_forget(false);
    *bucket_of_value(lose_value(1)) = 0;
    cut_and_forget(false);
    pki_window w = cut(false);
    assert_int_equal(w.counter_count, 1);
    const pki_moments *m = &values_of(&w, &level)->moments;
    assert_true(m->count == 1 && m->min == 1 && m->max == 1);
    pki_window_finish(&w);
    cut_and_forget(true);
    expect_all_values();
}

/* A thread has ended, and the table of all had no memory for its counter: the run has fewer. */
static void values_that_are_gone(void **state)
{
    (void)state;
    pki_values *v = lose_value(300);
    cut_and_forget(false);
    v->moments.count = 0;
    for (int i = 0; i < 2; i++) { /* halves of a value would not wait twice */
        pki_window w = cut(i == 1);
        assert_int_equal(w.counter_count, 0);
        pki_window_finish(&w);
    }
    assert_int_equal(level_sum.moments.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cutting(a_value_without_its_bucket),   cutting(sums_without_their_count),
        cutting(an_extreme_without_its_count), cutting(a_value_without_room),
        cutting(values_that_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
