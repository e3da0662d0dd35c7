/* What an operation says of itself in the trace: the same whether a thread of the program recorded
 * it or a backend has seen it, by PyTorch's rules. */
#include "document.h"
#include "session.h"

#include <pthread.h>

#include "comm/model/communicator.h"
#include "session/activity.h"
#include "session/session.h"

#define OPERATIONS 14

static pk_comm *whole, *part; /* of the job's four ranks, and two of them */

static int start_trace(void **state)
{
    if (enter_folder(state) ||
        pk_start(pk_options(.trace_path = "run.json", .clock = the_clock, .backends = "none",
                            .ring_records = 1024, .rank = 1, .world_size = 4)))
        return 1;
    whole = pk_comm_create("ring", "whole", 0xABC, 1, 4);
    part = pk_comm_create("ring", "part", 0, 1, 2);
    return 0;
}

static int stop_trace(void **state)
{
    pk_stop();
    pk_comm_destroy(whole);
    pk_comm_destroy(part);
    return leave_folder(state);
}

static const char *name_of(char name[64], const char *who, const pk_comm *comm, uint32_t op,
                           int32_t peer)
{
    snprintf(name, 64, "%.10s %.10s %u %d", who, comm->title, op, peer);
    return name;
}

static void record(pk_comm *comm, uint32_t op, int32_t peer)
{
    char name[64];
    pk_region *region = pk_region_named_of(PK_COMM, name_of(name, "region", comm, op, peer));
    pk_region_begin(region);
    pk_comm_call(region, comm, (pk_comm_op)op, PK_TYPE_FLOAT64, 5, peer);
    pk_region_end(region);
}

/* The same operation, as a backend hands it over. */
static void add_activity(pk_comm *comm, uint32_t op, int32_t peer)
{
    static const pki_track track = {1, 2, NULL, "backend", 0};
    char name[64];
    pki_operation o = pki_operation_on(comm);
    o.op = op;
    o.type = PK_TYPE_FLOAT64;
    o.count = 5;
    o.sequence = pki_comm_enqueued(comm);
    o.peer = peer;
    o.in_flight = 1;
    name_of(name, "activity", comm, op, peer);
    pthread_mutex_lock(&pki_drain_lock);
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = pki_track_add(&track),
                                     .name = name,
                                     .name_length = strlen(name),
                                     .end = 1,
                                     .device = PKI_NO_DEVICE,
                                     .bytes = 40,
                                     .operation = &o});
    pthread_mutex_unlock(&pki_drain_lock);
}

static json_t *args_of(json_t *doc, const char *who, const pk_comm *comm, uint32_t op, int32_t peer)
{
    char name[64];
    return member(find_event(doc, name_of(name, who, comm, op, peer)), "args");
}

/* PyTorch's profiler has a rank as "Dst Rank" of a send and "Src Rank" of a receive alone, and none
 * for a collective without a root, whatever the library said. */
static const char *key_of(uint32_t op)
{
    switch (op) {
    case PK_OP_SEND:
    case PK_OP_SEND_RECV: /* ours: that of the send */
        return "Dst Rank";
    case PK_OP_RECV:
        return "Src Rank";
    case PK_OP_BROADCAST:
    case PK_OP_REDUCE:
    case PK_OP_GATHER:
    case PK_OP_SCATTER:
        return "Root";
    default:
        return "none";
    }
}

static void expect_peer(json_t *args, uint32_t op, int32_t peer)
{
    static const char *const keys[] = {"Dst Rank", "Src Rank", "Root"};
    for (size_t i = 0; i < PKI_COUNT_OF(keys); i++) {
        const json_t *is = json_object_get(args, keys[i]);
        if (peer >= 0 && strcmp(keys[i], key_of(op)) == 0)
            assert_int_equal(json_integer_value(is), peer);
        else
            assert_null(is);
    }
}

static void with_each(void (*call)(pk_comm *comm, uint32_t op, int32_t peer))
{
    for (uint32_t op = 0; op < OPERATIONS; op++)
        for (int32_t peer = -1; peer <= 1; peer++) {
            call(whole, op, peer);
            call(part, op, peer);
        }
}

static void make_both(pk_comm *comm, uint32_t op, int32_t peer)
{
    record(comm, op, peer);
    add_activity(comm, op, peer);
}

static json_t *doc;

static void compare(pk_comm *comm, uint32_t op, int32_t peer)
{
    json_t *a = args_of(doc, "region", comm, op, peer);
    json_t *b = args_of(doc, "activity", comm, op, peer);
    assert_true(json_equal(a, b));
    expect_peer(a, op, peer);
    assert_int_equal(comm == whole, json_object_get(a, "Process Group Ranks") != NULL);
    assert_int_equal(comm == whole, json_object_get(a, "Comms Id") != NULL);
}

static void both_write_the_same(void **state)
{
    (void)state;
    with_each(make_both);
    stop_and_count();
    doc = load_document("run.json");
    with_each(compare);
    const json_t *args = args_of(doc, "region", whole, PK_OP_ALL_REDUCE, -1);
    assert_string_equal(json_string_value(member(args, "Process Group Ranks")), "[0, 1, 2, 3]");
    assert_string_equal(json_string_value(member(args, "Comms Id")), "0000000000000abc");
    json_decref(doc);
}

/* A name and a variant's key of the longest, each byte of which takes six: the event ends within
 * its room, without the operation. */
static void the_longest_names_leave_no_room(void **state)
{
    char name[256], key[256];
    (void)state;
    memset(name, 1, sizeof name - 1);
    memset(key, 2, sizeof key - 1);
    name[255] = key[255] = 0;
    pk_region *region = pk_region_variant(pk_region_named_of(PK_COMM, name), key, INT64_MIN);
    pk_region_begin(region);
    pk_comm_call(region, whole, PK_OP_ALL_REDUCE, PK_TYPE_BYTE, 77, -1);
    pk_region_end(region);
    record(whole, PK_OP_BROADCAST, 1);
    stop_and_count();
    doc = load_document("run.json");
    const json_t *args = args_of(doc, "region", whole, PK_OP_BROADCAST, 1);
    assert_int_equal(json_integer_value(member(args, "Seq")), pki_comm_enqueued(whole));
    json_decref(doc);
}

/* Made again under the same name, without a number to tell them apart by: what differs is unknown.
 */
static void other_peers_under_one_name(void **state)
{
    const int32_t first[] = {1, 2, 3}, second[] = {1, 2, 0};
    (void)state;
    pk_comm *c = pk_comm_create("ring", "made again", 0, 0, 3);
    pk_comm_peers(c, first, 3);
    assert_int_equal(pki_comm_job_rank(c, 2, 1, 4), 3);
    pk_comm_destroy(c);
    assert_ptr_equal(pk_comm_create("ring", "made again", 0, 0, 3), c);
    pk_comm_peers(c, second, 3);
    assert_int_equal(pki_comm_job_rank(c, 1, 1, 4), 2);
    assert_int_equal(pki_comm_job_rank(c, 2, 1, 4), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_write_the_same, start_trace, stop_trace),
        cmocka_unit_test_setup_teardown(the_longest_names_leave_no_room, start_trace, stop_trace),
        cmocka_unit_test(other_peers_under_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
