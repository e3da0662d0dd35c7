/* report.c - what the report has of what NCCL tells: the steps of the slowest operations, the
 * algorithms, and how far a communicator has come that hangs.
 *
 * report [SHIM] */
#include "world.h"

static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward");

static json_t *comm_of(json_t *report, const char *part)
{
    return member(member(report, "comm"), part);
}

/* Each under its region and its step. */
static void steps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        pk_region_begin(&backward);
        collective(world, "AllReduce", 100 + i);
        pk_region_end(&backward);
        pk_step(1);
    }
    json_decref(stop_session());
    json_t *report = load_document(report_path), *slow = comm_of(report, "slowest"), *row;
    size_t i;
    bool seen[4] = {false};
    assert_int_equal(json_array_size(slow), 4);
    json_array_foreach(slow, i, row)
    {
        json_int_t step = json_integer_value(member(row, "step"));
        assert_true(json_is_true(member(row, "in_step")));
        assert_int_equal(json_integer_value(member(row, "bytes")), 4 * (100 + step));
        assert_string_equal(json_string_value(member(row, "region")), "backward");
        seen[step] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    json_decref(report);
}

static void algorithms(void **state)
{
    (void)state;
    says tree = coll("AllReduce", float32, 1000);
    tree.algorithm = "TREE";
    tree.protocol = "SIMPLE";
    tree.channels = 8;
    for (int i = 0; i < 3; i++)
        collective(world, "AllReduce", 1000); /* RING LL128 on 2 */
    task(world, NULL, tree);
    json_decref(stop_session());
    json_t *report = load_document(report_path);
    json_t *row = json_array_get(comm_of(report, "collectives"), 0);
    json_t *ways = member(row, "algorithms"), *first = json_array_get(ways, 0);
    assert_int_equal(json_array_size(ways), 2);
    assert_string_equal(json_string_value(member(first, "algorithm")), "RING");
    assert_string_equal(json_string_value(member(first, "protocol")), "LL128");
    assert_int_equal(json_integer_value(member(first, "calls")), 3);
    assert_true(json_number_value(member(first, "channels")) == 2);
    assert_string_equal(json_string_value(member(json_array_get(ways, 1), "algorithm")), "TREE");
    json_decref(report);
}

/* The communicator that this session has used: those of earlier ones are in the list, without
 * calls.
 */
static json_t *only_user(json_t *report)
{
    json_t *row, *only = NULL;
    size_t i;
    json_array_foreach(comm_of(report, "communicators"), i, row)
    {
        if (json_integer_value(member(row, "calls")) == 0)
            continue;
        assert_null(only);
        only = row;
    }
    assert_non_null(only);
    return only;
}

/* Three are handed to NCCL, of which the first is over and the second has begun to move data: while
 * its task is open, since any round may take it for over without a child. */
static void a_hang(void **state)
{
    (void)state;
    collective(world, "AllReduce", 1);
    must(pk_flush() == PK_OK);
    void *second = begin_collective(world, "AllReduce", 2);
    begin(world, .type = PROXY_OP, .parent = second);
    end(second);
    begin(world, .type = COLL, .func = "AllReduce", .element = float32, .count = 3);
    must(pk_flush() == PK_OK);
    json_decref(stop_session());
    json_t *report = load_document(report_path), *row = only_user(report);
    json_int_t enqueued = json_integer_value(member(row, "enqueued"));
    assert_int_equal(json_integer_value(member(row, "started")), enqueued - 1);
    assert_int_equal(json_integer_value(member(row, "completed")), enqueued - 2);
    json_decref(report);
}

/* One that is made, used and finalized again and again is one row, wherever the rounds fall. */
static void made_anew(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        void *anew = make_comm("anew", 6, 1, 4);
        collective(anew, "AllReduce", 1);
        if (i & 1)
            must(pk_flush() == PK_OK);
        plugin->finalize(anew);
        if (i & 2)
            must(pk_flush() == PK_OK);
    }
    json_decref(stop_session());
    json_t *report = load_document(report_path), *row = only_user(report);
    assert_int_equal(json_integer_value(member(row, "calls")), 6);
    json_decref(report);
}

static void ranks(void **state)
{
    (void)state;
    void *pair = make_comm("pair", 5, 0, 2);
    collective(world, "AllReduce", 1);
    collective(pair, "Broadcast", 1);
    json_t *doc = stop_session();
    plugin->finalize(pair);
    json_t *whole = member(find_event(doc, "NCCL all_reduce"), "args");
    json_t *part = member(find_event(doc, "NCCL broadcast"), "args");
    const char *list = json_string_value(json_object_get(whole, "Process Group Ranks"));
    if (version < 4) /* how many there are is not told */
        assert_null(list);
    else
        assert_string_equal(list, "[0, 1, 2, 3]");
    assert_null(json_object_get(part, "Process Group Ranks"));
    json_decref(doc);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_world(steps), with_world(algorithms),
                                       with_world(a_hang), with_world(made_anew),
                                       with_world(ranks)};
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "4", 1);
    return in_versions(2, argc, argv, tests, sizeof tests / sizeof *tests);
}
