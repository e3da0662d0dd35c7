/* Tables of distributions: growth, overflowing buckets, merging, reuse, and no memory. */
#include "stats/slot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static pki_spans spans;
static pki_table a, b;

static int open_spans(void **state)
{
    (void)state;
    pki_owned file;
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    return pki_mem_file(&file, "test") &&
                   pki_spans_map(&spans, &file, (size_t)64 << 20, sizeof(uint64_t), 0)
               ? 0
               : -1;
}

static int close_spans(void **state)
{
    (void)state;
    pki_spans_unmap(&spans);
    return 0;
}

static pki_slot *add(pki_table *table, uint32_t id)
{
    pki_slot *slot = pki_table_add(&spans, table, id, PK_OTHER);
    assert_non_null(slot);
    return slot;
}

static uint64_t bucket_of(const pki_slot *slot, uint64_t value)
{
    return pki_slot_bucket(slot, pki_bucket(value));
}

static uint32_t *word_of(pki_slot *slot, uint64_t value)
{
    uint32_t bucket = pki_bucket(value);
    uint32_t *chunk = pki_follow(slot, slot->chunks[bucket / PKI_CHUNK_BUCKETS]);
    return &chunk[bucket % PKI_CHUNK_BUCKETS];
}

static void slots_by_id(void **state)
{
    (void)state;
    assert_null(pki_table_slot(&a, 5));
    for (uint32_t id = 1; id < 3000; id += 7) {
        pki_slot *slot = add(&a, id);
        assert_int_equal((uintptr_t)slot % PKI_LINE, 0);
        assert_int_equal(slot->id, id);
        assert_true(slot->count == 0 && slot->min == UINT64_MAX && slot->max == 0);
        pki_table_count(&spans, &a, slot, id);
    }
    uint32_t seen = 0;
    for (const pki_slot *s = a.first; s; s = pki_table_next(s))
        seen += s->count == 1 && s->max == s->id;
    assert_int_equal(seen, a.used);
    assert_int_equal(a.used, (3000 - 1 + 6) / 7);
    for (uint32_t id = 1; id < 3000; id++) /* growing has lost none */
        assert_true(id % 7 == 1 ? pki_table_slot(&a, id)->sum == id : !pki_table_slot(&a, id));
    assert_ptr_equal(add(&a, 8), pki_table_slot(&a, 8));
    assert_non_null(add(&a, 65535));
    assert_null(pki_table_slot(&a, 65536));
}

/* design.md: a region pays only for the octaves that it touches. */
static void memory_of_a_typical_region(void **state)
{
    (void)state;
    pki_slot *slot = add(&a, 3);
    char *before = a.pool.spare;
    for (uint64_t v = 1000; v < 16000; v++)
        pki_table_count(&spans, &a, slot, v);
    assert_int_equal(a.pool.spare - before, 5 * (int)sizeof(pki_chunk));
    assert_true(sizeof(pki_slot) + 5 * sizeof(pki_chunk) <= 2048);
}

static void buckets_that_overflow(void **state)
{
    (void)state;
    pki_slot *slot = add(&a, 3);
    pki_table_count(&spans, &a, slot, 1000);
    *word_of(slot, 1000) = UINT32_MAX;
    assert_int_equal(slot->carry, 0);
    pki_table_count(&spans, &a, slot, 1000);
    assert_int_equal(*word_of(slot, 1000), 0);
    assert_int_equal(bucket_of(slot, 1000), (uint64_t)1 << 32);
    pki_table_count(&spans, &a, slot, 1000);
    assert_int_equal(bucket_of(slot, 1000), ((uint64_t)1 << 32) + 1);
    *word_of(slot, 1000) = UINT32_MAX;
    pki_table_count(&spans, &a, slot, 1000);
    assert_int_equal(bucket_of(slot, 1000), (uint64_t)2 << 32);
    assert_int_equal(bucket_of(slot, 999999), 0);
}

static void overflow_in_a_merge(void **state)
{
    (void)state;
    pki_slot *from = add(&a, 3), *to = add(&b, 3);
    pki_table_count(&spans, &a, from, 77);
    pki_table_count(&spans, &b, to, 77);
    *word_of(from, 77) = 3000000000u;
    *word_of(to, 77) = 2000000000u;
    pki_slot_merge(&spans, &b.pool, to, from);
    assert_int_equal(bucket_of(to, 77), 5000000000u);
    pki_slot_merge(&spans, &b.pool, to, to); /* with a carry of its own */
    assert_int_equal(bucket_of(to, 77), 10000000000u);
    pki_slot_merge(&spans, &a.pool, from, to);
    assert_int_equal(bucket_of(from, 77), 13000000000u);
}

static uint32_t random_state = 1;

static uint64_t draw(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    uint64_t high = random_state;
    random_state = random_state * 1664525u + 1013904223u;
    return (high << 32 | random_state) >> (random_state >> 8) % 50;
}

/* Two tables merged are one table that has seen everything. */
static void merged_is_the_same_as_one(void **state)
{
    static pk_stats one, merged;
    pki_table whole = {0};
    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint32_t id = 3 + (uint32_t)(draw() % 40);
        uint64_t value = draw();
        pki_table *part = i % 3 ? &a : &b;
        pki_slot *slot = add(part, id), *whole_slot = add(&whole, id);
        pki_table_count(&spans, part, slot, value);
        pki_table_count(&spans, &whole, whole_slot, value);
        slot->self += value / 2, whole_slot->self += value / 2;
        slot->bytes += value, whole_slot->bytes += value;
        slot->flops++, whole_slot->flops++;
    }
    pki_table_merge(&spans, &b, &a);
    assert_int_equal(b.used, whole.used);
    for (const pki_slot *s = whole.first; s; s = pki_table_next(s)) {
        pki_stats_begin(&one);
        pki_stats_add_slot(&one, s);
        pki_stats_finish(&one, 1.0);
        pki_stats_begin(&merged);
        pki_stats_add_slot(&merged, pki_table_slot(&b, s->id));
        pki_stats_finish(&merged, 1.0);
        assert_true(one.count > 0);
        assert_memory_equal(&one, &merged, sizeof one);
    }
}

static void squares_beyond_64_bits(void **state)
{
    (void)state;
    pki_table_count(&spans, &a, add(&a, 3), 4000000000u);
    pki_table_count(&spans, &b, add(&b, 3), 4000000000u);
    pki_table_merge(&spans, &b, &a);
    pki_slot *slot = pki_table_slot(&b, 3);
    assert_int_equal(slot->squares_high, 1);
    assert_int_equal(slot->squares_low, 2 * 16000000000000000000u); /* modulo 2^64 */
}

static void an_empty_table_adds_nothing(void **state)
{
    (void)state;
    pki_table_count(&spans, &a, add(&a, 3), 100);
    pki_table_merge(&spans, &a, &b);
    pki_table_merge(&spans, &b, &a);
    pki_slot *slot = pki_table_slot(&b, 3);
    assert_true(slot->count == 1 && slot->min_before == 100 && slot->max_before == 100);
}

/* 100,000 short threads in bounded memory: what a table has taken it takes again. */
static void reset_and_reuse(void **state)
{
    uint64_t used = 0;
    (void)state;
    pki_table_reset(&spans, &a); /* of an empty one */
    for (int round = 0; round < 50; round++) {
        for (uint32_t id = 1; id < 400; id++) {
            pki_slot *slot = add(&a, id);
            assert_true(slot->count == 0 && slot->sum == 0 && slot->min == UINT64_MAX &&
                        slot->carry == 0);
            pki_table_count(&spans, &a, slot, (uint64_t)id << round % 30);
            assert_int_equal(bucket_of(slot, (uint64_t)id << round % 30), 1);
        }
        assert_int_equal(a.used, 399);
        used = round == 0 ? *spans.used : used;
        assert_int_equal(*spans.used, used);
        pki_table_reset(&spans, &a);
        assert_null(pki_table_slot(&a, 1));
        assert_null(a.first);
    }
}

static void take_the_rest(void)
{
    for (size_t bytes = (size_t)1 << 25; bytes >= PKI_PAGE; bytes /= 2)
        while (pki_spans_claim(&spans, bytes))
            ;
}

/* Counts stay exact where there is no memory for buckets, and no slot is half made. */
static void without_room(void **state)
{
    uint32_t id = 3;
    (void)state;
    pki_slot *slot = add(&a, id);
    take_the_rest();
    while (pki_table_add(&spans, &a, id + 1, PK_OTHER))
        id++;
    assert_true(id > 3 && a.used == id - 2);
    assert_null(pki_table_slot(&a, id + 1));
    for (uint64_t v = 1; v; v <<= 1) /* more octaves than the rest of the span has room for */
        pki_table_count(&spans, &a, slot, v);
    assert_int_equal(slot->count, 64);
    assert_int_equal(slot->sum, UINT64_MAX);
    assert_int_equal(slot->max, (uint64_t)1 << 63);
    assert_null(pki_table_add(&spans, &b, 3, PK_OTHER));
    pki_table_merge(&spans, &b, &a);
    assert_int_equal(b.used, 0);
    pki_table_reset(&spans, &a); /* and there is room again */
    assert_non_null(pki_table_add(&spans, &a, 3, PK_OTHER));
}

static void overflow_without_room(void **state)
{
    (void)state;
    pki_slot *slot = add(&a, 3);
    pki_table_count(&spans, &a, slot, 50);
    take_the_rest();
    while (pki_table_add(&spans, &a, a.used + 3, PK_OTHER))
        ;
    *word_of(slot, 50) = UINT32_MAX;
    pki_table_count(&spans, &a, slot, 50);
    assert_int_equal(slot->count, 2);
    assert_int_equal(slot->sum, 100);
}

#define on_spans(test) cmocka_unit_test_setup_teardown(test, open_spans, close_spans)

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_spans(slots_by_id),
        on_spans(memory_of_a_typical_region),
        on_spans(buckets_that_overflow),
        on_spans(overflow_in_a_merge),
        on_spans(merged_is_the_same_as_one),
        on_spans(squares_beyond_64_bits),
        on_spans(an_empty_table_adds_nothing),
        on_spans(reset_and_reuse),
        on_spans(without_room),
        on_spans(overflow_without_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
