/* pk/comm.h: operations on communicators, from the calls to trace and figures. */
#include "document.h"
#include "session.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/model/communicator.h"
#include "measure/fold/fold.h"
#include "session/activity.h"
#include "session/report/run.h"
#include "session/session.h"

/* ---- tags of messages, from the calls to the trace ---- */

static int start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .backends = "none"));
}

static int stop_trace(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static pk_region message = PK_REGION_OF(PK_COMM, "message");

/* Any tag that MPI has, and none. */
static void tags(void **state)
{
    static const int32_t of[] = {0, 7, INT32_MAX};
    (void)state;
    pk_comm *comm = pk_comm_create("MPI", "messages", 0, 1, 4);
    for (size_t i = 0; i < PKI_COUNT_OF(of); i++) {
        pk_region_begin(&message);
        pk_comm_call(&message, comm, PK_COMM_OP_SEND, PK_COMM_TYPE_BYTE, 8, 2);
        pk_comm_set_tag(&message, of[i]);
        pk_region_end(&message);
        pk_comm_request r = pk_comm_start(comm, PK_COMM_OP_RECV, PK_COMM_TYPE_BYTE, 8, -1);
        pk_comm_set_request_tag(&r, 5);
        pk_comm_set_request_tag(&r, of[i]);
        pk_comm_set_request_tag(&r, -1); /* as it was */
        pk_comm_correct(&r, 3, 1);
        assert_int_equal(r.sequence, 2 * i + 2);
        pk_comm_finish(&r, 0);
    }
    pk_region_begin(&message);
    pk_comm_set_tag(&message, 3); /* no message yet */
    pk_comm_call(&message, comm, PK_COMM_OP_SEND, PK_COMM_TYPE_BYTE, 8, 2);
    pk_comm_set_tag(&message, -1);
    pk_region_end(&message);
    assert_int_equal(pki_comm_completed(comm), 7);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *doc = load_document("run.json"), *e;
    size_t i, sends = 0, receives = 0;
    json_array_foreach(json_object_get(doc, "traceEvents"), i, e)
    {
        const json_t *args = json_object_get(e, "args");
        const char *op = json_string_value(json_object_get(args, "Collective name"));
        size_t *n = op && strcmp(op, "send") == 0 ? &sends : &receives;
        if (!op)
            continue;
        const json_t *tag = json_object_get(args, "Tag");
        if (*n < PKI_COUNT_OF(of))
            assert_int_equal(json_integer_value(tag), of[*n]);
        else
            assert_null(tag);
        assert_int_equal(json_integer_value(json_object_get(args, "Seq")),
                         2 * *n + (n == &receives ? 2 : 1));
        ++*n;
    }
    assert_true(sends == 4 && receives == 3);
    json_decref(doc);
}

static const struct CMUnitTest tags_tests[] = {
    cmocka_unit_test_setup_teardown(tags, start_trace, stop_trace),
};

/* ---- what an operation says of itself in the trace ---- */

/* The same whether a thread of the program recorded it or a backend has seen it, by PyTorch's
 * rules. */

#define OPERATIONS 14

static pk_comm *whole, *part; /* of the job's four ranks, and two of them */

static int comm_arguments_start_trace(void **state)
{
    if (enter_folder(state) ||
        pk_start(pk_options(.trace_path = "run.json", .backends = "none", .rank = 1,
                            .world_size = 4,
                            .tuning = kit_tuning("clock=%s,ring_records=1024", the_clock))))
        return 1;
    whole = pk_comm_create("ring", "whole", 0xABC, 1, 4);
    part = pk_comm_create("ring", "part", 0, 1, 2);
    return 0;
}

static int comm_arguments_stop_trace(void **state)
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
    pk_comm_call(region, comm, (pk_comm_op)op, PK_COMM_TYPE_FLOAT64, 5, peer);
    pk_region_end(region);
}

/* The same operation, as a backend hands it over. */
static void add_activity(pk_comm *comm, uint32_t op, int32_t peer)
{
    static const pki_track track = {1, 2, NULL, "backend", 0};
    char name[64];
    pki_operation o = pki_operation_on(comm);
    o.op = op;
    o.type = PK_COMM_TYPE_FLOAT64;
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

static json_t *args_of(json_t *comm_arguments_doc, const char *who, const pk_comm *comm,
                       uint32_t op, int32_t peer)
{
    char name[64];
    return member(find_event(comm_arguments_doc, name_of(name, who, comm, op, peer)), "args");
}

/* PyTorch's profiler has a rank as "Dst Rank" of a send and "Src Rank" of a receive alone, and none
 * for a collective without a root, whatever the library said. */
static const char *key_of(uint32_t op)
{
    switch (op) {
    case PK_COMM_OP_SEND:
    case PK_COMM_OP_SEND_RECV: /* ours: that of the send */
        return "Dst Rank";
    case PK_COMM_OP_RECV:
        return "Src Rank";
    case PK_COMM_OP_BROADCAST:
    case PK_COMM_OP_REDUCE:
    case PK_COMM_OP_GATHER:
    case PK_COMM_OP_SCATTER:
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

static json_t *comm_arguments_doc;

static void compare(pk_comm *comm, uint32_t op, int32_t peer)
{
    json_t *a = args_of(comm_arguments_doc, "region", comm, op, peer);
    json_t *b = args_of(comm_arguments_doc, "activity", comm, op, peer);
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
    comm_arguments_doc = load_document("run.json");
    with_each(compare);
    const json_t *args = args_of(comm_arguments_doc, "region", whole, PK_COMM_OP_ALL_REDUCE, -1);
    assert_string_equal(json_string_value(member(args, "Process Group Ranks")), "[0, 1, 2, 3]");
    assert_string_equal(json_string_value(member(args, "Comms Id")), "0000000000000abc");
    json_decref(comm_arguments_doc);
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
    pk_comm_call(region, whole, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_BYTE, 77, -1);
    pk_region_end(region);
    record(whole, PK_COMM_OP_BROADCAST, 1);
    stop_and_count();
    comm_arguments_doc = load_document("run.json");
    const json_t *args = args_of(comm_arguments_doc, "region", whole, PK_COMM_OP_BROADCAST, 1);
    assert_int_equal(json_integer_value(member(args, "Seq")), pki_comm_enqueued(whole));
    json_decref(comm_arguments_doc);
}

/* Made again under the same name, without a number to tell them apart by: what differs is unknown.
 */
static void other_peers_under_one_name(void **state)
{
    const int32_t first[] = {1, 2, 3}, second[] = {1, 2, 0};
    (void)state;
    pk_comm *c = pk_comm_create("ring", "made again", 0, 0, 3);
    pk_comm_set_peers(c, first, 3);
    assert_int_equal(pki_comm_job_rank(c, 2, 1, 4), 3);
    pk_comm_destroy(c);
    assert_ptr_equal(pk_comm_create("ring", "made again", 0, 0, 3), c);
    pk_comm_set_peers(c, second, 3);
    assert_int_equal(pki_comm_job_rank(c, 1, 1, 4), 2);
    assert_int_equal(pki_comm_job_rank(c, 2, 1, 4), -1);
}

static const struct CMUnitTest comm_arguments_tests[] = {
    cmocka_unit_test_setup_teardown(both_write_the_same, comm_arguments_start_trace,
                                    comm_arguments_stop_trace),
    cmocka_unit_test_setup_teardown(the_longest_names_leave_no_room, comm_arguments_start_trace,
                                    comm_arguments_stop_trace),
    cmocka_unit_test(other_peers_under_one_name),
};

/* ---- operations, from the calls to trace and figures ---- */

/* pk/comm.h: operations on communicators, from the calls to trace and figures. */

static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward");
static pk_region ring = PK_REGION_OF(PK_COMM, "ring all-reduce");
static pki_summary summary;
static int made; /* communicators of earlier tests have other names */

static pk_comm *new_comm(int32_t rank, int32_t size)
{
    char name[32];
    snprintf(name, sizeof name, "world %d", ++made);
    return pk_comm_create("ring", name, 0xABC, rank, size);
}

static int comm_start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .backends = "none", .rank = 1,
                               .world_size = 4,
                               .tuning = kit_tuning("clock=%s,ring_records=1024", the_clock)));
}

static int comm_stop_trace(void **state)
{
    pk_stop();
    pki_summary_finish(&summary);
    return leave_folder(state);
}

static void reduce(pk_comm *comm, uint64_t count)
{
    pk_region_begin(&backward);
    pk_region_begin(&ring);
    pk_comm_call(&ring, comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, count, -1);
    spend();
    pk_region_end(&ring);
    pk_region_end(&backward);
}

/* After the stop the arena is still there, so a summary can be made again. */
static const pki_comm_summary *stop_and_sum(void)
{
    stop_and_count();
    assert_true(pki_run_summarise(&pki_the_session, &summary));
    return &summary.comm;
}

static const pki_comm_row *row_of(const pki_comm_summary *s, const char *name)
{
    for (size_t i = 0; i < s->comm_count; i++)
        if (strcmp(s->comms[i].name, name) == 0)
            return &s->comms[i];
    fail_msg("there is no communicator %s", name);
    return NULL;
}

static uint64_t number(const json_t *event, const char *key)
{
    return (uint64_t)json_integer_value(member(member(event, "args"), key));
}

static const char *text(const json_t *event, const char *key)
{
    return json_string_value(member(member(event, "args"), key));
}

static void blocking_calls(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(1, 4);
    for (int i = 0; i < 10; i++)
        reduce(comm, 256);
    const pki_comm_summary *s = stop_and_sum();
    const pki_comm_row *row = row_of(s, comm->title);
    assert_int_equal(row->calls, 10);
    assert_int_equal(row->bytes, 10 * 1024);
    assert_int_equal(row->exposed, row->time);
    assert_true(row->time >= 10 * 2000);
    assert_true(row->enqueued == 10 && row->started == 10 && row->completed == 10);
    assert_int_equal(row->in_flight, 1);
    assert_int_equal(s->collective_count, 1);
    assert_int_equal(s->collectives[0].size, 1024);
    assert_int_equal(s->collectives[0].busbw.count, 10);
    assert_string_equal(s->regions[0].region, "backward");
    assert_int_equal(count_of(&ring), 10);
    assert_int_equal(stats_of(&ring)->bytes, 10 * 1024);

    json_t *doc = load_document("run.json");
    assert_int_equal(count_events(doc, "X", "ring all-reduce"), 10);
    const json_t *event = find_event(doc, "ring all-reduce");
    assert_string_equal(text(event, "Collective name"), "all_reduce");
    assert_string_equal(text(event, "dtype"), "Float");
    assert_string_equal(text(event, "Process Group Name"), comm->title);
    assert_string_equal(text(event, "Process Group Description"), "ring");
    assert_int_equal(number(event, "bytes"), 1024);
    assert_int_equal(number(event, "In msg nelems"), 256);
    assert_int_equal(number(event, "Out msg nelems"), 256);
    assert_int_equal(number(event, "Group size"), 4);
    assert_int_equal(number(event, "Rank"), 1);
    assert_int_equal(number(event, "Seq"), 1);
    assert_null(json_object_get(member(event, "args"), "Root"));
    json_decref(doc);
}

/* Elements that a rank gives and gets, by operation; 3 ranks, 5 elements. */
static void elements(void **state)
{
    static const struct {
        pk_comm_op op;
        uint64_t in, out;
        const char *peer;
    } known[] = {{PK_COMM_OP_ALL_REDUCE, 5, 5, NULL},      {PK_COMM_OP_BROADCAST, 5, 5, "Root"},
                 {PK_COMM_OP_REDUCE, 5, 5, "Root"},        {PK_COMM_OP_ALL_GATHER, 5, 15, NULL},
                 {PK_COMM_OP_REDUCE_SCATTER, 15, 5, NULL}, {PK_COMM_OP_ALL_TO_ALL, 15, 15, NULL},
                 {PK_COMM_OP_GATHER, 5, 15, "Root"},       {PK_COMM_OP_SCATTER, 15, 5, "Root"},
                 {PK_COMM_OP_SEND, 5, 0, "Dst Rank"},      {PK_COMM_OP_RECV, 0, 5, "Src Rank"}};
    (void)state;
    pk_comm *comm = new_comm(0, 3);
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++) {
        pk_region *region = pk_region_named_of(PK_COMM, pki_comm_op_name(known[i].op));
        pk_region_begin(region);
        pk_comm_call(region, comm, known[i].op, PK_COMM_TYPE_FLOAT64, 5, 2);
        pk_region_end(region);
    }
    stop_and_count();
    json_t *doc = load_document("run.json");
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++) {
        const json_t *event = find_event(doc, pki_comm_op_name(known[i].op));
        assert_int_equal(number(event, "bytes"), 40);
        assert_int_equal(number(event, "In msg nelems"), known[i].in);
        assert_int_equal(number(event, "Out msg nelems"), known[i].out);
        if (known[i].peer)
            assert_int_equal(number(event, known[i].peer), 2);
    }
    json_decref(doc);
}

/* Two at once, the first one longer than the second. */
static void requests(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(1, 4);
    pk_region_begin(&backward);
    pk_comm_request a = pk_comm_start(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_BYTE, 4096, -1);
    pk_comm_request b = pk_comm_start(comm, PK_COMM_OP_SEND, PK_COMM_TYPE_INT64, 2, 3);
    pk_region_end(&backward);
    assert_true(a.sequence == 1 && b.sequence == 2);
    spend();
    pk_comm_finish(&b, 0);
    spend();
    assert_int_equal(pki_comm_completed(comm), 2); /* the last one that is; the first is not yet */
    assert_int_equal(pki_comm_in_flight(comm), 1);
    pk_comm_finish(&a, 700);
    assert_null(a.comm);
    pk_comm_finish(&a, 700); /* nothing */
    pk_comm_finish(NULL, 0);
    assert_int_equal(pki_comm_in_flight(comm), 0);
    const pki_comm_summary *s = stop_and_sum();
    const pki_comm_row *row = row_of(s, comm->title);
    assert_int_equal(row->calls, 2);
    assert_int_equal(row->exposed, 700);
    assert_int_equal(row->in_flight, 2);
    assert_true(row->time >= 3 * 2000);
    assert_string_equal(s->regions[0].region, "backward");

    json_t *doc = load_document("run.json");
    assert_int_equal(count_events(doc, "b", "ring all_reduce"), 1);
    assert_int_equal(count_events(doc, "e", "ring all_reduce"), 1);
    assert_int_equal(count_events(doc, "b", "ring send"), 1);
    const json_t *event = find_event(doc, "ring all_reduce");
    assert_int_equal(number(event, "exposed_ns"), 700);
    assert_int_equal(json_integer_value(member(event, "id")) >> 32, 1); /* the rank */
    json_decref(doc);
}

static void what_hangs(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    pk_comm_request lost = pk_comm_start(comm, PK_COMM_OP_BARRIER, PK_COMM_TYPE_BYTE, 0, -1);
    const pki_comm_row *row = row_of(stop_and_sum(), comm->title);
    assert_true(row->enqueued == 1 && row->completed == 0 && row->calls == 0);
    pk_comm_finish(&lost, 0); /* after the stop: complete, and recorded by nobody */
    assert_int_equal(pki_comm_completed(comm), 1);
}

static void a_request_outlives_its_session(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    pk_comm_request r = pk_comm_start(comm, PK_COMM_OP_BARRIER, PK_COMM_TYPE_BYTE, 0, -1);
    stop_and_count();
    assert_int_equal(pk_start(pk_options(.backends = "none", .trace_path = "b.json",
                                         .tuning = kit_tuning("clock=%s", the_clock))),
                     PK_OK);
    pk_comm_finish(&r, 0);
    assert_int_equal(counts_now().points, 0);
}

/* Nothing is counted, and nothing is looked at. */
static void off(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    stop_and_count();
    pk_comm_call(&ring, comm, PK_COMM_OP_BARRIER, PK_COMM_TYPE_BYTE, 0, -1);
    pk_comm_request r = pk_comm_start(comm, PK_COMM_OP_BARRIER, PK_COMM_TYPE_BYTE, 0, -1);
    assert_null(r.comm);
    assert_int_equal(pki_comm_enqueued(comm), 0);
}

static void calls_that_fit_nothing(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    pk_comm_call(&ring, comm, PK_COMM_OP_BARRIER, PK_COMM_TYPE_BYTE, 0,
                 -1); /* no such region is open */
    assert_int_equal(pki_comm_enqueued(comm), 0);
    pk_region_begin(&ring);
    pk_comm_call(&ring, NULL, PK_COMM_OP_BARRIER, PK_COMM_TYPE_BYTE, 0, -1);
    pk_comm_call(&ring, comm, PK_COMM_OP_SEND, PK_COMM_TYPE_BYTE, 1, -1);
    pk_comm_call(&ring, comm, (pk_comm_op)99, (pk_comm_type)99, 2, -1); /* takes its place */
    pk_region_end(&ring);
    assert_int_equal(pki_comm_enqueued(comm), 2);
    assert_int_equal(pki_comm_completed(comm), 2);
    assert_int_equal(pki_comm_in_flight(comm), 0);
    const pki_comm_summary *s = stop_and_sum();
    assert_int_equal(row_of(s, comm->title)->calls, 1);
    assert_int_equal(s->collectives[0].op, PK_COMM_OP_OTHER);
}

/* What was never finished is not complete because nothing else is under way. */
static void given_up(void **state)
{
    uint64_t sequence;
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    reduce(comm, 1);
    pki_comm_enqueue(comm, PK_COMM_OP_SEND, PK_COMM_TYPE_BYTE, 1, 0, &sequence);
    assert_int_equal(pki_comm_completed(comm), 1);
    pki_comm_abandon(comm);
    assert_int_equal(pki_comm_in_flight(comm), 0);
    assert_int_equal(pki_comm_completed(comm), 1);
    pk_comm_request r = pk_comm_start(comm, PK_COMM_OP_SEND, PK_COMM_TYPE_BYTE, 1, 1);
    assert_int_equal(pki_comm_completed(comm), 1);
    pk_comm_finish(&r, 0);
    assert_int_equal(pki_comm_completed(comm), 3);
    stop_and_count();
}

/* A receive knows its sender and its bytes when it is over. */
static void corrected(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(1, 4);
    pk_comm_request none = {0},
                    r = pk_comm_start(comm, PK_COMM_OP_RECV, PK_COMM_TYPE_INT32, 100, -1);
    pk_comm_correct(&none, 1, 1);
    pk_comm_correct(NULL, 1, 1);
    assert_null(none.comm);
    pk_comm_correct(&r, 40, 3);
    pk_comm_finish(&r, 0);
    assert_int_equal(row_of(stop_and_sum(), comm->title)->bytes, 40);
    json_t *doc = load_document("run.json");
    const json_t *event = find_event(doc, "ring recv");
    assert_int_equal(number(event, "bytes"), 40);
    assert_int_equal(number(event, "Src Rank"), 3);
    assert_int_equal(number(event, "Seq"), 1);
    json_decref(doc);
}

static void a_full_ring(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    pthread_mutex_lock(&pki_drain_lock); /* nobody empties it */
    for (int i = 0; i < 2000; i++)
        reduce(comm, 1);
    assert_int_equal(pki_comm_completed(comm), 2000);
    pthread_mutex_unlock(&pki_drain_lock);
    const pki_comm_summary *s = stop_and_sum();
    assert_int_equal(pki_comm_in_flight(comm), 0);
    assert_in_range(row_of(s, comm->title)->calls, 1, 1024);
    assert_int_equal(count_of(&ring), 2000);
}

/* -- communicators -- */

static void names(void **state)
{
    (void)state;
    pk_comm *a = pk_comm_create("MPI", "same", 1, 0, 2),
            *b = pk_comm_create("NCCL", "same", 1, 0, 2);
    assert_ptr_not_equal(a, b);
    assert_string_equal(pki_name_at(a->name)->name, "same");
    assert_string_equal(pki_name_at(b->name)->name, "same #2");
    pk_comm_destroy(a);
    pk_comm_destroy(NULL);
    assert_ptr_equal(pk_comm_create("MPI", "same", 1, 0, 2), a); /* again just the same */
    assert_ptr_not_equal(pk_comm_create("MPI", "same", 1, 0, 2), a);
    assert_string_equal(pk_comm_create(NULL, "", 0, 0, 1)->title, "(unnamed)");
    assert_ptr_equal(pki_comm_of_name(a->name), a);
    assert_null(pki_comm_at(PKI_COMMS_MAX));
    assert_null(pki_comm_of_name(PKI_NAMES_MAX));
}

static void words(void **state)
{
    pki_comm_fields f = {65535, 65534, 12, 10, 200, -1, UINT32_MAX};
    pki_comm_payload w = pki_comm_pack(&f);
    pki_comm_fields back = pki_comm_unpack(w.what, w.extra);
    (void)state;
    assert_true(pki_is_operation(w.what));
    assert_memory_equal(&f, &back, sizeof f);
    f.in_flight = 100000;
    w = pki_comm_pack(&f);
    assert_int_equal(pki_comm_unpack(w.what, w.extra).in_flight, 255);
}

/* Within half a minute. */
static bool ends(pid_t child, int *status)
{
    for (int i = 0; i < 3000; i++, usleep(10000))
        if (waitpid(child, status, WNOHANG) == child)
            return true;
    kill(child, SIGKILL);
    return waitpid(child, status, 0) == child;
}

static void *make_and_free(void *stop)
{
    while (!pki_load((uint32_t *)stop))
        pk_comm_destroy(pk_comm_create("x", "again and again", 1, 0, 1));
    return NULL;
}

/* Whatever another thread of the parent is doing. */
static void children_begin_anew(void **state)
{
    (void)state;
    uint32_t stop = 0;
    int status = SIGTERM;
    pthread_t other;
    for (int i = 0; i < 200; i++)
        assert_non_null(pk_comm_create("x", "with many others", (uint64_t)i, 0, 1));
    assert_int_equal(pthread_create(&other, NULL, make_and_free, &stop), 0);
    for (int i = 0; i < 50 && status == SIGTERM; i++) {
        pid_t child = fork();
        if (child ==
            0) /* by a signal: qemu's exit looks through what another thread was changing */
            kill(getpid(), SIGTERM);
        assert_true(child > 0 && ends(child, &status));
    }
    pki_store(&stop, 1u);
    pthread_join(other, NULL);
    assert_int_equal(status, SIGTERM);
}

static void too_many(void **state)
{
    (void)state;
    pk_comm *last = NULL;
    for (int i = 0; i < PKI_COMMS_MAX; i++)
        last = pk_comm_create("x", "many", (uint64_t)i, 0, 1);
    assert_string_equal(last->title, "(too many communicators)");
    assert_ptr_equal(pk_comm_create("y", "another", 7, 0, 1), last);
    pk_comm_destroy(last);
    assert_ptr_equal(pki_comm_at(PKI_COMMS_MAX - 1), last);
}

#define with_trace(test) cmocka_unit_test_setup_teardown(test, comm_start_trace, comm_stop_trace)

static const struct CMUnitTest calls[] = {
    with_trace(blocking_calls),
    with_trace(elements),
    with_trace(requests),
    with_trace(what_hangs),
    with_trace(a_request_outlives_its_session),
    with_trace(off),
    with_trace(calls_that_fit_nothing),
    with_trace(given_up),
    with_trace(corrected),
    with_trace(a_full_ring),
};

static const struct CMUnitTest communicators[] = {
    cmocka_unit_test(names),
    cmocka_unit_test(words),
    with_trace(children_begin_anew),
    cmocka_unit_test(too_many),
};

int main(void)
{
    int failed = cmocka_run_group_tests_name("tags", tags_tests, NULL, NULL);
    failed += cmocka_run_group_tests(comm_arguments_tests, NULL, NULL);
    failed += both_clocks(calls);
    failed += cmocka_run_group_tests(communicators, NULL, NULL);
    return failed;
}
