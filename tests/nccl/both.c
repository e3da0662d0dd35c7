/* NCCL's operations from both sides: where they are called (pk/nccl.h, which libpk_nccl is made of)
 * and by its profiler interface. They are in the trace once as an operation, once as a detail, and
 * in the figures once. Arguments: the shim, the mock of the driver. */
#include <pk/nccl.h>

#include "role.h"

#include "../unit/gpu.h"

static void *world;

static int start_with(const char *backends)
{
    gpu->reset();
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    trace_path = kit_path("nccl.json");
    report_path = kit_path("report.json");
    must(pk_start(pk_options(.trace_path = trace_path, .report_path = report_path,
                             .backends = backends,
                             .tuning = kit_tuning("nvtx_shim=%s", shim ? shim : ""))) == PK_OK);
    open_plugin();
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return start_with("cuda,nccl");
}

static int set_up_plugin(void **state)
{
    (void)state;
    return start_with("nccl");
}

static int tear_down(void **state)
{
    (void)state;
    plugin->finalize(world);
    pk_stop();
    kit_clean();
    return 0;
}

static size_t count_cat(const json_t *doc, const char *cat)
{
    size_t i, n = 0;
    json_t *event;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        const char *is = json_string_value(json_object_get(event, "cat"));
        const char *name = json_string_value(json_object_get(event, "name"));
        n += is && strcmp(is, cat) == 0 && strcmp(name, "NCCL all_reduce") == 0;
    }
    return n;
}

static void play(unsigned times, pk_comm *wrapped)
{
    world = make_comm("world", 0xABCD, 1, 4);
    for (unsigned i = 0; i < times; i++) {
        if (wrapped)
            pk_nccl_begin(wrapped, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100, -1,
                          the_stream);
        collective(world, "AllReduce", 100);
        if (wrapped)
            pk_nccl_end(wrapped, the_stream, 0);
    }
}

static void counted_once(void **state)
{
    pk_comm *wrapped = pk_comm_create("NCCL", "world", 0xABCD, 1, 4);
    (void)state;
    play(20, wrapped);
    json_t *doc = stop_session();
    assert_int_equal(count_cat(doc, "collective"), 20);
    assert_int_equal(count_cat(doc, "user_annotation"), 20);
    assert_int_equal(calls(), 20);
    json_decref(doc);
    pk_comm_destroy(wrapped);
}

/* Another session of the same process, in which nobody wraps. */
static void counted_by_the_plugin(void **state)
{
    (void)state;
    play(20, NULL);
    json_t *doc = stop_session();
    assert_int_equal(count_cat(doc, "collective"), 20);
    assert_int_equal(count_cat(doc, "user_annotation"), 0);
    assert_int_equal(calls(), 20);
    json_decref(doc);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counted_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(counted_by_the_plugin, set_up_plugin, tear_down),
    };
    shim = argc > 1 && *argv[1] ? argv[1] : NULL;
    unsetenv("NCCL_PROFILER_PLUGIN");
    version = 5;
    open_double(argc > 2 ? argv[2] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
