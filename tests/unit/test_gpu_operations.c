/* pk/nccl.h on the mock of the driver: operations of communicators between events. */
#include "document.h"
#include "gpu.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include <pk/nccl.h>

#include "comm/model/communicator.h"

/* ---- operations of communicators, and what the trace and the report say of them ---- */

#define TOP "t.json"

static pk_region layer = PK_REGION("layer");
static pk_comm *world, *other;
static json_t *doc, *report;
static uint64_t ids = 0xABC; /* another communicator in each test: numbers go on with the old one */

static int start_traced(void **state)
{
    if (enter_folder(state))
        return -1;
    gpu->reset();
    the_context = gpu->context_create(1);
    the_stream = gpu->stream_create(the_context);
    ids += 2;
    world = pk_comm_create("NCCL", "world", ids, 1, 4);
    other = pk_comm_create("NCCL", "other", ids + 1, 0, 2);
    return pk_start(pk_options(.backends = "cuda", .trace_path = TOP, .report_path = "r.json"));
}

static int stop_traced(void **state)
{
    stop_gpu(state);
    pk_comm_destroy(world);
    pk_comm_destroy(other);
    json_decref(doc);
    json_decref(report);
    doc = report = NULL;
    return leave_folder(state);
}

static pk_gpu_counts finish(void)
{
    pk_gpu_counts c = stop_and_count();
    doc = load_document(TOP);
    report = json_load_file("r.json", 0, NULL);
    assert_non_null(report);
    return c;
}

static json_int_t number(json_t *event, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(event, "args"), key));
}

static const char *text(json_t *event, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(event, "args"), key));
    return s ? s : "";
}

/* The n-th operation in the trace, from 0; NULL: there are not as many. */
static json_t *operation(size_t n)
{
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(doc, "traceEvents"), i, event)
    {
        const char *cat = json_string_value(json_object_get(event, "cat"));
        if (cat && strcmp(cat, "collective") == 0 && n-- == 0)
            return event;
    }
    return NULL;
}

static json_t *row(const char *list, size_t i)
{
    return json_array_get(json_object_get(json_object_get(report, "comm"), list), i);
}

static json_int_t of_row(size_t i, const char *key)
{
    return json_integer_value(json_object_get(row("collectives", i), key));
}

static json_int_t of_comm(uint64_t id, const char *key)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%" PRIx64, id);
    for (size_t i = 0; row("communicators", i); i++)
        if (strcmp(json_string_value(json_object_get(row("communicators", i), "id")), hash) == 0)
            return json_integer_value(json_object_get(row("communicators", i), key));
    fail_msg("there is no communicator %s", hash);
    return 0;
}

static json_int_t of_world(const char *key)
{
    return of_comm(ids, key);
}

static json_int_t of_other(const char *key)
{
    return of_comm(ids + 1, key);
}

static json_int_t calls_of_row(size_t i)
{
    return json_integer_value(
        json_object_get(json_object_get(row("collectives", i), "time"), "count"));
}

static void all_reduce(pk_comm *comm, uint64_t count, CUstream stream, int32_t result)
{
    pk_nccl_begin(comm, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, count, -1, stream);
    gpu->work(stream);
    pk_nccl_end(comm, stream, result);
}

static void message(pk_comm_op op, uint64_t count, int32_t peer)
{
    pk_nccl_begin(world, op, PK_COMM_TYPE_BYTE, count, peer, the_stream);
    pk_nccl_end(world, the_stream, 0);
}

static void end_group(int32_t result)
{
    pk_nccl_group_launch();
    pk_nccl_group_end(result);
}

#define traced(test) cmocka_unit_test_setup_teardown(test, start_traced, stop_traced)

/* ---- pk/nccl.h on the mock of the driver ---- */

/* Operations of communicators between events, and groups. */

static void once_under_its_region(void **state)
{
    (void)state;
    pk_region_begin(&layer);
    errno = 7;
    all_reduce(world, 1000, the_stream, 0);
    assert_int_equal(errno, 7);
    pk_region_end(&layer);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.operations, 1);
    json_t *e = operation(0);
    assert_string_equal(json_string_value(json_object_get(e, "name")), "NCCL all_reduce");
    assert_string_equal(text(e, "region"), "layer");
    assert_string_equal(text(e, "Collective name"), "all_reduce");
    assert_string_equal(text(e, "dtype"), "Float");
    assert_string_equal(text(e, "Process Group Name"), "world");
    assert_string_equal(text(e, "Comms Id"), "0000000000000abe");
    assert_string_equal(text(e, "timed by"), "stream");
    assert_int_equal(number(e, "bytes"), 4000);
    assert_int_equal(number(e, "Seq"), 1);
    assert_int_equal(number(e, "device"), 1);
    assert_int_equal(number(e, "Rank"), 1);
    assert_null(operation(1));
    assert_int_equal(of_world("calls"), 1);
    assert_int_equal(of_world("enqueued"), 1);
    assert_int_equal(of_world("started"), 1);
    assert_int_equal(of_world("completed"), 1);
    assert_int_equal(of_world("on_stream"), of_world("time"));
}

static void beside_spans(void **state)
{
    (void)state;
    pk_gpu_begin(&layer, the_stream);
    all_reduce(world, 10, the_stream, 0);
    span(&layer);
    all_reduce(other, 10, the_stream, 0);
    pk_gpu_end(&layer, the_stream);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 4);
    assert_int_equal(c.operations, 2);
    assert_int_equal(spans_of(&layer), 2);
    assert_non_null(operation(1));
    assert_int_not_equal(json_integer_value(json_object_get(operation(0), "tid")),
                         json_integer_value(json_object_get(operation(1), "tid")));
}

/* NCCL's error: no time. What is in progress is no error, and has no time either. */
static void refused(void **state)
{
    (void)state;
    all_reduce(world, 10, the_stream, 5);
    all_reduce(world, 10, the_stream, 7);
    all_reduce(world, 10, the_stream, 0);
    expect_words("may put them into their stream after the call");
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.skipped, 2);
    assert_int_equal(c.refused, 1);
    assert_int_equal(number(operation(0), "Seq"), 3);
    assert_null(operation(1));
    assert_int_equal(of_world("completed"), 3);
}

/* What may be done after the call counts as complete: nothing will be heard of it, and it is no
 * hang. What NCCL refused never is. */
static void late_is_not_lost(void **state)
{
    (void)state;
    all_reduce(world, 10, the_stream, 0);
    all_reduce(other, 10, the_stream, 0);
    for (int i = 0; i < 3; i++) {
        all_reduce(world, 10, the_stream, 7);
        all_reduce(other, 10, the_stream, 5);
    }
    pk_nccl_abort(world); /* the last one: no other follows it */
    finish();
    assert_int_equal(of_world("enqueued"), 4);
    assert_int_equal(of_world("completed"), 4);
    assert_int_equal(of_world("under_way"), 0);
    assert_int_equal(of_other("enqueued"), 4);
    assert_int_equal(of_other("completed"), 1);
}

/* What a hang needs: enqueued, begun and completed. */
static void hangs(void **state)
{
    (void)state;
    all_reduce(world, 10, the_stream, 0);
    gpu->hold(true);
    for (int i = 0; i < 5; i++)
        all_reduce(world, 10, the_stream, 0);
    gpu->run(the_stream, 3); /* one complete, and the next one's begin */
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.lost, 4);
    assert_int_equal(of_world("enqueued"), 6);
    assert_int_equal(of_world("started"), 3);
    assert_int_equal(of_world("completed"), 2);
}

static void alike_share_a_group(void **state)
{
    (void)state;
    pk_nccl_group_start();
    pk_nccl_group_start(); /* they nest */
    for (int i = 0; i < 8; i++)
        all_reduce(world, 256, the_stream, 0);
    end_group(0);
    assert_int_equal(counts_now().begun, 0);
    end_group(0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 1);
    json_t *e = operation(0);
    assert_int_equal(number(e, "calls"), 8);
    assert_int_equal(number(e, "bytes"), 1024);
    assert_int_equal(number(e, "Seq"), 8);
    assert_int_equal(calls_of_row(0), 8);
    assert_int_equal(of_row(0, "bytes"), 8 * 1024);
    assert_int_equal(of_world("completed"), 8);
    double dur = json_number_value(json_object_get(e, "dur")) * 1000;
    assert_in_range((json_int_t)(dur - (double)of_world("time")), 0, 8);
}

/* Of their numbers the words have the lower half. */
static void alike_across_a_round_number(void **state)
{
    (void)state;
    pki_store(&other->flow, (UINT64_C(1) << 32) - 3);
    pk_nccl_group_start();
    for (int i = 0; i < 8; i++)
        all_reduce(other, 256, the_stream, 0);
    end_group(0);
    finish();
    assert_int_equal(of_other("enqueued"), (INT64_C(1) << 32) + 5);
    assert_int_equal(of_other("completed"), (INT64_C(1) << 32) + 5);
    assert_int_equal(of_other("under_way"), 0);
}

static void messages_are_pairs(void **state)
{
    (void)state;
    pk_nccl_group_start(); /* with two neighbours */
    for (int32_t peer = 0; peer < 3; peer += 2) {
        message(PK_COMM_OP_SEND, 512, peer);
        message(PK_COMM_OP_RECV, 512, peer);
    }
    end_group(0);
    pk_nccl_group_start(); /* with everybody */
    for (int32_t peer = 0; peer < 4; peer++) {
        message(PK_COMM_OP_SEND, 64, peer);
        message(PK_COMM_OP_RECV, 64, peer);
    }
    end_group(0);
    pk_nccl_group_start(); /* with one twice */
    for (int i = 0; i < 4; i++) {
        message(PK_COMM_OP_SEND, 64, 2);
        message(PK_COMM_OP_RECV, 64, 2);
    }
    end_group(0);
    finish();
    assert_string_equal(text(operation(0), "Collective name"), "send_recv");
    assert_int_equal(number(operation(0), "calls"), 2);
    assert_int_equal(number(operation(0), "bytes"), 512);
    assert_string_equal(text(operation(1), "Collective name"), "all_to_all");
    assert_int_equal(number(operation(1), "bytes"), 64);
    assert_int_equal(number(operation(1), "Out msg nelems"), 256);
    assert_string_equal(text(operation(2), "Collective name"), "send_recv");
    assert_int_equal(number(operation(2), "calls"), 4);
}

static void unlike_are_one(void **state)
{
    (void)state;
    pk_nccl_group_start();
    all_reduce(world, 100, the_stream, 0);
    message(PK_COMM_OP_SEND, 16, 3);
    message(PK_COMM_OP_SEND, 16, 2);
    all_reduce(other, 5, the_stream, 0);
    end_group(0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 1);
    json_t *e = operation(0), *f = operation(1);
    assert_string_equal(text(e, "Collective name"), "group");
    assert_string_equal(text(e, "members"), "all_reduce 400 B, send 16 B x2");
    assert_int_equal(number(e, "bytes"), 432);
    assert_int_equal(number(e, "communicators"), 2);
    assert_string_equal(text(f, "members"), "all_reduce 20 B");
    assert_string_equal(text(f, "Process Group Name"), "other");
    assert_null(operation(2));
    assert_null(json_object_get(row("collectives", 0), "busbw"));
    double dur = json_number_value(json_object_get(e, "dur")) * 1000;
    json_int_t sum = of_world("time") + of_other("time");
    assert_in_range((json_int_t)(dur - (double)sum) + 2, 0, 4);
}

/* More members than the trace has room for, and places for them in several batches. */
static void many_members(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        pk_nccl_group_start();
        for (uint64_t i = 0; i < 1000; i++)
            all_reduce(world, 1 + i, the_stream, 0);
        end_group(0);
    }
    finish();
    assert_int_equal(number(operation(2), "bytes"), 4 * 500500);
    assert_non_null(strstr(text(operation(2), "members"), " more"));
}

static void streams_of_a_group(void **state)
{
    CUcontext second = gpu->context_create(0);
    CUstream there = gpu->stream_create(second);
    (void)state;
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 0);
    all_reduce(other, 20, there, 0);
    all_reduce(world, 10, the_stream, 0);
    end_group(0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(number(operation(0), "calls") + number(operation(1), "calls"), 2);
    assert_int_equal(number(operation(0), "device") + number(operation(1), "device"), 1);
}

static void refused_groups(void **state)
{
    (void)state;
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 4); /* not a member */
    all_reduce(world, 20, the_stream, 0);
    end_group(0);
    pk_nccl_group_start();
    all_reduce(world, 30, the_stream, 0);
    all_reduce(other, 30, the_stream, 0);
    end_group(6);
    pk_nccl_group_start(); /* aborted in the middle: what is left of it is */
    all_reduce(world, 40, the_stream, 0);
    all_reduce(other, 50, the_stream, 0);
    all_reduce(world, 40, the_stream, 0);
    pk_nccl_abort(world);
    end_group(0);
    pk_nccl_group_start(); /* and nothing */
    all_reduce(world, 60, the_stream, 0);
    pk_nccl_abort(world);
    end_group(0);
    pk_nccl_group_end(0);  /* one too many */
    pk_nccl_group_start(); /* refused on a stream that nobody knows: the one before it stays */
    all_reduce(world, 70, the_stream, 0);
    gpu->let_fail(FAKE_STREAM_CTX, 0, 1, CUDA_ERROR_INVALID_HANDLE);
    all_reduce(world, 70, gpu->stream_create(the_context), 4);
    end_group(0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 3);
    assert_int_equal(c.refused, 2);
    assert_int_equal(number(operation(0), "bytes"), 80);
    assert_int_equal(number(operation(1), "bytes"), 200);
    assert_string_equal(text(operation(1), "Process Group Name"), "other");
    assert_int_equal(number(operation(2), "bytes"), 280);
    assert_null(operation(3));
}

/* -- threads: places of groups' members go back and forth -- */

enum { THREADS = 3, GROUPS = 400 };

static void *make_groups(void *nothing)
{
    gpu->context_current(the_context);
    CUstream own = gpu->stream_create(the_context);
    for (uint64_t i = 0; i < GROUPS; i++) {
        pk_nccl_group_start();
        for (uint64_t n = 1; n < 6; n++)
            all_reduce(n % 2 ? world : other, n + i, own, 0);
        end_group(0);
        if (i % 50 == 0)
            sleep_ms(2); /* the collector comes meanwhile */
    }
    return nothing;
}

static void threads(void **state)
{
    pthread_t all[THREADS];
    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&all[i], NULL, make_groups, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
    pk_gpu_counts c = finish();
    assert_int_equal(c.operations, THREADS * GROUPS);
    assert_int_equal(of_world("calls"), THREADS * GROUPS);
    assert_int_equal(of_world("completed"), THREADS * GROUPS);
    assert_int_equal(of_other("completed"), THREADS * GROUPS);
    /* 1, 3, 5 and 2, 4, each with i from 0 to 399 more; 4 bytes an element */
    assert_int_equal(of_world("bytes"), THREADS * 4 * (9 * GROUPS + 3 * GROUPS * (GROUPS - 1) / 2));
    assert_int_equal(of_other("bytes"), THREADS * 4 * (6 * GROUPS + 2 * GROUPS * (GROUPS - 1) / 2));
}

static size_t notes_of_progress(void)
{
    size_t i, n = 0;
    json_t *event;
    json_array_foreach(json_object_get(doc, "traceEvents"), i, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        n += name && strcmp(name, "communicator") == 0;
    }
    return n;
}

/* What NCCL refused is not under way: nobody waits for it, least of all a later session. */
static void refused_is_no_stall(void **state)
{
    (void)state;
    all_reduce(world, 10, the_stream, 5);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(
        pk_start(pk_options(.backends = "cuda", .trace_path = TOP, .report_path = "r.json")),
        PK_OK);
    usleep(1300 * 1000); /* longer than PKI_PROGRESS_STALL_NS, and a round */
    finish();
    assert_int_equal(notes_of_progress(), 0);
}

/* A group that is open across the end of a session belongs to none. */
static void group_across_sessions(void **state)
{
    (void)state;
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(
        pk_start(pk_options(.backends = "cuda", .trace_path = TOP, .report_path = "r.json")),
        PK_OK);
    end_group(0);
    all_reduce(world, 20, the_stream, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.begun, 1);
    assert_int_equal(number(operation(0), "bytes"), 80);
}

static void no_context(void **state)
{
    (void)state;
    gpu->let_fail(FAKE_STREAM_CTX, 0, 1, CUDA_ERROR_INVALID_HANDLE);
    all_reduce(world, 1, the_stream, 0);
    pk_nccl_begin(NULL, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 1, -1, the_stream);
    pk_nccl_end(NULL, the_stream, 0);
    all_reduce(world, 1, the_stream, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.begun, 2);
    assert_int_equal(c.recorded, 1);
    assert_int_equal(number(operation(0), "Seq"), 2);
}

static const struct CMUnitTest gpu_operations_tests[] = {
    traced(once_under_its_region),
    traced(beside_spans),
    traced(refused),
    traced(late_is_not_lost),
    traced(hangs),
    traced(alike_share_a_group),
    traced(alike_across_a_round_number),
    traced(messages_are_pairs),
    traced(unlike_are_one),
    traced(many_members),
    traced(streams_of_a_group),
    traced(refused_groups),
    traced(refused_is_no_stall),
    traced(group_across_sessions),
    traced(no_context),
    traced(threads),
};

static int run_gpu_operations(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_double(argv[1]);
    return cmocka_run_group_tests(gpu_operations_tests, NULL, NULL);
}

/* ---- operations of communicators that do not block, on the mock of the driver ---- */

/* They come into their stream after the call, and their end is recorded when they have. */

/* Its time goes on until the communicator says for the first time that it has come. */
static void in_progress(void **state)
{
    uint64_t stamps[8];
    (void)state;
    all_reduce(world, 10, the_stream, 7);
    pk_nccl_async(world, 7);
    pk_nccl_async(other, 0);
    sleep_ms(30);
    assert_int_equal(counts_now().recorded, 0);
    uint64_t now = gpu->device_ns();
    pk_nccl_async(world, 0);
    assert_int_equal(gpu->stamps(the_stream, stamps, 8), 2);
    assert_true(stamps[0] < now && stamps[1] >= now);
    pk_nccl_async(world, 0);
    pk_nccl_async(NULL, 0);
    all_reduce(world, 20, the_stream, 7);
    pk_nccl_async(world, 3); /* it failed */
    all_reduce(world, 30, the_stream, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.refused, 1);
    assert_int_equal(c.skipped, 1);
    assert_int_equal(number(operation(0), "bytes"), 40);
    assert_true(json_number_value(json_object_get(operation(0), "dur")) >= 30000);
    assert_int_equal(number(operation(1), "bytes"), 120);
    assert_int_equal(of_world("completed"), 3);
}

/* A group has come when all of its communicators have; on another thread nobody can tell. */
static void groups_in_progress(void **state)
{
    (void)state;
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 0);
    all_reduce(other, 10, the_stream, 0);
    end_group(7);
    pk_nccl_async(other, 0);
    sleep_ms(30);
    assert_int_equal(counts_now().recorded, 0);
    pk_nccl_async(world, 0);
    await(counts_now().recorded == 1);
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 0);
    all_reduce(other, 10, the_stream, 0);
    end_group(7);
    pk_nccl_async(other, 3);
    pk_nccl_async(world, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.refused, 1);
}

/* A span that is around it ends first: nobody knows where the operation is. */
static void in_progress_in_a_span(void **state)
{
    (void)state;
    pk_gpu_begin(&layer, the_stream);
    all_reduce(world, 10, the_stream, 7);
    pk_gpu_end(&layer, the_stream);
    pk_nccl_async(world, 0);
    span(&layer);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.operations, 0);
    assert_int_equal(c.skipped, 1);
    assert_int_equal(spans_of(&layer), 2);
}

static const struct CMUnitTest gpu_pending_tests[] = {
    traced(in_progress),
    traced(groups_in_progress),
    traced(in_progress_in_a_span),
};

static int run_gpu_pending(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_double(argv[1]);
    return cmocka_run_group_tests(gpu_pending_tests, NULL, NULL);
}

/* ---- pk/nccl.h in graphs ---- */

/* Operations that are captured, and replayed. */

static CUgraph capture(void)
{
    CUgraph graph;
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    pk_region_begin(&layer);
    all_reduce(world, 100, the_stream, 0);
    pk_nccl_group_start();
    message(PK_COMM_OP_SEND, 16, 3);
    all_reduce(other, 5, the_stream, 0);
    end_group(0);
    pk_region_end(&layer);
    assert_int_equal(gpu->capture_end(the_stream, &graph), 0);
    return graph;
}

static void replays(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 10; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    pk_gpu_counts c = finish();
    assert_int_equal(c.captured, 2);
    assert_int_equal(c.replayed, 20);
    assert_int_equal(c.operations, 20);
    json_t *e = operation(27); /* of the last replay: each is an operation and a group of two */
    assert_string_equal(text(e, "Collective name"), "all_reduce");
    assert_string_equal(text(e, "region"), "layer");
    assert_int_equal(number(e, "bytes"), 400);
    assert_int_equal(number(e, "Seq"), 19);
    assert_true(number(e, "graph") > 0);
    assert_non_null(operation(29));
    assert_null(operation(30));
    assert_int_equal(of_world("enqueued"), 20);
    assert_int_equal(of_world("completed"), 20);
    assert_int_equal(of_other("completed"), 10);
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

static void replays_unannounced(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->launch(exec, the_stream);
    await(counts_now().sampled == 2);
    pk_gpu_counts c = finish();
    assert_int_equal(c.operations, 2);
    assert_int_equal(of_world("completed"), 2);
    assert_non_null(operation(2));
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

/* Announced, launched, and not reached. */
static void replays_lost(void **state)
{
    (void)state;
    CUgraph graph = capture();
    CUgraphExec exec = gpu->instantiate(graph);
    gpu->hold(true);
    pk_gpu_graph_launching(exec, graph, the_stream);
    gpu->launch(exec, the_stream);
    pk_gpu_counts c = finish();
    assert_int_equal(c.lost, 2);
    assert_int_equal(of_world("enqueued"), 2);
    assert_int_equal(of_world("completed"), 0);
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

/* NCCL refused what was captured: it is nothing in a replay, and what else there is, is told. */
static void refused_in_a_capture(void **state)
{
    CUgraph graph;
    (void)state;
    assert_int_equal(gpu->capture_begin(the_stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    all_reduce(world, 100, the_stream, 4);
    all_reduce(world, 200, the_stream, 0);
    assert_int_equal(gpu->capture_end(the_stream, &graph), 0);
    CUgraphExec exec = gpu->instantiate(graph);
    for (int i = 0; i < 5; i++) {
        pk_gpu_graph_launching(exec, graph, the_stream);
        gpu->launch(exec, the_stream);
    }
    pk_gpu_counts c = finish();
    assert_int_equal(c.captured, 1);
    assert_int_equal(c.refused, 1);
    assert_int_equal(c.operations, 5);
    assert_int_equal(number(operation(0), "bytes"), 800);
    assert_null(operation(5));
    assert_int_equal(of_world("completed"), 5);
    gpu->graph_destroy(graph);
    gpu->exec_destroy(exec);
}

static const struct CMUnitTest gpu_replays_tests[] = {
    traced(replays),
    traced(replays_unannounced),
    traced(replays_lost),
    traced(refused_in_a_capture),
};

static int run_gpu_replays(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    open_double(argv[1]);
    return cmocka_run_group_tests(gpu_replays_tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    int failed = run_gpu_operations(argc, argv);
    failed += run_gpu_pending(argc, argv);
    failed += run_gpu_replays(argc, argv);
    return failed;
}
