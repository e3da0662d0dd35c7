/* pk/nccl.h on the mock of the driver: operations of communicators between events, and groups. */
#include "gpu_operations.h"

#include "comm/model/communicator.h"

#include <errno.h>
#include <unistd.h>
#include <pthread.h>

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
        message(PK_OP_SEND, 512, peer);
        message(PK_OP_RECV, 512, peer);
    }
    end_group(0);
    pk_nccl_group_start(); /* with everybody */
    for (int32_t peer = 0; peer < 4; peer++) {
        message(PK_OP_SEND, 64, peer);
        message(PK_OP_RECV, 64, peer);
    }
    end_group(0);
    pk_nccl_group_start(); /* with one twice */
    for (int i = 0; i < 4; i++) {
        message(PK_OP_SEND, 64, 2);
        message(PK_OP_RECV, 64, 2);
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
    message(PK_OP_SEND, 16, 3);
    message(PK_OP_SEND, 16, 2);
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

/* ---- threads: places of groups' members go back and forth ---- */

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
    pk_nccl_begin(NULL, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, 1, -1, the_stream);
    pk_nccl_end(NULL, the_stream, 0);
    all_reduce(world, 1, the_stream, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.begun, 2);
    assert_int_equal(c.recorded, 1);
    assert_int_equal(number(operation(0), "Seq"), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
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
    if (argc != 2)
        return 2;
    open_double(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
