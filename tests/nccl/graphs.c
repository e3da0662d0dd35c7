/* graphs.c - what NCCL tells of CUDA graphs: calls that are captured, and what comes of them. From
 * version 5 on, which tells of calls at all.
 *
 * graphs [SHIM] */
#include "world.h"

static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward");

/* Captured calls are no operations; each replay is, with a parent that is long gone. */
static void replays(void **state)
{
    (void)state;
    pk_region_begin(&backward);
    void *call = begin(world, .type = COLL_API, .func = "AllReduce", .element = float32,
                       .count = 10, .captured = true);
    end(call);
    pk_region_end(&backward);
    for (int i = 0; i < 3; i++) {
        task(world, call, coll("AllReduce", float32, 10));
        must(pk_flush() == PK_OK);
    }
    for (unsigned i = 0; i < 3 * 16384; i++) { /* the place of the call is others' by now */
        end(begin(world, .type = GROUP));
        if (i % 4096 == 0)
            must(pk_flush() == PK_OK);
    }
    task(world, call, coll("AllReduce", float32, 10));
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 4);
    assert_null(json_object_get(member(find_event(doc, "NCCL all_reduce"), "args"), "region"));
    json_decref(doc);
    assert_int_equal(calls(), 4);
}

/* A call within a group that is captured, and its task if NCCL makes one amid the capture. */
static void *capture(int type, const char *func, bool with_task, bool with_round)
{
    void *group = begin(world, .type = GROUP_API);
    void *call = begin(world, .type = type, .parent = group, .func = func, .element = float32,
                       .count = 10, .captured = true);
    end(call);
    if (with_round)
        must(pk_flush() == PK_OK);
    if (with_task && type == COLL_API)
        task(world, call, coll(func, float32, 10));
    else if (with_task)
        task(world, call, (says){.type = P2P, .func = func, .element = float32, .count = 10});
    if (with_round)
        must(pk_flush() == PK_OK);
    kit_sleep_us(10);
    end(group);
    return call;
}

/* On one node NCCL makes the task as it captures, when nothing runs, and none at a replay. Where
 * the network is, or kernels are timed, it makes one at each replay, and none before. */
static void captures(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        capture(COLL_API, "AllReduce", true, i % 2);
    capture(P2P_API, "Send", true, false);
    void *call = capture(COLL_API, "Broadcast", false, true);
    void *other = capture(COLL_API, "Reduce", false, false);
    for (int i = 0; i < 3; i++) {
        task(world, call, coll("Broadcast", float32, 10));
        task(world, other, coll("Reduce", float32, 10));
        must(pk_flush() == PK_OK);
    }
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 0);
    assert_int_equal(count_events(doc, "X", "NCCL send"), 0);
    assert_int_equal(count_events(doc, "X", "NCCL broadcast"), 3);
    assert_int_equal(count_events(doc, "X", "NCCL reduce"), 3);
    assert_int_equal(count_events(doc, "X", "AllReduce"), 4); /* the calls are in the trace */
    json_decref(doc);
    assert_int_equal(calls(), 6);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_world(replays), with_world(captures)};
    return in_versions(5, argc, argv, tests, sizeof tests / sizeof *tests);
}
