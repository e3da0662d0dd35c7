/* Who waited for whom: forged operations and ranks, after the run and while it goes on. */
#include "job_forge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/comm.h>

#include "job/window.h"
#include "job/verdicts/verdicts.h"

/* ---- who waited for whom ---- */

/* tools/job/figures/waits.h, exchange.h: forged operations of which it is known who waited for
 * whom. */

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define RANKS 8

typedef struct world {
    pki_summary ranks[RANKS];
    pki_sequence_row rows[RANKS][400];
    size_t count[RANKS];
    const char *clocks[RANKS];
    uint64_t origins[RANKS]; /* of the rank's clock; operations are told on the true one */
    pki_job all;
    pki_job_waits waits;
} world;

static world w;

static void begin(void)
{
    memset(&w, 0, sizeof w);
    for (size_t r = 0; r < RANKS; r++) {
        w.clocks[r] = "one";
        w.origins[r] = 5 * MS * r;
    }
}

/* Moments are the true ones; each rank's session has begun at another. */
static void saw(size_t rank, uint64_t key, uint32_t op, int32_t partner, uint64_t start,
                uint64_t end, uint64_t waited, uint64_t bytes)
{
    w.rows[rank][w.count[rank]++] = (pki_sequence_row){.key = key,
                                                       .start = start + 40 * MS - 5 * MS * rank,
                                                       .duration = end - start,
                                                       .waited = waited,
                                                       .bytes = bytes,
                                                       .op = op,
                                                       .ranks = RANKS,
                                                       .partner = partner};
}

static void message(uint64_t key, size_t from, size_t to, uint64_t send, uint64_t sent,
                    uint64_t receive, uint64_t received)
{
    saw(from, key, PK_COMM_OP_SEND, (int32_t)to, send, sent, sent - send, 100);
    saw(to, key, PK_COMM_OP_RECV, (int32_t)from, receive, received, received - receive, 100);
}

static void make(uint64_t one_in)
{
    for (size_t r = 0; r < RANKS; r++) {
        pki_summary *s = &w.ranks[r];
        pki_summary_init(s);
        s->run = (pki_run){.program = strdup("p"),
                           .host = strdup(w.clocks[r]),
                           .source = strdup("session"),
                           .rank = (int32_t)r,
                           .world_size = RANKS,
                           .wall = 100 * MS,
                           .start_unix = 7 + r,
                           .complete = true,
                           .clock_uncertainty_ns = 300};
        pki_sequences *q = &s->comm.sequences;
        q->operations = w.count[r];
        q->one_in = one_in;
        q->origin = w.origins[r];
        q->clock = strdup(w.clocks[r]);
        q->rows = calloc(w.count[r] + 1, sizeof *q->rows);
        memcpy(q->rows, w.rows[r], w.count[r] * sizeof *q->rows);
        q->row_count = w.count[r];
        s->stages.width = 1;
    }
}

static pki_partner_row *partners(size_t rank, size_t count)
{
    pki_comm_summary *c = &w.ranks[rank].comm;
    c->partner_count = count;
    return c->partners = calloc(count + 1, sizeof *c->partners);
}

static void find(uint64_t one_in)
{
    if (one_in)
        make(one_in);
    assert_int_equal(pki_job_of(&w.all, w.ranks, RANKS, &(pki_job_steps){0}), PKI_JOB_MADE);
    assert_true(pki_job_find_waits(&w.waits, &w.all));
}

static void end(void)
{
    pki_job_waits_finish(&w.waits);
    pki_job_finish(&w.all);
}

static double of(pki_job_wait sort, size_t rank)
{
    return w.waits.by[sort][rank];
}

/* -- the wait states -- */

/* One operation of four was drawn: of n waits of w each, 4 w sqrt(n) sqrt(3 / 4). */
static void what_is_scaled_up_has_an_error(void **state)
{
    (void)state;
    begin();
    for (uint64_t i = 0; i < 5; i++)
        message(8 + 4 * i, 0, 1, (9 + 20 * i) * MS, (10 + 20 * i) * MS, (7 + 20 * i) * MS,
                (11 + 20 * i) * MS);
    find(4);
    assert_true(of(PKI_JOB_LATE_SENDER, 1) == 4 * 5 * 2e6);
    assert_true(fabs(w.waits.error[PKI_JOB_LATE_SENDER] - 4 * 2e6 * sqrt(5 * 0.75)) < 1);
    end();
    begin();
    message(8, 0, 1, 9 * MS, 10 * MS, 2 * MS, 11 * MS);
    find(1);
    assert_true(w.waits.error[PKI_JOB_LATE_SENDER] == 0);
    end();
}

static void late_senders_and_receivers(void **state)
{
    (void)state;
    begin();
    message(1, 0, 1, 9 * MS, 10 * MS, 2 * MS, 11 * MS);        /* the sender is 7 ms late */
    message(2, 2, 3, 3 * MS, 8 * MS, 7 * MS, 9 * MS);          /* the receiver 4 ms */
    message(3, 4, 5, 1 * MS, 2 * MS, 6 * MS, 6 * MS + 9 * US); /* ...or the send did not wait */
    saw(6, 4, PK_COMM_OP_SEND, 7, 5 * MS, 6 * MS, 0, 100); /* requests: waited at the end alone */
    saw(7, 4, PK_COMM_OP_RECV, 6, 1 * MS, 7 * MS, 3 * MS, 100);
    find(4);
    assert_null(w.waits.why_not);
    assert_int_equal(w.waits.messages, 4);
    assert_true(of(PKI_JOB_LATE_SENDER, 1) == 4 * 7e6);
    assert_true(of(PKI_JOB_LATE_RECEIVER, 2) == 4 * 4e6);
    assert_true(of(PKI_JOB_LATE_RECEIVER, 4) == 0);
    assert_true(of(PKI_JOB_LATE_SENDER, 7) == 4 * 1e6);
    assert_true(w.waits.caused[0] == 4 * 7e6 && w.waits.caused[3] == 4 * 4e6);
    end();
}

static void exchanged(size_t rank, uint64_t sends, int32_t to, uint64_t receives, int32_t from,
                      uint64_t start, uint64_t end)
{
    saw(rank, sends, PK_COMM_OP_SEND_RECV, to, start, end, end - start, 100);
    saw(rank, receives, PK_COMM_OP_RECV, from, start - 100, end - 50, end - start - 50, 100);
}

/* What the receive waited for is not the send's wait, too; and who was late is no slow link. */
static void both_halves_of_a_call(void **state)
{
    (void)state;
    begin();
    exchanged(0, 1, 1, 2, 1, 1 * MS, 6 * MS + 9 * US); /* the other one comes at 6 ms */
    exchanged(1, 2, 0, 1, 0, 6 * MS, 6 * MS + 9 * US);
    exchanged(2, 11, 3, 12, 4, 1 * MS, 9 * MS + 9 * US); /* sent at 3 ms, received at 9 ms */
    saw(3, 11, PK_COMM_OP_RECV, 2, 9 * MS, 9 * MS + 9 * US, 9 * US, 100);
    saw(4, 12, PK_COMM_OP_SEND, 2, 3 * MS, 3 * MS + 9 * US, 9 * US, 100);
    saw(2, 13, PK_COMM_OP_SEND_RECV, 3, 20 * MS, 28 * MS, 8 * MS,
        100); /* what it got is not known */
    saw(3, 13, PK_COMM_OP_RECV, 2, 28 * MS, 28 * MS + US, US, 100);
    find(1);
    assert_true(of(PKI_JOB_LATE_SENDER, 0) == 5e6 && of(PKI_JOB_LATE_SENDER, 1) == 0);
    assert_true(of(PKI_JOB_LATE_RECEIVER, 0) == 0 && of(PKI_JOB_LATE_RECEIVER, 1) == 0);
    assert_true(of(PKI_JOB_LATE_SENDER, 2) == 2e6 &&
                of(PKI_JOB_LATE_RECEIVER, 2) == 6e6 + 0.75 * 8e6);
    assert_true(w.waits.caused[1] == 5e6 && w.waits.caused[3] == 12e6 && w.waits.caused[4] == 2e6);
    assert_true(w.waits.messages == 5 && w.waits.link_count == 0);
    end();
}

static void waits_at_collectives(void **state)
{
    (void)state;
    begin();
    for (size_t r = 0; r < RANKS; r++) {
        uint64_t start = (10 + r) * MS;
        saw(r, 1, PK_COMM_OP_ALL_REDUCE, -1, start, 20 * MS, 20 * MS - start, 8);
        saw(r, 2, PK_COMM_OP_BARRIER, -1, start + 100 * MS, 120 * MS, 20 * MS - start, 0);
        saw(r, 3, PK_COMM_OP_BROADCAST, 3, start + 200 * MS, 220 * MS, 20 * MS - start, 8);
        saw(r, 4, PK_COMM_OP_REDUCE, 0, start + 300 * MS, 320 * MS, 20 * MS - start, 8);
    }
    saw(2, 9, PK_COMM_OP_ALL_REDUCE, -1, 1 * MS, 2 * MS, MS, 8); /* nobody else has chosen it */
    find(1);
    assert_int_equal(w.waits.collectives, 4);
    assert_int_equal(w.waits.alone, 1);
    for (size_t r = 0; r < RANKS; r++) {
        assert_true(of(PKI_JOB_WAIT_NXN, r) == (double)(7 - r) * 1e6);
        assert_true(of(PKI_JOB_WAIT_BARRIER, r) == (double)(7 - r) * 1e6);
        assert_true(of(PKI_JOB_LATE_BROADCAST, r) == (r < 3 ? (double)(3 - r) * 1e6 : 0));
        assert_true(of(PKI_JOB_EARLY_REDUCE, r) == (r == 0 ? 1e6 : 0));
    }
    assert_true(w.waits.caused[7] == 2 * 28e6);
    end();
}

static double waits_of(size_t rank)
{
    double sum = 0;
    for (int sort = 0; sort < PKI_JOB_WAITS; sort++)
        sum += of((pki_job_wait)sort, rank);
    return sum;
}

/* Started, by rank 7 later, and waited for from `waits` until `end`. */
static void started(uint64_t key, uint32_t op, uint64_t start, uint64_t late, uint64_t waits,
                    uint64_t late_waits, uint64_t end)
{
    for (size_t r = 0; r < RANKS; r++)
        saw(r, key, op, -1, r == 7 ? late : start, end, end - (r == 7 ? late_waits : waits), 8);
}

/* Until the last one has come it is known whom for; what has come before is not waited for; who
 * does not pass on what has come may be anyone. */
static void collectives_that_are_requests(void **state)
{
    (void)state;
    begin();
    started(1, PK_COMM_OP_ALL_REDUCE, 10 * MS, 60 * MS, 20 * MS, 60 * MS + US, 60 * MS + 10 * US);
    started(2, PK_COMM_OP_BARRIER, 100 * MS, 150 * MS, 160 * MS, 160 * MS, 160 * MS + 20 * US);
    uint64_t waits = 250 * MS + US; /* for both at once */
    started(3, PK_COMM_OP_ALL_REDUCE, 200 * MS, 220 * MS, 201 * MS, waits, 251 * MS);
    started(4, PK_COMM_OP_BARRIER, 200 * MS, 250 * MS, 201 * MS, waits, 251 * MS);
    for (size_t r = 0; r < RANKS; r++) { /* rank 3 has to be passed on something by another */
        uint64_t end = r == 3 ? 350 * MS : 301 * MS + 9 * US;
        saw(r, 5, PK_COMM_OP_ALL_REDUCE, -1, 300 * MS, end, end - 301 * MS, 8);
        end = r == 6 ? 421 * MS : 402 * MS; /* rank 6 comes later: there is nothing to move */
        saw(r, 6, PK_COMM_OP_ALL_TO_ALL, -1, end - 2 * MS, end, MS, 0);
    }
    make(1);
    for (size_t r = 0; r < RANKS; r++)
        w.ranks[r].run.wall = 500 * MS;
    find(0);
    assert_int_equal(w.waits.collectives, 6);
    assert_true(of(PKI_JOB_WAIT_NXN, 0) == 40e6 && of(PKI_JOB_WAIT_BARRIER, 0) == 49e6);
    assert_true(w.waits.caused[7] == 7 * 89e6 && waits_of(7) < 3e6);
    for (size_t r = 0; r < RANKS; r++) {
        double all = 10e3 + 20e3 + 1e6 + (r == 3 ? 49e6 : 9e3) + 1e6;
        assert_true(of(PKI_JOB_WAIT_UNKNOWN, r) == all - (r == 7 ? 2e3 : 0));
    }
    end();
}

/* -- each moment once -- */

#define STEP (10 * MS)

/* In each step all post receives from all others, and wait for all of them at once; rank r sends r
 * ms late, and 10 us after the last one everybody goes on. Of the operations those are kept whose
 * key this divides. */
static void wait_for_all(uint64_t steps, uint64_t one_in)
{
    begin();
    for (uint64_t i = 0; i < steps; i++)
        for (size_t to = 0; to < RANKS; to++)
            for (size_t from = 0; from < RANKS; from++) {
                uint64_t key = 1 + (i * RANKS + to) * RANKS + from, at = i * STEP;
                uint64_t sent = at + from * MS, end = at + 7 * MS + 10 * US;
                if (from == to || key * 0x9E3779B1u % 1021 % one_in)
                    continue;
                saw(from, key, PK_COMM_OP_SEND, (int32_t)to, sent, sent + US, 0, 100);
                saw(to, key, PK_COMM_OP_RECV, (int32_t)from, at, end, end - at, 100);
            }
    make(one_in);
}

/* What the file of a rank says that it waited for messages, and for collectives: each moment once,
 * and of each operation; three of them were waited for at once. */
static void waited(size_t rank, uint64_t messages, uint64_t collectives)
{
    pki_comm_summary *c = &w.ranks[rank].comm;
    c->comms = calloc(2, sizeof *c->comms);
    c->comm_count = 2;
    for (size_t i = 0; i < 2; i++)
        c->comms[i] = (pki_comm_row){
            .library = strdup("MPI"), .name = strdup("w"), .waited = i ? collectives : messages};
    c->collectives = calloc(1, sizeof *c->collectives);
    c->collective_count = 1;
    c->collectives[0] =
        (pki_operation_row){.comm = 1, .op = PK_COMM_OP_ALL_REDUCE, .exposed = 3 * collectives};
}

static double caused_by_all(void)
{
    double sum = 0;
    for (size_t r = 0; r < RANKS; r++)
        sum += w.waits.caused[r];
    return sum;
}

/* 7 ms in each step, and not as often as there are requests: who comes last keeps all waiting. */
static void requests_that_are_waited_for_at_once(void **state)
{
    (void)state;
    wait_for_all(10, 1);
    find(0);
    for (size_t r = 0; r < RANKS; r++)
        assert_true(of(PKI_JOB_LATE_SENDER, r) == (r == 7 ? 60e6 : 70e6));
    assert_true(w.waits.caused[7] == 7 * 70e6 && w.waits.caused[6] == 60e6);
    assert_true(caused_by_all() == 7 * 70e6 + 60e6);
    end();
}

/* A wait is chosen by any of its requests: scaled up by how many operations were not chosen, that
 * is nearly the sum over all requests again. */
static void chosen_requests_are_scaled_by_what_was_waited(void **state)
{
    (void)state;
    wait_for_all(50, 4);
    for (size_t r = 0; r < RANKS; r++) {
        waited(r, 50 * (7 * MS + 10 * US), 0);
        w.ranks[r].run.wall = 50 * STEP;
    }
    find(0);
    for (size_t r = 0; r < 7; r++)
        assert_in_range((uint64_t)of(PKI_JOB_LATE_SENDER, r), 180 * MS, 350 * MS);
    assert_true(w.waits.caused[7] > w.waits.caused[6]);
    end();
}

/* Collectives wait alone as a rule: their bound is their own. */
static void messages_and_collectives_are_scaled_apart(void **state)
{
    (void)state;
    wait_for_all(10, 1);
    for (uint64_t i = 0; i < 2; i++) /* two of eight, that were chosen */
        for (size_t r = 0; r < RANKS; r++)
            saw(r, 8000 + i, PK_COMM_OP_BARRIER, -1, (100 + i * 10 + r) * MS, (108 + i * 10) * MS,
                (8 - r) * MS, 0);
    for (size_t r = 0; r < RANKS; r++) {
        free(w.ranks[r].comm.sequences.rows);
        free(w.ranks[r].comm.sequences.clock);
        free(w.ranks[r].run.program);
        free(w.ranks[r].run.host);
        free(w.ranks[r].run.source);
    }
    make(4);
    for (size_t r = 0; r < RANKS; r++) {
        waited(r, 40 * (7 * MS + 10 * US), 8 * (8 - r) * MS);
        w.ranks[r].run.wall = 500 * MS;
    }
    find(0);
    for (size_t r = 0; r < RANKS; r++) {
        assert_true(of(PKI_JOB_WAIT_BARRIER, r) == 4 * 2 * (double)(7 - r) * 1e6);
        assert_true(fabs(of(PKI_JOB_LATE_SENDER, r) - 4 * (r == 7 ? 60e6 : 70e6)) < 1);
    }
    end();
}

/* Files of before there was such a figure: nobody waits longer than the run, or than in MPI. */
static void nobody_waits_longer_than_in_mpi(void **state)
{
    (void)state;
    wait_for_all(10, 1);
    for (size_t r = 0; r < RANKS; r++) {
        w.ranks[r].comm.sequences.one_in = 4;
        w.ranks[r].run.wall = 100 * MS;
        if (r)
            continue;
        w.ranks[0].region_count = 1;
        w.ranks[0].regions = calloc(1, sizeof *w.ranks[0].regions);
        w.ranks[0].regions[0].name = strdup("MPI_Waitall");
        w.ranks[0].regions[0].self = 50 * MS;
    }
    find(0);
    assert_in_range((uint64_t)waits_of(0), 49900 * US, 50000 * US);
    for (size_t r = 1; r < RANKS; r++)
        assert_in_range((uint64_t)waits_of(r), 85 * MS, 100 * MS);
    end();
}

/* Two processes of one node know each other's moments to the sum of their uncertainties. */
static void nothing_within_the_doubt(void **state)
{
    (void)state;
    begin();
    message(1, 0, 1, 1 * MS + 600, 2 * MS, 1 * MS, 2 * MS);
    message(2, 2, 3, 1 * MS + 601, 2 * MS, 1 * MS, 2 * MS);
    find(1);
    assert_true(of(PKI_JOB_LATE_SENDER, 1) == 0);
    assert_true(of(PKI_JOB_LATE_SENDER, 3) == 601);
    assert_int_equal(w.waits.doubt, 600);
    end();
}

/* Ranks 4 to 7 have a clock that is 50 s ahead; barriers bound it to 40 us, and a wait of 30 us
 * between nodes is none. A message that is numbered wrongly bounds nothing. */
static void clocks_of_other_nodes(void **state)
{
    (void)state;
    begin();
    for (size_t r = 4; r < RANKS; r++) {
        w.clocks[r] = "other";
        w.origins[r] += 50000 * MS;
    }
    for (uint64_t i = 0; i < 10; i++) { /* over the whole run: clocks may drift */
        uint64_t at = i * 10 * MS;
        for (size_t r = 0; r < RANKS; r++)
            saw(r, 10 + i, PK_COMM_OP_BARRIER, -1, at, at + 40 * US, 40 * US, 0);
    }
    message(30, 0, 4, 60 * MS, 61 * MS, 50 * MS, 51 * MS); /* received before it was sent */
    message(3, 1, 5, 30 * MS + 30 * US, 31 * MS, 30 * MS, 32 * MS);
    message(4, 1, 5, 45 * MS, 46 * MS, 40 * MS, 47 * MS);
    find(1);
    assert_in_range(w.waits.doubt, 40 * US, 60 * US);
    assert_true(of(PKI_JOB_LATE_SENDER, 5) > 4.9e6 && of(PKI_JOB_LATE_SENDER, 5) < 5.1e6);
    end();
}

/* Without bounds real times are all there is, and nothing is claimed. */
static void clocks_that_nothing_bounds(void **state)
{
    (void)state;
    begin();
    for (size_t r = 4; r < RANKS; r++)
        w.clocks[r] = "other";
    message(1, 0, 4, 45 * MS, 46 * MS, 40 * MS, 47 * MS);
    message(2, 0, 1, 45 * MS, 46 * MS, 40 * MS, 47 * MS);
    find(1);
    assert_true(of(PKI_JOB_LATE_SENDER, 4) == 0);
    assert_true(of(PKI_JOB_LATE_SENDER, 1) == 5e6);
    end();
}

static void without_sequences(void **state)
{
    (void)state;
    begin();
    find(1);
    assert_non_null(w.waits.why_not);
    end();
}

/* -- links -- */

/* In a ring each sends to the next one, 20 messages of 1 to 5 us; `slow`: those from 3, the first
 * `so_many`. */
static void ring(uint64_t slow, uint64_t so_many)
{
    begin();
    for (size_t r = 0; r < RANKS; r++)
        for (uint64_t i = 0; i < 20; i++) {
            uint64_t at = (1 + i) * MS, takes = (1 + (i * 7 + r) % 5) * US;
            takes += r == 3 && i < so_many ? slow : 0;
            message(1 + 100 * r + i, r, (r + 1) % RANKS, at, at + 1, at, at + takes);
        }
    make(1);
    for (size_t r = 0; r < RANKS; r++)
        *partners(r, 1) =
            (pki_partner_row){.rank = (int32_t)((r + 1) % RANKS), .sent = 20, .sent_bytes = 2000};
    find(0);
}

static void a_slow_link_is_named(void **state)
{
    (void)state;
    ring(200 * US, 20);
    assert_true(w.waits.links[0].slow);
    assert_int_equal(w.waits.links[0].from, 3);
    assert_int_equal(w.waits.links[0].to, 4);
    assert_in_range((uint64_t)w.waits.links[0].transfer, 200 * US, 210 * US);
    for (size_t i = 1; i < w.waits.link_count; i++)
        assert_false(w.waits.links[i].slow);
    end();
}

/* Of most messages the receiver comes when they are there: the others tell. */
static void a_slow_link_is_named_by_those_that_were_awaited(void **state)
{
    (void)state;
    begin();
    for (size_t r = 0; r < RANKS; r++)
        for (uint64_t i = 0; i < 20; i++) {
            uint64_t at = (1 + i) * MS, late = i < 16 ? 300 * US : 0;
            uint64_t takes = r == 3 ? 250 * US : 2 * US;
            uint64_t end = at + (takes > late ? takes : late + i * 100);
            message(1 + 100 * r + i, r, (r + 1) % RANKS, at, at + 1, at + late, end);
        }
    make(1);
    *partners(3, 1) = (pki_partner_row){.rank = 4, .sent = 20, .sent_bytes = 2000};
    find(0);
    assert_true(w.waits.links[0].slow && w.waits.links[0].from == 3);
    assert_int_equal(w.waits.links[0].looked_at, 4);
    assert_false(w.waits.links[1].slow);
    end();
}

/* Less than a time slice may be the scheduler's doing where processors are lacking. */
static void what_the_scheduler_explains_is_no_link(void **state)
{
    (void)state;
    ring(200 * US, 20);
    for (size_t r = 0; r < RANKS; r++)
        w.all.ranks[r].processor = (pki_processor){100 * MS, 60 * MS, 10 * MS};
    pki_job_waits_finish(&w.waits);
    assert_true(pki_job_find_waits(&w.waits, &w.all));
    assert_false(w.waits.links[0].slow);
    end();
}

static void no_link_is_accused(void **state)
{
    (void)state;
    ring(0, 20);
    assert_int_equal(w.waits.link_count, RANKS);
    assert_false(w.waits.links[0].slow);
    end();
    ring(20 * US, 20); /* slow, but 0.4 ms of 100 ms cost nothing */
    assert_false(w.waits.links[0].slow);
    end();
    ring(400 * US, 16); /* while one of the two had no processor: a link is slow always */
    assert_false(w.waits.links[0].slow);
    end();
}

/* From host to host it takes longer than within one, of all pairs that are there. */
static void the_way_between_hosts_is_no_slow_link(void **state)
{
    (void)state;
    begin();
    for (size_t r = 0; r < RANKS; r++)
        for (uint64_t i = 0; i < 20; i++) {
            uint64_t at = (1 + i) * MS, takes = (r == 3 || r == 7 ? 250 : 1 + (i * 7 + r) % 5) * US;
            message(1 + 100 * r + i, r, (r + 1) % RANKS, at, at + 1, at, at + takes);
        }
    make(1);
    for (size_t r = 0; r < RANKS; r++)
        *partners(r, 1) =
            (pki_partner_row){.rank = (int32_t)((r + 1) % RANKS), .sent = 20, .sent_bytes = 2000};
    find(0);
    assert_true(w.waits.links[0].slow && w.waits.links[1].slow);
    for (size_t r = 4; r < RANKS; r++)
        w.all.ranks[r].host = 1;
    pki_job_waits_finish(&w.waits);
    assert_true(pki_job_find_waits(&w.waits, &w.all));
    for (size_t i = 0; i < w.waits.link_count; i++)
        assert_false(w.waits.links[i].slow);
    end();
}

/* -- who talks to whom -- */

static void a_matrix_of_all_ranks(void **state)
{
    (void)state;
    begin();
    make(1);
    partners(0, 2)[0] = (pki_partner_row){
        .rank = 1, .sent = 4, .sent_bytes = 40, .received = 9, .received_bytes = 90};
    w.ranks[0].comm.partners[1] =
        (pki_partner_row){.rank = PKI_PARTNERS_OTHER, .sent = 3, .sent_bytes = 30};
    *partners(1, 1) = (pki_partner_row){
        .rank = 0, .sent = 9, .sent_bytes = 90, .received = 4, .received_bytes = 40};
    *partners(2, 1) = (pki_partner_row){.rank = 0, .received = 2, .received_bytes = 20};
    find(0);
    pki_job_exchange e;
    assert_true(pki_job_find_exchange(&e, &w.all));
    assert_int_equal(e.pair_count, 3);
    assert_true(e.pairs[0].from == 0 && e.pairs[0].to == 1 && e.pairs[0].bytes == 40);
    assert_true(e.pairs[1].from == 0 && e.pairs[1].to == 2 && e.pairs[1].messages == 2);
    assert_true(e.pairs[2].from == 1 && e.pairs[2].to == 0 && e.pairs[2].messages == 9);
    assert_true(e.messages == 15 && e.bytes == 150);
    assert_true(e.other_messages == 1 && e.other_bytes == 10);
    pki_job_exchange_finish(&e);
    end();
}

static const struct CMUnitTest waits_tests[] = {
    cmocka_unit_test(what_is_scaled_up_has_an_error),
    cmocka_unit_test(late_senders_and_receivers),
    cmocka_unit_test(both_halves_of_a_call),
    cmocka_unit_test(waits_at_collectives),
    cmocka_unit_test(collectives_that_are_requests),
    cmocka_unit_test(requests_that_are_waited_for_at_once),
    cmocka_unit_test(chosen_requests_are_scaled_by_what_was_waited),
    cmocka_unit_test(messages_and_collectives_are_scaled_apart),
    cmocka_unit_test(nobody_waits_longer_than_in_mpi),
    cmocka_unit_test(nothing_within_the_doubt),
    cmocka_unit_test(clocks_of_other_nodes),
    cmocka_unit_test(clocks_that_nothing_bounds),
    cmocka_unit_test(without_sequences),
    cmocka_unit_test(a_slow_link_is_named),
    cmocka_unit_test(no_link_is_accused),
    cmocka_unit_test(the_way_between_hosts_is_no_slow_link),
    cmocka_unit_test(a_slow_link_is_named_by_those_that_were_awaited),
    cmocka_unit_test(what_the_scheduler_explains_is_no_link),
    cmocka_unit_test(a_matrix_of_all_ranks),
};

/* ---- who is late while a job runs ---- */

/* Portions of steps in a window that moves on, with the verdicts of `pk job`. The jobs are forged;
 * seeds are fixed: the same on every machine. */

#define STEPS 60

/* A job, a step a portion. */
typedef struct run {
    size_t ranks, at;
    pki_summary *all;
    bool *culprit;
    pk_job_steps_ *given;
    pki_job_window *window;
    pk_job_word_ word;
} run;

static void forge_again(run *r, const forge *f)
{
    for (size_t i = 0; r->all && i < r->ranks; i++)
        pki_summary_finish(&r->all[i]);
    free(r->all);
    free(r->culprit);
    r->all = calloc(f->ranks, sizeof *r->all);
    r->culprit = calloc(f->ranks, sizeof *r->culprit);
    forge_make(f, r->all, r->culprit);
}

static run stragglers_begin(const forge *f)
{
    run r = {.ranks = f->ranks};
    forge_again(&r, f);
    char *hosts = calloc(f->ranks, PKI_WINDOW_HOST);
    for (size_t i = 0; i < f->ranks; i++)
        snprintf(hosts + i * PKI_WINDOW_HOST, PKI_WINDOW_HOST, "%s", r.all[i].run.host);
    r.window = pki_job_window_create((int32_t)f->ranks, hosts);
    r.given = calloc(f->ranks, sizeof *r.given);
    free(hosts);
    assert_non_null(r.window);
    return r;
}

static void finish(run *r)
{
    for (size_t i = 0; i < r->ranks; i++)
        pki_summary_finish(&r->all[i]);
    free(r->all);
    free(r->culprit);
    free(r->given);
    pki_job_window_destroy(r->window);
}

static void give(const run *r, size_t rank, size_t step)
{
    const pki_stage_summary *s = &r->all[rank].stages;
    const uint64_t *row = s->loops[0].numbers + step * s->width;
    pk_job_steps_ *to = &r->given[rank];
    *to = (pk_job_steps_){.first = r->at,
                          .steps = row[PKI_BLOCK_STEPS],
                          .time = row[PKI_BLOCK_TIME],
                          .items = row[PKI_BLOCK_ITEMS],
                          .observed = r->all[rank].steps.processor.observed,
                          .running = r->all[rank].steps.processor.running,
                          .ready = r->all[rank].steps.processor.ready};
    if (s->loops[0].no_processor) {
        to->no_processor = s->loops[0].no_processor[step];
        to->told = 1;
    }
    if (s->loops[0].seats) {
        to->processor = (uint32_t)s->loops[0].seats[2 * step];
        to->on_it = (uint32_t)s->loops[0].seats[2 * step + 1];
    }
    for (size_t i = 0; i < s->stage_count; i++) {
        snprintf(to->stages[i].name, sizeof to->stages[i].name, "%s", s->stages[i].name);
        to->stages[i].kind = (uint8_t)s->stages[i].kind;
        to->stages[i].self = row[PKI_BLOCK_HEAD + i];
    }
}

static void judge(run *r)
{
    pki_job_window_add(r->window, r->given);
    assert_true(pki_job_window_judge(r->window, &r->word));
    r->at++;
}

/* Of what there is already. */
static void judge_again(run *r)
{
    assert_true(pki_job_window_judge(r->window, &r->word));
}

static void next(run *r)
{
    for (size_t i = 0; i < r->ranks; i++)
        give(r, i, r->at % STEPS);
    judge(r);
}

static size_t culprit_of(const run *r)
{
    for (size_t i = 0; i < r->ranks; i++)
        if (r->culprit[i])
            return i;
    return SIZE_MAX;
}

static void nobody_is_named_in_a_healthy_job(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        run r = stragglers_begin(
            &(forge){.seed = seed, .ranks = 16, .steps = STEPS, .varying = seed % 2});
        while (r.at < 2 * STEPS) {
            next(&r);
            assert_int_equal(r.word.count, 0);
        }
        assert_int_equal(r.word.last, r.at - 1);
        finish(&r);
    }
}

static void who_is_late_is_named_and_nobody_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        forge f = {.seed = 100 + seed,
                   .ranks = 16,
                   .steps = STEPS,
                   .slow = 0.08,
                   .culprits = 1,
                   .stage = FORGE_LOAD};
        char where[60];
        run r = stragglers_begin(&f);
        while (r.at < 40) {
            next(&r);
            assert_true(r.word.count <= 1);
        }
        assert_int_equal(r.word.count, 1);
        assert_int_equal(r.word.late[0].rank, culprit_of(&r));
        assert_true(r.word.late[0].by > 0.06 && r.word.late[0].by < 0.10);
        snprintf(where, sizeof where, "in %s: ", forge_stages[FORGE_LOAD]);
        assert_non_null(strstr(r.word.late[0].text, where));
        assert_int_equal(r.word.first, r.at - PKI_WINDOW_BLOCKS);
        finish(&r);
    }
}

/* What was before is forgotten. */
static void it_begins_and_ends(void **state)
{
    (void)state;
    forge healthy = {.seed = 7, .ranks = 8, .steps = STEPS}, late = healthy;
    late.slow = 0.10;
    late.culprits = 1;
    late.stage = FORGE_FORWARD;
    run r = stragglers_begin(&healthy);
    while (r.at < 50)
        next(&r);
    assert_int_equal(r.word.count, 0);
    forge_again(&r, &late);
    size_t since = r.at;
    while (r.word.count == 0 && r.at < since + PKI_WINDOW_BLOCKS + PKI_WINDOW_NAMED)
        next(&r);
    assert_int_equal(r.word.count, 1);
    forge_again(&r, &healthy);
    since = r.at;
    while (r.word.count && r.at < since + PKI_WINDOW_BLOCKS + PKI_WINDOW_CLEARED)
        next(&r);
    assert_int_equal(r.word.count, 0);
    finish(&r);
}

static void a_host_is_one_finding(void **state)
{
    (void)state;
    forge f = {.seed = 3,
               .ranks = 32,
               .per_host = 8,
               .steps = STEPS,
               .slow = 0.10,
               .host = true,
               .stage = FORGE_BACKWARD};
    run r = stragglers_begin(&f);
    while (r.at < 40)
        next(&r);
    assert_int_equal(r.word.count, 1);
    assert_int_equal(r.word.late[0].rank, -1);
    assert_int_equal(r.word.late[0].ranks, 8);
    assert_string_equal(r.word.late[0].host, r.all[31].run.host);
    finish(&r);
}

/* More are late than a word has room for: how many is said. */
static void more_than_have_room(void **state)
{
    (void)state;
    forge f = {
        .seed = 5, .ranks = 48, .steps = STEPS, .slow = 0.2, .culprits = 10, .stage = FORGE_LOAD};
    run r = stragglers_begin(&f);
    while (r.at < 40)
        next(&r);
    assert_int_equal(r.word.count, 10);
    pk_job_word_ before = r.word;
    while (r.at < 55) {
        next(&r);
        for (size_t i = 0; i < PK_JOB_LATE_; i++) /* with each verdict another one is latest */
            assert_int_equal(r.word.late[i].rank, before.late[i].rank);
    }
    finish(&r);
}

static void ranks_without_steps_are_not_compared(void **state)
{
    (void)state;
    forge f = {
        .seed = 9, .ranks = 8, .steps = STEPS, .slow = 0.2, .culprits = 1, .stage = FORGE_LOAD};
    run r = stragglers_begin(&f);
    size_t culprit = culprit_of(&r);
    while (r.at < 40) {
        for (size_t i = 0; i < r.ranks; i++)
            give(&r, i, r.at);
        r.given[culprit] = (pk_job_steps_){0};
        judge(&r);
    }
    assert_int_equal(r.word.count, 0);
    for (size_t i = 0; i < r.ranks; i++)
        r.given[i] = (pk_job_steps_){.ended = 1};
    judge(&r);
    finish(&r);
}

static void nothing_is_said_before_there_are_steps(void **state)
{
    (void)state;
    run r = stragglers_begin(&(forge){.seed = 9, .ranks = 8, .steps = STEPS});
    for (size_t i = 0; i < r.ranks; i++)
        r.given[i] = (pk_job_steps_){0};
    judge(&r);
    assert_int_equal(r.word.count, 0);
    assert_int_equal(r.word.last, 0);
    finish(&r);
}

/* Steps that begin anew are of another session. */
static void a_session_begins_anew(void **state)
{
    (void)state;
    forge f = {
        .seed = 11, .ranks = 8, .steps = STEPS, .slow = 0.2, .culprits = 1, .stage = FORGE_LOAD};
    run r = stragglers_begin(&f);
    while (r.at < 40)
        next(&r);
    assert_int_equal(r.word.count, 1);
    r.at = 0;
    next(&r);
    assert_int_equal(r.word.count, 1); /* of the new one nothing is known yet */
    assert_int_equal(r.word.last, 39);
    while (r.at < 20)
        next(&r);
    assert_int_equal(r.word.count, 1);
    assert_int_equal(r.word.first, 0);
    assert_int_equal(r.word.last, 19);
    finish(&r);
}

/* A place gets another stage: nothing is told under a wrong name. */
static void a_place_of_another_stage(void **state)
{
    (void)state;
    run r = stragglers_begin(&(forge){.seed = 12, .ranks = 8, .steps = STEPS});
    while (r.at < 20)
        next(&r);
    for (size_t i = 0; i < r.ranks; i++) {
        give(&r, i, 20);
        snprintf(r.given[i].stages[0].name, sizeof r.given[i].stages[0].name, "another");
    }
    judge(&r);
    assert_int_equal(r.word.last, 19);
    for (size_t more = 0; more < 20; more++) {
        for (size_t i = 0; i < r.ranks; i++) {
            give(&r, i, r.at);
            snprintf(r.given[i].stages[0].name, sizeof r.given[i].stages[0].name, "another");
        }
        judge(&r);
    }
    assert_int_equal(r.word.first, 20);
    finish(&r);
}

static bool is_found(const pki_job_lateness *l, int32_t rank)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->late[i].host && (int32_t)l->late[i].rank == rank)
            return true;
    return false;
}

/* Ranks that share a processor: nobody is named whom `pk job` would not name of the same steps. */
static void on_a_crowded_host_as_pk_job(void **state)
{
    size_t found = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        forge f = {
            .seed = 300 + seed,
            .ranks = 8,
            .steps = PKI_WINDOW_BLOCKS,
            .slow = seed <= 6 ? 0.05 : 0.25,
            .culprits = 1,
            .stage = FORGE_LOAD,
            .link = 30, /* so little of a step is work that some are late, but not worth it */
            .crowd = FORGE_CROWD_TOLD,
            .uneven = seed <= 6 ? 0 : 0.27, /* which hides who is late, if seats are not told */
            .seated = true,
            .told = true};
        pki_job j;
        run r = stragglers_begin(&f);
        for (size_t i = 0; i < r.ranks; i++) {
            pki_processor *p = &r.all[i].steps.processor;
            p->running = p->observed - p->ready;
        }
        while (r.at < f.steps)
            next(&r);
        judge_again(&r);
        assert_true(pki_job_of(&j, r.all, r.ranks, &(pki_job_steps){.given = false}) ==
                    PKI_JOB_MADE);
        pki_job_lateness l;
        assert_true(pki_job_find_late(&l, &j, NULL));
        assert_int_equal(r.word.count, l.count);
        for (size_t i = 0; i < r.word.count; i++)
            assert_true(is_found(&l, r.word.late[i].rank));
        found += l.count;
        pki_job_lateness_finish(&l);
        pki_job_finish(&j);
        free(r.all);
        r.all = NULL;
        r.ranks = 0;
        finish(&r);
    }
    assert_true(found > 0);
}

/* Which of two in a row it is does not matter: late in one verdict alone is not late. */
static void one_verdict_is_none(void **state)
{
    (void)state;
    forge f = {.seed = 13,
               .ranks = 2,
               .steps = STEPS,
               .slow = 0.5,
               .culprits = 1,
               .stage = FORGE_LOAD,
               .quiet = true};
    run r = stragglers_begin(&f);
    size_t named = 0, verdicts = 0;
    while (!named && r.at < 20) {
        next(&r);
        verdicts += r.at >= 7; /* so few as there can be for two ranks */
        named = r.word.count;
    }
    assert_int_equal(named, 1);
    assert_int_equal(verdicts, PKI_WINDOW_NAMED);
    finish(&r);
}

static const struct CMUnitTest stragglers_tests[] = {
    cmocka_unit_test(nobody_is_named_in_a_healthy_job),
    cmocka_unit_test(who_is_late_is_named_and_nobody_else),
    cmocka_unit_test(it_begins_and_ends),
    cmocka_unit_test(a_host_is_one_finding),
    cmocka_unit_test(more_than_have_room),
    cmocka_unit_test(ranks_without_steps_are_not_compared),
    cmocka_unit_test(nothing_is_said_before_there_are_steps),
    cmocka_unit_test(a_session_begins_anew),
    cmocka_unit_test(a_place_of_another_stage),
    cmocka_unit_test(on_a_crowded_host_as_pk_job),
    cmocka_unit_test(one_verdict_is_none),
};

int main(void)
{
    int failed = cmocka_run_group_tests(waits_tests, NULL, NULL);
    failed += cmocka_run_group_tests(stragglers_tests, NULL, NULL);
    return failed;
}
