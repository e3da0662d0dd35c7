/* What NCCL tells, version by version: streams, graphs, many communicators, and what is in trace
 * and report afterwards. */
#include "role.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

/* ---- a session with one communicator, once for each version of the interface ---- */

static void *world;

static int open_world(void **state)
{
    (void)state;
    start_session();
    world = make_comm("world", 0x1234, 1, 4);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    plugin->finalize(world);
    pk_stop();
    kit_clean();
    unsetenv("NCCL_PROFILER_PLUGIN");
    return 0;
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

/* How many groups have failed. argv[1]: the shim, if not empty. */
static int in_versions(int first, int argc, char **argv, const struct CMUnitTest *tests,
                       size_t count)
{
    int failed = 0;
    char name[24];
    shim = argc > 1 && *argv[1] ? argv[1] : NULL;
    unsetenv("NCCL_PROFILER_PLUGIN");
    for (version = first; version <= 6; version++) {
        snprintf(name, sizeof name, "version %d", version);
        failed += _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    }
    return failed;
}

/* ---- what NCCL tells, version by version, and what is in trace and report afterwards ---- */

/* Streams [SHIM] */

static pk_region backward = PK_REGION_OF(PK_COMPUTE, "backward");
/* A task then waits for the kernels of its channels. */
static int open_with_kernels(void **state)
{
    setenv("PK_NCCL_KERNEL_CH", "1", 1);
    int status = open_world(state);
    unsetenv("PK_NCCL_KERNEL_CH");
    return status;
}

static void every_collective_once(void **state)
{
    static const struct {
        const char *func, *name;
    } all[] = {{"AllReduce", "all_reduce"},
               {"Broadcast", "broadcast"},
               {"Reduce", "reduce"},
               {"AllGather", "all_gather"},
               {"ReduceScatter", "reduce_scatter"}};
    char name[40];
    (void)state;
    assert_int_not_equal(mask, 0);
    pk_region_begin(&backward);
    for (size_t i = 0; i < 5; i++)
        collective(world, all[i].func, 1000 + i);
    pk_region_end(&backward);
    json_t *doc = stop_session();
    json_int_t first =
        number(find_event(doc, "NCCL all_reduce"), "Seq"); /* goes on with its name */
    for (size_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "NCCL %s", all[i].name);
        assert_int_equal(count_events(doc, "X", name), 1);
        const json_t *e = find_event(doc, name);
        assert_string_equal(text(e, "Collective name"), all[i].name);
        assert_int_equal(number(e, "bytes"), 4 * (1000 + i));
        assert_string_equal(text(e, "region"), "backward");
        assert_string_equal(text(e, "algorithm"), "RING");
        assert_string_equal(text(e, "protocol"), "LL128");
        assert_int_equal(number(e, "channels"), 2);
        assert_int_equal(number(e, "nccl seq"), 7);
        assert_int_equal(number(e, "Seq"), first + (json_int_t)i);
        assert_int_equal(number(e, "Rank"), 1);
        assert_true((json_object_get(member(e, "args"), "Root") != NULL) == (i == 1 || i == 2));
        assert_int_equal(number(e, "Group size"), version < 4 ? 1 : 4);
        assert_string_equal(text(e, "Process Group Name"), version < 4 ? "old world" : "world");
        assert_string_equal(text(e, "Comms Id"),
                            version < 4 ? "000000000000abcd" : "0000000000001234");
    }
    const json_t *gather = find_event(doc, "NCCL all_gather");
    assert_string_equal(text(gather, "dtype"), version < 5 ? "Char" : "Float");
    assert_int_equal(number(gather, "In msg nelems"), version < 5 ? 4 * 1003 : 1003);
    assert_int_equal(count_events(doc, "X", "AllReduce"), version >= 5);
    assert_int_equal(count_events(doc, "X", "group"), version >= 5 ? 5 : 0);
    json_decref(doc);
    assert_int_equal(calls(), 5);
}

static void messages(void **state)
{
    (void)state;
    void *call = NULL;
    if (version >= 5) {
        call = begin(world, .type = P2P_API, .func = "AlltoAll", .element = float32, .count = 9);
        end(call);
    }
    task(world, call,
         (says){.type = P2P, .func = "Send", .element = float32, .count = 9, .peer = 3});
    call = NULL;
    if (version >= 5) {
        call = begin(world, .type = P2P_API, .func = "AlltoAll", .element = float32, .count = 8);
        end(call);
    }
    task(world, call,
         (says){.type = P2P, .func = "Recv", .element = float32, .count = 8, .peer = 2});
    json_t *doc = stop_session();
    const json_t *sent = find_event(doc, "NCCL send"), *received = find_event(doc, "NCCL recv");
    assert_int_equal(number(sent, "bytes"), 36);
    assert_int_equal(number(sent, "Dst Rank"), 3);
    assert_int_equal(number(received, "bytes"), 32);
    assert_int_equal(number(received, "Src Rank"), 2);
    if (version >= 5)
        assert_string_equal(text(sent, "call"), "AlltoAll");
    json_decref(doc);
    assert_int_equal(calls(), 2);
}

/* The collective is over when the network is, and knows what that had to do. */
static void network(void **state)
{
    (void)state;
    end(begin(world, .type = PROXY_OP)); /* from now on tasks wait for what the network does */
    must(pk_flush() == PK_OK);
    void *event = begin_collective(world, "AllReduce", 1000);
    void *op = begin(world, .type = PROXY_OP, .parent = event, .channels = 3, .peer = 2, .steps = 4,
                     .sends = 1);
    end(event);
    for (int i = 0; i < 4; i++) {
        size_t moved[2] = {0, 0};
        void *step = begin(world, .type = PROXY_STEP, .parent = op);
        must(plugin->state(step, 8, moved) == 0);
        kit_sleep_us(1000);
        moved[0] = 512;
        must(plugin->state(step, 9, moved) == 0);
        end(step);
    }
    end(op);
    json_t *doc = stop_session();
    const json_t *e = find_event(doc, "NCCL all_reduce");
    assert_string_equal(text(e, "timed by"), "proxy");
    assert_int_equal(number(e, "proxy operations"), 1);
    assert_int_equal(number(e, "proxy steps"), 4);
    assert_int_equal(optional(e, "proxy bytes"), version < 4 ? 0 : 2048);
    assert_true(number(e, "waited for GPU ns") >= 4000000);
    assert_true(json_number_value(member(e, "dur")) >= 4000);
    assert_int_equal(number(find_event(doc, "send"), "Peer"), 2);
    json_decref(doc);
}

static void kernels(void **state)
{
    (void)state;
    if (version < 3)
        return;
    void *event = begin_collective(world, "AllReduce", 1000);
    for (int i = 0; i < 2; i++) {
        uint64_t timer = 1000000 + 5000 * (unsigned)i + 20000;
        void *channel = begin(world, .type = KERNEL_CH, .parent = event, .channels = i,
                              .timer = 1000000 + 5000 * (unsigned)i);
        if (i == 0)
            end(event);
        kit_sleep_us(1000);
        must(plugin->state(channel, 22, version >= 4 ? (void *)&timer : NULL) == 0);
        end(channel);
    }
    json_t *doc = stop_session();
    const json_t *e = find_event(doc, "NCCL all_reduce");
    assert_string_equal(text(e, "timed by"), "kernel");
    if (version >= 4) {
        assert_true(json_number_value(member(e, "dur")) == 25);
        assert_int_equal(number(find_event(doc, "kernel"), "GPU ns"), 20000);
    }
    assert_int_equal(count_events(doc, "X", "kernel"), 2);
    json_decref(doc);
    json_t *report = load_document(report_path);
    const json_t *row = json_array_get(member(member(report, "comm"), "collectives"), 0);
    assert_true((json_object_get(row, "busbw") != NULL) == (version >= 4)); /* ranks are unknown */
    json_decref(report);
}

/* Symmetric kernels and copy engines: the call is all that is told, or nearly. */
static void calls_alone(void **state)
{
    (void)state;
    if (version < 5)
        return;
    end(begin(world, .type = COLL_API, .func = "AllReduce", .element = float32, .count = 6));
    void *call =
        begin(world, .type = COLL_API, .func = "AllGather", .element = float32, .count = 5);
    end(call);
    if (version >= 6)
        task(world, call,
             (says){.type = CE_COLL, .func = "AllGather", .element = float32, .count = 5});
    end(begin(world, .type = COLL_API, .func = "Reduce", .element = float32, .count = 5,
              .captured = true));
    json_t *doc = stop_session();
    assert_int_equal(number(find_event(doc, "NCCL all_reduce"), "bytes"), 24);
    assert_int_equal(count_events(doc, "X", "NCCL all_gather"), 1);
    assert_int_equal(count_events(doc, "X", "NCCL reduce"), 0);
    json_decref(doc);
    assert_int_equal(calls(), 2);
}

/* Handles that were never given out, of others' processes, or whose events are over. */
static void dangling(void **state)
{
    void *const wrong[] = {NULL, (void *)1, (void *)0x7ffff7dd0000, (void *)UINTPTR_MAX, state};
    void *over = collective(world, "AllReduce", 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t args[2] = {1, 2};
        end(begin(world, .type = PROXY_OP, .parent = wrong[i]));
        end(begin(world, .type = PROXY_STEP, .parent = wrong[i]));
        task(world, wrong[i], coll("AllReduce", float32, 10));
        end(wrong[i]);
        must(plugin->state(wrong[i], 9, args) == 0);
    }
    end(over);
    end(begin(world, .type = PROXY_OP, .parent = over, .foreign = 1));
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 6);
    assert_int_equal(optional(find_event(doc, "NCCL all_reduce"), "proxy operations"), 0);
    json_decref(doc);
    assert_non_null(strstr(status(), "ends of events that were not open"));
}

static void unknown_types(void **state)
{
    (void)state;
    for (int bit = 0; bit < 31; bit++)
        if (bit >= 15 && (version >= 5 || bit < 8))
            assert_null(begin(world, .type = 1 << bit));
    assert_null(begin(world, .type = 0));
    assert_null(begin(world, .type = COLL | P2P));
    assert_null(begin(NULL, .type = GROUP));
    end(NULL);
    collective(world, "AllReduce", 1);
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 1);
    json_decref(doc);
    assert_non_null(strstr(status(), "unknown types"));
}

#define THREADS 4
static unsigned rounds;

static void *enqueue(void *context)
{
    for (unsigned i = 0; i < rounds; i++) {
        void *op = begin(context, .type = PROXY_OP, .parent = collective(context, "AllReduce", 4));
        end(begin(context, .type = PROXY_STEP, .parent = op));
        end(op);
        if (i % 64 == 0)
            kit_sleep_us(5000);
    }
    return NULL;
}

static void threads(void **state)
{
    pthread_t thread[THREADS];
    void *comms[THREADS / 2];
    (void)state;
    rounds = kit_scaled(1000);
    for (int i = 0; i < THREADS / 2; i++)
        comms[i] = make_comm(i ? "one" : "other", 5 + (unsigned)i, i, 2);
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&thread[i], NULL, enqueue, comms[i / 2]) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS / 2; i++)
        plugin->finalize(comms[i]);
    json_t *doc = stop_session();
    size_t told = count_events(doc, "X", "NCCL all_reduce");
    assert_true(told == THREADS * rounds || (told > 0 && strstr(status(), "dropped")));
    assert_int_equal(told, calls());
    json_decref(doc);
}

/* The pool is one for all versions: a sanitizer, in which to fill it takes a second or three, sees
 * the first and the last. */
static void skip_if_seen(void)
{
    if ((kit_sanitized("thread") || kit_sanitized("address")) && version > 2 && version < 6)
        skip();
}

/* More than the pool holds, and none of it ever ends. */
static void too_many(void **state)
{
    static void *events[20000];
    unsigned made = 0;
    (void)state;
    skip_if_seen();
    for (unsigned i = 0; i < 20000; i++) {
        events[i] = begin(world, .type = GROUP);
        made += events[i] != NULL;
    }
    assert_int_equal(made, 16384);
    assert_non_null(strstr(status(), "events dropped: the pool was full"));
    for (unsigned i = 0; i < 20000; i++)
        end(events[i]);
    must(pk_flush() == PK_OK);
    collective(world, "AllReduce", 1);
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 1);
    json_decref(doc);
}

static const char *verdict_on_drops(const json_t *report)
{
    size_t i;
    json_t *row;
    json_array_foreach(member(report, "verdicts"), i, row)
    {
        if (strcmp(json_string_value(member(row, "name")), "operations-dropped") == 0)
            return json_string_value(member(row, "text"));
    }
    return NULL;
}

/* Operations that are under way all at once: who finds no room is missing, and that is said. */
static void too_many_operations(void **state)
{
    static void *tasks[20000];
    uint64_t made = 0;
    (void)state;
    skip_if_seen();
    for (unsigned i = 0; i < 20000; i++) {
        tasks[i] = begin(world, .type = COLL, .func = "AllReduce", .count = 4,
                         .element = "ncclFloat32", .algorithm = "RING", .protocol = "LL");
        made += tasks[i] != NULL;
    }
    assert_in_range(made, 16384 - 64, 16384);
    for (unsigned i = 0; i < 20000; i++)
        end(tasks[i]);
    json_decref(stop_session());
    json_t *report = load_document(report_path);
    const json_t *comm = member(report, "comm");
    assert_int_equal(json_integer_value(member(comm, "dropped_operations")), 20000 - made);
    assert_int_equal(json_integer_value(member(comm, "dropped_events")), 20000 - made);
    assert_non_null(verdict_on_drops(report));
    assert_non_null(strstr(verdict_on_drops(report), "of NCCL's operations"));
    json_decref(report);
}

/* A rank that issues fewer than others, and groups that find no room: no operation is missing. */
static void fewer_operations(void **state)
{
    static void *groups[20000];
    (void)state;
    skip_if_seen();
    for (unsigned i = 0; i < 20000; i++)
        groups[i] = begin(world, .type = GROUP);
    for (unsigned i = 0; i < 20000; i++)
        end(groups[i]);
    must(pk_flush() == PK_OK);
    collective(world, "AllReduce", 1);
    json_decref(stop_session());
    json_t *report = load_document(report_path);
    const json_t *comm = member(report, "comm");
    assert_int_equal(json_integer_value(member(comm, "dropped_operations")), 0);
    assert_in_range(json_integer_value(member(comm, "dropped_events")), 1, 20000 - 16000);
    assert_null(verdict_on_drops(report));
    json_decref(report);
}

/* Made twice, one never finalized, one aborted amid an operation. */
static void untidy(void **state)
{
    void *twice = make_comm("world", 0x1234, 1, 4), *left = make_comm("left", 6, 0, 2);
    void *aborted = make_comm("aborted", 7, 0, 2), *gone = make_comm("gone", 8, 0, 2);
    (void)state;
    collective(twice, "AllReduce", 1);
    collective(left, "AllReduce", 2);
    begin(aborted, .type = version >= 5 ? GROUP_API : GROUP);
    void *op = begin(aborted, .type = PROXY_OP, .parent = collective(aborted, "AllReduce", 3));
    plugin->finalize(aborted);
    plugin->finalize(twice);
    plugin->finalize(twice);
    plugin->finalize(gone);
    must(pk_flush() == PK_OK);
    must(pk_flush() == PK_OK);
    end(op);
    assert_ptr_not_equal(make_comm("again", 7, 0, 2), aborted);
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 3);
    json_decref(doc);
}

/* An event that one session begins ends in the next one, or between; NCCL stays. */
static void sessions(void **state)
{
    (void)state;
    void *across = begin(world, .type = PROXY_OP);
    void *event = collective(world, "AllReduce", 1);
    json_t *doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 1);
    json_decref(doc);
    assert_int_equal(mask, 0);
    assert_null(begin(world, .type = GROUP));
    end(event);
    start_session();
    assert_int_not_equal(mask, 0);
    end(across);
    collective(world, "Broadcast", 1);
    doc = stop_session();
    assert_int_equal(count_events(doc, "X", "NCCL all_reduce"), 0);
    assert_int_equal(count_events(doc, "X", "NCCL broadcast"), 1);
    assert_int_equal(count_events(doc, "X", "receive"), 0);
    json_decref(doc);
    assert_int_equal(calls(), 1);
}

static void forks(void **state)
{
    (void)state;
    void *event = begin(world, .type = GROUP);
    /* One has no threads behind a fork, the other (gcc 12) holds locks of its own across it. */
    bool spoilt = kit_sanitized("thread") || kit_sanitized("address");
    pid_t child = spoilt ? -1 : fork();
    int result;
    if (child == 0) {
        end(event);
        must(!begin(world, .type = GROUP));
        plugin->finalize(world);
        start_session();
        collective(make_comm("child", 9, 0, 2), "AllReduce", 1);
        must(pk_stop() == PK_OK);
        _exit(strstr(status(), "1 operations") ? 0 : 1);
    }
    assert_true(child < 0 || (waitpid(child, &result, 0) == child && result == 0));
    end(event);
    collective(world, "AllReduce", 1);
    must(pk_stop() == PK_OK);
    assert_non_null(strstr(status(), "1 operations"));
}

static int run_streams(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        with_world(every_collective_once),
        with_world(messages),
        with_world(network),
        cmocka_unit_test_setup_teardown(kernels, open_with_kernels, close_world),
        with_world(calls_alone),
        with_world(dangling),
        with_world(unknown_types),
        with_world(threads),
        with_world(too_many),
        with_world(too_many_operations),
        with_world(fewer_operations),
        with_world(untidy),
        with_world(sessions),
        with_world(forks),
    };
    setenv("PK_NCCL_PROXY_STEPS", "1", 1);
    return in_versions(2, argc, argv, tests, sizeof tests / sizeof *tests);
}

/* ---- what NCCL tells of CUDA graphs ---- */

/* Calls that are captured, and what comes of them. From version 5 on, which tells of calls at all.
 *
 * graphs [SHIM] */

static pk_region graphs_backward = PK_REGION_OF(PK_COMPUTE, "backward");

/* Captured calls are no operations; each replay is, with a parent that is long gone. */
static void replays(void **state)
{
    (void)state;
    pk_region_begin(&graphs_backward);
    void *call = begin(world, .type = COLL_API, .func = "AllReduce", .element = float32,
                       .count = 10, .captured = true);
    end(call);
    pk_region_end(&graphs_backward);
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

static int run_graphs(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_world(replays), with_world(captures)};
    return in_versions(5, argc, argv, tests, sizeof tests / sizeof *tests);
}

/* ---- what the report has of what NCCL tells ---- */

/* The steps of the slowest operations, the algorithms, and how far a communicator has come that
 * hangs.
 *
 * report [SHIM] */

static pk_region report_backward = PK_REGION_OF(PK_COMPUTE, "backward");

static json_t *comm_of(json_t *report, const char *part)
{
    return member(member(report, "comm"), part);
}

/* Each under its region and its step. */
static void steps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        pk_region_begin(&report_backward);
        collective(world, "AllReduce", 100 + i);
        pk_region_end(&report_backward);
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

static int run_report(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {with_world(steps), with_world(algorithms),
                                       with_world(a_hang), with_world(made_anew),
                                       with_world(ranks)};
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "4", 1);
    return in_versions(2, argc, argv, tests, sizeof tests / sizeof *tests);
}

/* ---- many ---- */

/* Sixteen communicators at once, each on a thread of its own, made, used and finalized while the
 * collector goes its rounds. However the threads fall: what was started is what is counted, of
 * each of them. A session has fewer events than the pool has places, so none may be dropped.
 *
 * many [SHIM [SESSIONS]] */

enum { COMMS = 16, PLACES = 16384 };

static unsigned operations; /* of each communicator */
static unsigned running;
static pthread_barrier_t line;

static void *rank(void *number)
{
    char name[24];
    unsigned n = (unsigned)(uintptr_t)number;
    snprintf(name, sizeof name, "comm %u", n);
    pthread_barrier_wait(&line);
    void *context = make_comm(name, 100 + n, 0, 2);
    for (unsigned i = 0; i < operations; i++)
        collective(context, i % 2 ? "AllReduce" : "ReduceScatter", 4 + n);
    plugin->finalize(context);
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void play(void)
{
    pthread_t threads[COMMS];
    must(pthread_barrier_init(&line, NULL, COMMS) == 0);
    running = COMMS;
    for (unsigned i = 0; i < COMMS; i++)
        must(pthread_create(&threads[i], NULL, rank, (void *)(uintptr_t)i) == 0);
    while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0)
        must(pk_flush() == PK_OK); /* a round, and another */
    for (unsigned i = 0; i < COMMS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&line);
}

/* Of every communicator as many as were started; those of the session before may still be listed,
 * and have none. */
static void check(unsigned session)
{
    json_t *report = load_document(report_path), *comm;
    json_t *all = member(member(report, "comm"), "communicators");
    size_t i, right = 0;
    json_array_foreach(all, i, comm)
    {
        json_int_t calls = json_integer_value(member(comm, "calls"));
        right += calls == operations;
        if (calls > 0 && calls != operations)
            print_error("session %u, %s: %lld of %u\n", session,
                        json_string_value(member(comm, "name")), (long long)calls, operations);
    }
    json_decref(report);
    assert_int_equal(right, COMMS);
    assert_int_equal(calls(), COMMS * operations);
    assert_null(strstr(status(), "dropped"));
}

static unsigned many_sessions;

static void what_was_started(void **state)
{
    (void)state;
    operations = PLACES / COMMS / (version >= 5 ? 4u : 2u) - 1; /* so many events each */
    for (unsigned i = 0; i < many_sessions; i++) {
        start_session();
        play();
        assert_int_equal(pk_stop(), PK_OK);
        check(i);
        kit_clean();
        unsetenv("NCCL_PROFILER_PLUGIN");
    }
}

static int run_many(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_started)};
    many_sessions = argc > 2 ? (unsigned)atoi(argv[2]) : kit_scaled(10);
    return in_versions(4, argc, argv, tests, 1);
}

/* calls NAME [SHIM] [ARGUMENT] */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"streams", run_streams},
        {"graphs", run_graphs},
        {"report", run_report},
        {"many", run_many},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
