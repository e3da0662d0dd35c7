/* Operations of communicators in numbers, and with whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "comm/figures/figures.h"
#include "core/record.h"

/* ---- operations of communicators in numbers ---- */

/* Bandwidths as nccl-tests has them, size classes, what was waited for, how far each one has come.
 */

static pki_comm_figures *c;
static pki_summary summary;
static uint32_t comms_known;

static int set_up(void **state)
{
    (void)state;
    c = pki_comm_figures_create();
    comms_known = 3;
    return c ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pki_comm_figures_destroy(c);
    pki_summary_finish(&summary);
    return 0;
}

/* Number 2 has begun something that has not ended. */
static bool facts_of(void *user, uint32_t comm, pki_comm_facts *facts)
{
    static const pki_comm_facts known[] = {{"MPI", "world", 0, 1, 4, 7, 7, 6, 1},
                                           {"NCCL", "tp", 0xABC, 0, 2, 0, 0, 0, 0},
                                           {"NCCL", "dp", 0xDEF, 0, 2, 1, 1, 0, 1}};
    (void)user;
    if (comm >= comms_known)
        return false;
    *facts = known[comm];
    return true;
}

static const char *name_of(void *user, uint32_t id)
{
    (void)user;
    return id == 10 ? "backward" : id == 11 ? "forward" : NULL;
}

static const pki_comm_summary *fill(void)
{
    assert_true(pki_comm_figures_build_rows(c, facts_of, name_of, NULL, &summary));
    return &summary.comm;
}

static void add(uint32_t comm, uint32_t ranks, pk_comm_op op, uint64_t bytes, uint64_t start,
                uint64_t duration)
{
    pki_comm_figures_add(c, &(pki_timed_operation){.comm = comm,
                                                   .ranks = ranks,
                                                   .op = op,
                                                   .region = 10,
                                                   .bytes = bytes,
                                                   .sequence = start,
                                                   .start = start,
                                                   .end = start + duration,
                                                   .exposed = duration / 2,
                                                   .in_flight = 1});
}

/* Eight at once, each waited for: the sums are more than has passed, the unions are not. */
static void each_moment_is_waited_for_once(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 8; i++)
        add(0, 4, PK_COMM_OP_ALL_REDUCE, 8, 1000 + 10 * i, 400 - 10 * i);
    add(0, 4, PK_COMM_OP_ALL_REDUCE, 8, 5000, 100);
    const pki_comm_row *row = &fill()->comms[0];
    assert_int_equal(row->time, 8 * 400 - 280 + 100);
    assert_int_equal(row->exposed, (8 * 400 - 280 + 100) / 2);
    assert_int_equal(row->busy, 500);
    assert_int_equal(row->waited, 200 + 50);
}

/* Against nccl-tests, doc/PERFORMANCE.md, worked out by hand for 4 ranks and 1000 bytes. */
static void formulas(void **state)
{
    static const struct {
        pk_comm_op op;
        double size, factor;
    } known[] = {{PK_COMM_OP_ALL_REDUCE, 1000, 1.5},
                 {PK_COMM_OP_BROADCAST, 1000, 1},
                 {PK_COMM_OP_REDUCE, 1000, 1},
                 {PK_COMM_OP_ALL_GATHER, 4000, 0.75},
                 {PK_COMM_OP_REDUCE_SCATTER, 4000, 0.75},
                 {PK_COMM_OP_ALL_TO_ALL, 4000, 0.75},
                 {PK_COMM_OP_GATHER, 4000, 0.75},
                 {PK_COMM_OP_SCATTER, 4000, 0.75},
                 {PK_COMM_OP_SEND, 1000, 1},
                 {PK_COMM_OP_RECV, 1000, 1},
                 {PK_COMM_OP_SEND_RECV, 1000, 1},
                 {PK_COMM_OP_BARRIER, 0, 0},
                 {PK_COMM_OP_OTHER, 0, 0},
                 {PK_COMM_OP_GROUP, 0, 0}};
    (void)state;
    assert_int_equal(PKI_COUNT_OF(known), PKI_COMM_OPS);
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++) {
        assert_float_equal(pki_comm_size(known[i].op, 1000, 4), known[i].size, 0);
        assert_float_equal(pki_comm_bus_factor(known[i].op, 4), known[i].factor, 0);
        assert_float_equal(pki_comm_size(known[i].op, 1000, 1), 0, 0);
        assert_float_equal(pki_comm_bus_factor(known[i].op, 1), 0, 0);
    }
}

static void classes(void **state)
{
    (void)state;
    assert_int_equal(pki_comm_class(0), 0);
    assert_int_equal(pki_comm_class(1), 1);
    assert_int_equal(pki_comm_class(1023), 512);
    assert_int_equal(pki_comm_class(1024), 1024);
    assert_int_equal(pki_comm_class(UINT64_MAX), (uint64_t)1 << 63);
}

static void rows(void **state)
{
    (void)state;
    add(0, 4, PK_COMM_OP_ALL_REDUCE, 1500, 0, 100);
    add(0, 4, PK_COMM_OP_ALL_REDUCE, 1100, 1000, 200);
    add(0, 4, PK_COMM_OP_ALL_REDUCE, 4096, 2000, 1024);
    add(0, 4, PK_COMM_OP_BARRIER, 0, 4000, 10);
    const pki_comm_summary *s = fill();
    assert_int_equal(s->collective_count, 3);
    const pki_operation_row *r = &s->collectives[0];
    assert_int_equal(r->size, 1024);
    assert_int_equal(r->time.count, 2);
    assert_int_equal(r->bytes, 2600);
    assert_int_equal(r->exposed, 150);
    assert_float_equal(r->time.max, 200, 0);
    assert_float_equal(r->algbw.max, 15, 1e-9);
    assert_float_equal(r->busbw.min, 5.5 * 1.5, 1e-9);
    assert_int_equal(s->collectives[1].size, 4096);
    assert_float_equal(s->collectives[1].busbw.max, 6, 1e-9);
    assert_int_equal(s->collectives[2].op, PK_COMM_OP_BARRIER);
    assert_int_equal(s->collectives[2].busbw.count, 0);
    assert_int_equal(s->region_count, 2); /* two operations of one region */
    assert_string_equal(s->regions[0].region, "backward");
    assert_int_equal(s->regions[0].bytes, 6696);
    assert_int_equal(s->slowest_count, 4);
    assert_int_equal(s->slowest[0].duration, 1024);
    assert_int_equal(s->slowest[3].duration, 10);
    assert_int_equal(s->unmeasured, 0);
}

static void communicators(void **state)
{
    (void)state;
    add(0, 4, PK_COMM_OP_ALL_REDUCE, 8, 0, 100);
    pki_comm_figures_add(c, &(pki_timed_operation){.comm = 1,
                                                   .ranks = 2,
                                                   .op = PK_COMM_OP_SEND,
                                                   .bytes = 5,
                                                   .start = 10,
                                                   .end = 20,
                                                   .exposed = 99,
                                                   .in_flight = 3});
    const pki_comm_summary *s = fill();
    assert_int_equal(s->comm_count, 3);
    assert_string_equal(s->comms[0].library, "MPI");
    assert_int_equal(s->comms[0].completed, 6);
    assert_int_equal(s->comms[1].in_flight, 3);
    assert_int_equal(s->comms[1].exposed, 10); /* never more than it took */
    assert_string_equal(s->comms[2].name, "dp");
    assert_int_equal(s->comms[2].calls, 0);
    assert_int_equal(s->comms[2].enqueued, 1);
    assert_string_equal(s->regions[1].region, "");
}

/* One of which nothing is known, and one that has done nothing. */
static void strangers(void **state)
{
    (void)state;
    comms_known = 2;
    add(5, 2, PK_COMM_OP_SEND, 1, 0, 1);
    const pki_comm_summary *s = fill();
    assert_int_equal(s->comm_count, 2);
    assert_string_equal(s->comms[0].name, "world");
    assert_string_equal(s->comms[1].name, "(unknown)");
    assert_int_equal(s->collectives[0].comm, 1);
}

static void the_slowest_are_kept(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        add(0, 4, PK_COMM_OP_ALL_REDUCE, 8, i, (i * 37) % 100);
    const pki_comm_summary *s = fill();
    assert_int_equal(s->slowest_count, PKI_COMM_FIGURES_SLOWEST);
    for (size_t i = 0; i < s->slowest_count; i++)
        assert_int_equal(s->slowest[i].duration, 99 - i);
}

/* A reversed one lasts nothing; one of no duration has no bandwidth. */
static void no_time_at_all(void **state)
{
    (void)state;
    add(0, 4, PK_COMM_OP_ALL_REDUCE, 8, 5, 0);
    pki_comm_figures_add(c, &(pki_timed_operation){.ranks = 4, .bytes = 8, .start = 9, .end = 3});
    const pki_comm_summary *s = fill();
    assert_int_equal(s->collectives[0].time.count, 2);
    assert_float_equal(s->collectives[0].time.max, 0, 0);
    assert_int_equal(s->collectives[0].busbw.count, 0);
}

static void too_many_rows(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PKI_COMM_FIGURES_ROWS; i++)
        add(i, 2, PK_COMM_OP_SEND, 1, 0, 1);
    const pki_comm_summary *s = fill();
    assert_int_equal(s->comm_count, PKI_COMM_FIGURES_ROWS);
    assert_int_equal(s->collective_count, PKI_COMM_FIGURES_ROWS / 2);
    assert_int_equal(s->unmeasured, PKI_COMM_FIGURES_ROWS / 2);
}

static void nothing(void **state)
{
    (void)state;
    comms_known = 0;
    assert_int_equal(fill()->comm_count, 0);
    pki_comm_figures_add(NULL, NULL);
    assert_true(pki_comm_figures_build_rows(NULL, facts_of, name_of, NULL, &summary));
}

static void add_by(const char *algorithm, const char *protocol, uint32_t channels)
{
    pki_comm_figures_add(c, &(pki_timed_operation){.comm = 1,
                                                   .ranks = 2,
                                                   .op = PK_COMM_OP_ALL_REDUCE,
                                                   .bytes = 4096,
                                                   .end = 10,
                                                   .algorithm = algorithm,
                                                   .protocol = protocol,
                                                   .channels = channels});
}

static void algorithms(void **state)
{
    char name[60];
    (void)state;
    add_by("RING", "LL", 2);
    add_by("TREE", "LL", 4);
    add_by("TREE", NULL, 4);
    add_by("TREE", "LL", 8);
    add_by(NULL, NULL, 0);
    add_by("", "LL", 0); /* not told */
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    add_by(name, name, 0);
    add_by(name, name, 0); /* cut, and the same even so */
    add_by(name, name, 0);
    const pki_operation_row *row = fill()->collectives;
    assert_int_equal(row->time.count, 9);
    assert_int_equal(row->way_count, 4);
    assert_int_equal(row->ways[0].calls, 3);
    assert_int_equal(strlen(row->ways[0].algorithm), 23);
    assert_string_equal(row->ways[1].algorithm, "TREE");
    assert_string_equal(row->ways[1].protocol, "LL");
    assert_int_equal(row->ways[1].calls, 2);
    assert_true(row->ways[1].channels > 5.9 && row->ways[1].channels < 6.1);
    assert_string_equal(row->ways[2].algorithm, "RING");
    assert_string_equal(row->ways[3].protocol, "");
}

static void too_many_algorithms(void **state)
{
    static const char *const protocols[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    (void)state;
    for (size_t i = 0; i < PKI_COUNT_OF(protocols); i++)
        add_by("RING", protocols[i], 1);
    const pki_operation_row *row = fill()->collectives;
    assert_int_equal(row->way_count, PKI_COMM_ALGORITHMS);
    assert_string_equal(row->ways[0].algorithm, "(others)");
    assert_int_equal(row->ways[0].calls, 3);
}

/* Whichever is told first; as long as the step is one of the last. */
static void the_steps_of_the_slowest(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        pki_comm_figures_step(c, i, 100 * i, 100 * (i + 1));
    add(1, 2, PK_COMM_OP_SEND, 8, 299, 500);  /* step 2 */
    add(1, 2, PK_COMM_OP_SEND, 8, 300, 400);  /* step 3 */
    add(1, 2, PK_COMM_OP_SEND, 8, 1050, 300); /* to come */
    add(1, 2, PK_COMM_OP_SEND, 8, 9000, 200); /* in none */
    pki_comm_figures_step(c, 10, 1000, 1100);
    pki_comm_figures_step(c, 11, 1040, 1200); /* another thread's */
    const pki_comm_call_row *slow = fill()->slowest;
    assert_true(slow[0].in_step && slow[1].in_step && slow[2].in_step && !slow[3].in_step);
    assert_int_equal(slow[0].step, 2);
    assert_int_equal(slow[1].step, 3);
    assert_int_equal(slow[2].step, 10);
    for (uint64_t i = 0; i < PKI_COMM_FIGURES_STEPS; i++)
        pki_comm_figures_step(c, 100 + i, 10000 + i, 10001 + i);
    add(1, 2, PK_COMM_OP_SEND, 8, 10000, 700); /* still known */
    add(1, 2, PK_COMM_OP_SEND, 8, 550, 600);   /* no longer */
    slow = fill()->slowest;
    assert_true(slow[0].in_step && !slow[1].in_step && slow[2].in_step);
    pki_comm_figures_step(NULL, 0, 0, 1);
}

#define with_collectives(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static const struct CMUnitTest collectives_tests[] = {
    with_collectives(algorithms),
    with_collectives(each_moment_is_waited_for_once),
    with_collectives(too_many_algorithms),
    with_collectives(the_steps_of_the_slowest),
    cmocka_unit_test(formulas),
    cmocka_unit_test(classes),
    with_collectives(rows),
    with_collectives(communicators),
    with_collectives(strangers),
    with_collectives(the_slowest_are_kept),
    with_collectives(nothing),
    with_collectives(no_time_at_all),
    with_collectives(too_many_rows),
};

/* ---- partners and sequences ---- */

/* With whom messages are exchanged, and the operations that all their ranks choose alike. */

#define ID UINT64_C(0xC0FFEE)

static pki_timed_operation message(uint32_t from, uint32_t to, bool received, uint64_t tag,
                                   uint64_t bytes)
{
    return (pki_timed_operation){.op = received ? PK_COMM_OP_RECV : PK_COMM_OP_SEND,
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

/* -- partners -- */

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
    all.op = PK_COMM_OP_BROADCAST;
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

/* -- sequences -- */

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

static void exchange_add(pki_comm_sequences *s, pki_timed_operation op)
{
    assert_true(pki_comm_sequences_add(s, &op));
}

/* What one end has chosen, the other one has, too, in whatever order other messages come. */
static void both_ends_choose_alike(void **state)
{
    pki_comm_sequences *from = sequences(), *to = sequences();
    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        exchange_add(from, message(3, 5, false, i % 3, i));
        exchange_add(from, message(3, 6, false, 1, i));
        exchange_add(to, message(4, 5, true, 1, i));
    }
    for (uint64_t tag = 3; tag-- > 0;) /* tags one after the other */
        for (uint64_t i = tag; i < 200; i += 3)
            exchange_add(to, message(3, 5, true, tag, i));
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
            .op = PK_COMM_OP_ALL_REDUCE, .ranks = 4, .comm_id = ID, .sequence = i};
        exchange_add(few, all);
        exchange_add(many, all);
        for (int k = 0; k < 9; k++)
            exchange_add(many, message(1, 2, false, (uint64_t)k, 8));
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
    other.op = PK_COMM_OP_OTHER;
    exchange_add(s, no_id);
    exchange_add(s, no_self);
    exchange_add(s, nobody);
    exchange_add(s, shared);
    exchange_add(s, other);
    assert_int_equal(s->operations, 0);
    assert_null(s->rows);
    drop(s);
}

static const struct CMUnitTest exchange_tests[] = {
    cmocka_unit_test(partners_are_counted),
    cmocka_unit_test(too_many_partners_are_one),
    cmocka_unit_test(both_ends_choose_alike),
    cmocka_unit_test(fewer_are_a_part_of_more),
    cmocka_unit_test(what_cannot_be_found_again_is_not_chosen),
};

int main(void)
{
    int failed = cmocka_run_group_tests(collectives_tests, NULL, NULL);
    failed += cmocka_run_group_tests(exchange_tests, NULL, NULL);
    return failed;
}
