#include "report_fixture.h"

#include "base/compiler.h"
#include "comm/figures/figures.h"
#include "measure/verdict/verdict.h"

#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

enum { WORLD, ROW };
enum { BACKWARD = 1, HALO, LAST };

static const char *name_of(void *user, uint32_t id)
{
    static const char *const names[LAST] = {"", "backward", "halo \"exchange\""};
    (void)user;
    return id < LAST ? names[id] : NULL;
}

/* One of the row's operations has not ended. */
static bool facts_of(void *user, uint32_t comm, pki_comm_facts *facts)
{
    static const pki_comm_facts known[] = {
        {"MPI", "MPI_COMM_WORLD", 0, 1, 4, 120, 120, 120, 0},
        {"NCCL", "rows of \xE6\xA2\xAF\xE5\xBA\xA6", 0xFEDCBA9876543210, 0, 2, 261, 261, 260, 1}};
    (void)user;
    if (comm >= PKI_COUNT_OF(known))
        return false;
    *facts = known[comm];
    return true;
}

/* Gradients of four sizes, reduced; every tenth time one takes much longer. */
static void add_reductions(pki_comm_figures *c)
{
    for (uint64_t i = 0; i < 120; i++) {
        uint64_t bytes = (uint64_t)1 << (10 + 4 * (i % 4));
        uint64_t ns = 20 * US + bytes / 10 + (i % 10 == 9 ? 2 * MS : i % 7 * US);
        pki_comm_figures_add(c, &(pki_timed_operation){.comm = WORLD,
                                                       .ranks = 4,
                                                       .op = PK_OP_ALL_REDUCE,
                                                       .region = BACKWARD,
                                                       .bytes = bytes,
                                                       .sequence = i + 1,
                                                       .start = i * 10 * MS,
                                                       .end = i * 10 * MS + ns,
                                                       .exposed = ns,
                                                       .in_flight = 1});
    }
}

/* Sent while the program computes: the last microseconds are waited for. */
static void add_messages(pki_comm_figures *c)
{
    for (uint64_t i = 0; i < 200; i++)
        pki_comm_figures_add(c, &(pki_timed_operation){.comm = ROW,
                                                       .ranks = 2,
                                                       .op = i % 2 ? PK_OP_RECV : PK_OP_SEND,
                                                       .region = i < 190 ? HALO : 0,
                                                       .bytes = 5000,
                                                       .sequence = i + 1,
                                                       .comm_id = 0xFEDCBA98,
                                                       .self = 1,
                                                       .partner = 3 + (uint32_t)(i / 2 % 2),
                                                       .start = i * MS,
                                                       .end = i * MS + 400 * US + i * US,
                                                       .exposed = i * US / 2,
                                                       .in_flight = (uint32_t)(i % 3 + 1)});
}

/* As NCCL tells them: the larger ones by another algorithm, with exceptions. */
static void add_told(pki_comm_figures *c)
{
    for (uint64_t i = 0; i < 60; i++) {
        bool large = i % 3 == 0, tree = i % 10 == 9 ? large : !large;
        uint64_t ns = large ? 90 * US : 15 * US;
        pki_comm_figures_add(c, &(pki_timed_operation){.comm = ROW,
                                                       .ranks = 2,
                                                       .op = PK_OP_ALL_REDUCE,
                                                       .region = BACKWARD,
                                                       .bytes = large ? 1 << 24 : 1 << 14,
                                                       .sequence = 200 + i,
                                                       .start = i * MS,
                                                       .end = i * MS + ns,
                                                       .in_flight = 1,
                                                       .algorithm = tree ? "TREE" : "RING",
                                                       .protocol = large ? "SIMPLE" : "LL128",
                                                       .channels = large ? 16 : 2});
    }
}

/* ---- what a job of many ranks needs of it ---- */

static void add_rank(pki_summary *s)
{
    s->run.local_rank = 3;
    s->run.local_size = 4;
    s->regions[0].exact =
        (pki_window_sum){.count = 3, .sum = 600, .min = 100, .max = 300, .squares_low = 140000};
    for (uint32_t key = 100; key < 220; key += 50)
        pki_tally_count(&s->regions[0].exact.buckets, key, 1);
}

static void fill_hostile_stages(pki_stage_summary *stages, const char *hostile)
{
    *stages = (pki_stage_summary){
        .width = UINT64_MAX, .warmup = UINT64_MAX, .stage_count = 1, .loop_count = 1};
    stages->stages = calloc(1, sizeof *stages->stages);
    *stages->stages = (pki_stage_row){strdup(hostile), 99};
    stages->loops = calloc(1, sizeof *stages->loops);
    *stages->loops = (pki_loop_row){
        .name = strdup(hostile), .number_count = 2, .numbers = calloc(2, sizeof(uint64_t))};
    stages->loops->numbers[1] = UINT64_MAX;
}

static void add_hostile_rank(pki_summary *s, const char *hostile)
{
    pki_window_sum *exact = &s->regions[0].exact;
    *exact = (pki_window_sum){
        .count = UINT64_MAX, .sum = UINT64_MAX, .max = UINT64_MAX, .squares_high = UINT64_MAX};
    pki_tally_count(&exact->buckets, UINT32_MAX, UINT64_MAX);
    fill_hostile_stages(&s->stages, hostile);
}

void fixture_comm(pki_summary *s)
{
    pki_comm_figures *c = pki_comm_figures_create();
    for (uint64_t i = 0; i < 40; i++)
        pki_comm_figures_step(c, i, i * 42 * MS, (i + 1) * 42 * MS);
    fixture_train(s, 40);
    add_rank(s);
    add_reductions(c);
    add_messages(c);
    add_told(c);
    pki_comm_figures_build_rows(c, facts_of, name_of, NULL, s);
    pki_comm_figures_destroy(c);
    pki_sequences *q = &s->comm.sequences;
    q->row_count = pki_sequences_narrow(q->rows, q->row_count, &q->one_in, 16);
    q->origin = 77 * MS;
    free(q->clock);
    q->clock = strdup("clock");
}

void fixture_hostile_comm(pki_summary *s, const char *hostile, pki_dist wild)
{
    pki_comm_summary *c = &s->comm;
    add_hostile_rank(s, hostile);
    c->unmeasured = UINT64_MAX;
    c->partner_count = 1;
    c->partners = calloc(1, sizeof *c->partners);
    memset(c->partners, 0xFF, sizeof *c->partners);
    c->sequences =
        (pki_sequences){UINT64_MAX,      UINT64_MAX, UINT64_MAX,
                        strdup(hostile), 1,          calloc(1, sizeof *c->sequences.rows)};
    memset(c->sequences.rows, 0xFF, sizeof *c->sequences.rows);
    c->comm_count = c->collective_count = c->region_count = c->slowest_count = 1;
    c->comms = calloc(1, sizeof *c->comms);
    c->collectives = calloc(1, sizeof *c->collectives);
    c->regions = calloc(1, sizeof *c->regions);
    c->slowest = calloc(1, sizeof *c->slowest);
    memset(c->comms, 0xFF, sizeof *c->comms);
    c->comms->library = strdup(hostile);
    c->comms->name = strdup(hostile);
    c->comms->completed = 0;
    *c->collectives =
        (pki_operation_row){.op = UINT32_MAX,
                            .size = UINT64_MAX,
                            .bytes = UINT64_MAX,
                            .exposed = UINT64_MAX,
                            .time = wild,
                            .algbw = wild,
                            .busbw = wild,
                            .way_count = PKI_COMM_ALGORITHMS,
                            .ways = calloc(PKI_COMM_ALGORITHMS, sizeof(pki_comm_way))};
    for (size_t i = 0; i < PKI_COMM_ALGORITHMS; i++)
        c->collectives->ways[i] =
            (pki_comm_way){strdup(hostile), strdup(hostile), UINT64_MAX, wild.max};
    *c->regions = (pki_comm_region_row){strdup(hostile), 0, 99, UINT64_MAX, UINT64_MAX, wild};
    *c->slowest =
        (pki_comm_call_row){strdup(hostile), 0,          99,         UINT64_MAX, UINT64_MAX,
                            UINT64_MAX,      UINT64_MAX, UINT64_MAX, true,       UINT64_MAX};
}
