/* comm/figures/partners.h, comm/figures/sequences.h: with whom messages are exchanged, and the
 * operations that all their ranks choose alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "comm/figures/partners.h"
#include "comm/figures/sequences.h"
#include "core/record.h"

#define ID UINT64_C(0xC0FFEE)

static pki_timed_operation message(uint32_t from, uint32_t to, bool received, uint64_t tag,
                                   uint64_t bytes)
{
    return (pki_timed_operation){.op = received ? PK_OP_RECV : PK_OP_SEND,
                                 .ranks = 8,
                                 .bytes = bytes,
                                 .start = 1000,
                                 .end = 1700,
                                 .exposed = 900,
                                 .comm_id = ID,
                                 .tag = PKI_TAGGED | tag,
                                 .self = (received ? to : from) + 1,
                                 .partner = (received ? from : to) + 1};
}

/* ---- partners ---- */

static pki_partner_row *rows_of(const pki_comm_partners *p, size_t *count)
{
    pki_partner_row *rows = pki_comm_partners_rows(p, count);
    assert_non_null(rows);
    return rows;
}

static void partners_are_counted(void **state)
{
    pki_comm_partners *p = calloc(1, sizeof *p);
    size_t count;
    (void)state;
    for (uint32_t to = 5; to > 2; to--)
        for (uint32_t i = 0; i < to; i++) {
            pki_timed_operation op = message(0, to, i == 0, 7, 100);
            op.self = 1;
            op.partner = to + 1;
            assert_true(pki_comm_partners_add(p, &op));
        }
    pki_timed_operation nobody = message(0, 1, false, 7, 100), all = nobody;
    nobody.partner = 0;
    all.op = PK_OP_BROADCAST;
    assert_true(pki_comm_partners_add(p, &nobody) && pki_comm_partners_add(p, &all));
    pki_partner_row *rows = rows_of(p, &count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].rank, 3 + i);
        assert_int_equal(rows[i].sent, 2 + i);
        assert_int_equal(rows[i].sent_bytes, 100 * (2 + i));
        assert_int_equal(rows[i].sent_time, 700 * (2 + i));
        assert_int_equal(rows[i].received, 1);
        assert_int_equal(rows[i].received_bytes, 100);
        assert_int_equal(rows[i].received_time, 700);
    }
    free(rows);
    free(p->rows);
    free(p);
}

static void too_many_partners_are_one(void **state)
{
    pki_comm_partners *p = calloc(1, sizeof *p);
    size_t count;
    (void)state;
    for (uint32_t to = 1; to <= PKI_PARTNERS_MOST + 10; to++) {
        pki_timed_operation op = message(0, to, false, 7, to);
        assert_true(pki_comm_partners_add(p, &op));
    }
    pki_partner_row *rows = rows_of(p, &count);
    assert_int_equal(count, PKI_PARTNERS_MOST + 1);
    assert_int_equal(rows[count - 1].rank, PKI_PARTNERS_OTHER);
    assert_int_equal(rows[count - 1].sent, 10);
    count = pki_partners_narrow(rows, count, 4);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 3; i++) /* those with most bytes, by rank */
        assert_int_equal(rows[i].rank, PKI_PARTNERS_MOST - 2 + i);
    assert_int_equal(rows[3].rank, PKI_PARTNERS_OTHER);
    assert_int_equal(rows[3].sent, PKI_PARTNERS_MOST + 7);
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += rows[i].sent_bytes;
    assert_int_equal(bytes, (PKI_PARTNERS_MOST + 10) * (PKI_PARTNERS_MOST + 11) / 2);
    assert_int_equal(pki_partners_narrow(rows, count, 4), 4);
    free(rows);
    free(p->rows);
    free(p);
}

/* ---- sequences ---- */

static pki_comm_sequences *sequences(void)
{
    return calloc(1, sizeof(pki_comm_sequences));
}

static void drop(pki_comm_sequences *s)
{
    free(s->rows);
    free(s);
}

static bool has_key(const pki_comm_sequences *s, uint64_t key)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->rows[i].key == key)
            return true;
    return false;
}

static void add(pki_comm_sequences *s, pki_timed_operation op)
{
    assert_true(pki_comm_sequences_add(s, &op));
}

/* What one end has chosen, the other one has, too, in whatever order other messages come. */
static void both_ends_choose_alike(void **state)
{
    pki_comm_sequences *from = sequences(), *to = sequences();
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        add(from, message(3, 5, false, i % 3, i));
        add(from, message(3, 6, false, 1, i));
        add(to, message(4, 5, true, 1, i));
    }
    for (uint64_t tag = 3; tag-- > 0;) /* tags one after the other */
        for (uint64_t i = tag; i < 200; i += 3)
            add(to, message(3, 5, true, tag, i));
    size_t found = 0;
    for (size_t i = 0; i < from->count; i++)
        for (size_t k = 0; k < to->count; k++)
            if (from->rows[i].key == to->rows[k].key) {
                assert_int_equal(from->rows[i].bytes, to->rows[k].bytes);
                assert_int_equal(from->rows[i].partner, 5);
                assert_int_equal(to->rows[k].partner, 3);
                found++;
            }
    assert_int_equal(found, 200);
    assert_int_equal(from->operations, 400);
    assert_int_equal(from->rows[0].duration, 700);
    assert_int_equal(from->rows[0].waited, 700); /* never more than there was */
    drop(from);
    drop(to);
}

/* Who has more operations chooses fewer of them: a part of what the other one has. */
static void fewer_are_a_part_of_more(void **state)
{
    pki_comm_sequences *few = sequences(), *many = sequences();
    (void)state;
    for (uint64_t i = 1; i <= 5000; i++) {
        pki_timed_operation all = {
            .op = PK_OP_ALL_REDUCE, .ranks = 4, .comm_id = ID, .sequence = i};
        add(few, all);
        add(many, all);
        for (int k = 0; k < 9; k++)
            add(many, message(1, 2, false, (uint64_t)k, 8));
    }
    assert_in_range(few->count, PKI_SEQUENCES_MOST / 4, PKI_SEQUENCES_MOST);
    assert_in_range(many->count, PKI_SEQUENCES_MOST / 4, PKI_SEQUENCES_MOST);
    assert_true(many->one_in > few->one_in);
    size_t shared = 0;
    for (size_t i = 0; i < few->count; i++)
        if (few->rows[i].key % many->one_in == 0) {
            assert_true(has_key(many, few->rows[i].key));
            shared++;
        }
    assert_in_range(shared, 5000 / many->one_in / 2, 5000 / many->one_in * 2);
    uint64_t one_in = few->one_in;
    size_t left = pki_sequences_narrow(few->rows, few->count, &one_in, 50);
    assert_in_range(left, 10, 50);
    for (size_t i = 0; i < left; i++)
        assert_int_equal(few->rows[i].key % one_in, 0);
    drop(few);
    drop(many);
}

static void what_cannot_be_found_again_is_not_chosen(void **state)
{
    pki_comm_sequences *s = sequences();
    pki_timed_operation no_id = message(1, 2, false, 0, 8), no_self = no_id, nobody = no_id,
                        shared = no_id, other = no_id;
    (void)state;
    no_id.comm_id = 0;
    no_self.self = 0;
    nobody.partner = 0;
    shared.sharers = 2;
    other.op = PK_OP_OTHER;
    add(s, no_id);
    add(s, no_self);
    add(s, nobody);
    add(s, shared);
    add(s, other);
    assert_int_equal(s->operations, 0);
    assert_null(s->rows);
    drop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partners_are_counted),
        cmocka_unit_test(too_many_partners_are_one),
        cmocka_unit_test(both_ends_choose_alike),
        cmocka_unit_test(fewer_are_a_part_of_more),
        cmocka_unit_test(what_cannot_be_found_again_is_not_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
