/* pk/comm.h: operations on communicators, from the calls to trace and figures. */
#include "document.h"
#include "session.h"

#include <pthread.h>

#include "comm/model/communicator.h"
#include "measure/fold/fold.h"
#include "session/report/run.h"
#include "session/session.h"

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

static int start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .clock = the_clock, .backends = "none",
                               .ring_records = 1024, .rank = 1, .world_size = 4));
}

static int stop_trace(void **state)
{
    pk_stop();
    pki_summary_finish(&summary);
    return leave_folder(state);
}

static void reduce(pk_comm *comm, uint64_t count)
{
    pk_region_begin(&backward);
    pk_region_begin(&ring);
    pk_comm_call(&ring, comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, count, -1);
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
    } known[] = {{PK_OP_ALL_REDUCE, 5, 5, NULL},      {PK_OP_BROADCAST, 5, 5, "Root"},
                 {PK_OP_REDUCE, 5, 5, "Root"},        {PK_OP_ALL_GATHER, 5, 15, NULL},
                 {PK_OP_REDUCE_SCATTER, 15, 5, NULL}, {PK_OP_ALL_TO_ALL, 15, 15, NULL},
                 {PK_OP_GATHER, 5, 15, "Root"},       {PK_OP_SCATTER, 15, 5, "Root"},
                 {PK_OP_SEND, 5, 0, "Dst Rank"},      {PK_OP_RECV, 0, 5, "Src Rank"}};
    (void)state;
    pk_comm *comm = new_comm(0, 3);
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++) {
        pk_region *region = pk_region_named_of(PK_COMM, pki_comm_op_name(known[i].op));
        pk_region_begin(region);
        pk_comm_call(region, comm, known[i].op, PK_TYPE_FLOAT64, 5, 2);
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
    pk_comm_request a = pk_comm_start(comm, PK_OP_ALL_REDUCE, PK_TYPE_BYTE, 4096, -1);
    pk_comm_request b = pk_comm_start(comm, PK_OP_SEND, PK_TYPE_INT64, 2, 3);
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
    pk_comm_request lost = pk_comm_start(comm, PK_OP_BARRIER, PK_TYPE_BYTE, 0, -1);
    const pki_comm_row *row = row_of(stop_and_sum(), comm->title);
    assert_true(row->enqueued == 1 && row->completed == 0 && row->calls == 0);
    pk_comm_finish(&lost, 0); /* after the stop: complete, and recorded by nobody */
    assert_int_equal(pki_comm_completed(comm), 1);
}

static void a_request_outlives_its_session(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    pk_comm_request r = pk_comm_start(comm, PK_OP_BARRIER, PK_TYPE_BYTE, 0, -1);
    stop_and_count();
    assert_int_equal(
        pk_start(pk_options(.clock = the_clock, .backends = "none", .trace_path = "b.json")),
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
    pk_comm_call(&ring, comm, PK_OP_BARRIER, PK_TYPE_BYTE, 0, -1);
    pk_comm_request r = pk_comm_start(comm, PK_OP_BARRIER, PK_TYPE_BYTE, 0, -1);
    assert_null(r.comm);
    assert_int_equal(pki_comm_enqueued(comm), 0);
}

static void calls_that_fit_nothing(void **state)
{
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    pk_comm_call(&ring, comm, PK_OP_BARRIER, PK_TYPE_BYTE, 0, -1); /* no such region is open */
    assert_int_equal(pki_comm_enqueued(comm), 0);
    pk_region_begin(&ring);
    pk_comm_call(&ring, NULL, PK_OP_BARRIER, PK_TYPE_BYTE, 0, -1);
    pk_comm_call(&ring, comm, PK_OP_SEND, PK_TYPE_BYTE, 1, -1);
    pk_comm_call(&ring, comm, (pk_comm_op)99, (pk_comm_type)99, 2, -1); /* takes its place */
    pk_region_end(&ring);
    assert_int_equal(pki_comm_enqueued(comm), 2);
    assert_int_equal(pki_comm_completed(comm), 2);
    assert_int_equal(pki_comm_in_flight(comm), 0);
    const pki_comm_summary *s = stop_and_sum();
    assert_int_equal(row_of(s, comm->title)->calls, 1);
    assert_int_equal(s->collectives[0].op, PK_OP_OTHER);
}

/* What was never finished is not complete because nothing else is under way. */
static void given_up(void **state)
{
    uint64_t sequence;
    (void)state;
    pk_comm *comm = new_comm(0, 2);
    reduce(comm, 1);
    pki_comm_enqueue(comm, PK_OP_SEND, PK_TYPE_BYTE, 1, 0, &sequence);
    assert_int_equal(pki_comm_completed(comm), 1);
    pki_comm_abandon(comm);
    assert_int_equal(pki_comm_in_flight(comm), 0);
    assert_int_equal(pki_comm_completed(comm), 1);
    pk_comm_request r = pk_comm_start(comm, PK_OP_SEND, PK_TYPE_BYTE, 1, 1);
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
    pk_comm_request none = {0}, r = pk_comm_start(comm, PK_OP_RECV, PK_TYPE_INT32, 100, -1);
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

/* ---- communicators ---- */

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

#define with_trace(test) cmocka_unit_test_setup_teardown(test, start_trace, stop_trace)

int main(void)
{
    const struct CMUnitTest calls[] = {
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
    const struct CMUnitTest communicators[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(words),
        cmocka_unit_test(too_many),
    };
    return both_clocks(calls) + cmocka_run_group_tests(communicators, NULL, NULL);
}
