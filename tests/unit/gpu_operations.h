/* tests/unit/gpu_operations.h - operations of communicators on the mock of the driver, and what the
 * trace and the report say of them. */
#ifndef TESTS_GPU_OPERATIONS_H
#define TESTS_GPU_OPERATIONS_H

#include "document.h"
#include "gpu.h"

#include <inttypes.h>

#define TOP "t.json"

static pk_region layer = PK_REGION("layer");
static pk_comm *world, *other;
static json_t *doc, *report;
static uint64_t ids = 0xABC; /* another communicator in each test: numbers go on with the old one */

static inline int start_traced(void **state)
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

static inline int stop_traced(void **state)
{
    stop_gpu(state);
    pk_comm_destroy(world);
    pk_comm_destroy(other);
    json_decref(doc);
    json_decref(report);
    doc = report = NULL;
    return leave_folder(state);
}

static inline pk_gpu_counts finish(void)
{
    pk_gpu_counts c = stop_and_count();
    doc = load_document(TOP);
    report = json_load_file("r.json", 0, NULL);
    assert_non_null(report);
    return c;
}

static inline json_int_t number(json_t *event, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(event, "args"), key));
}

static inline const char *text(json_t *event, const char *key)
{
    const char *s = json_string_value(json_object_get(json_object_get(event, "args"), key));
    return s ? s : "";
}

/* The n-th operation in the trace, from 0; NULL: there are not as many. */
static inline json_t *operation(size_t n)
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

static inline json_t *row(const char *list, size_t i)
{
    return json_array_get(json_object_get(json_object_get(report, "comm"), list), i);
}

static inline json_int_t of_row(size_t i, const char *key)
{
    return json_integer_value(json_object_get(row("collectives", i), key));
}

static inline json_int_t of_comm(uint64_t id, const char *key)
{
    char hash[17];
    snprintf(hash, sizeof hash, "%" PRIx64, id);
    for (size_t i = 0; row("communicators", i); i++)
        if (strcmp(json_string_value(json_object_get(row("communicators", i), "id")), hash) == 0)
            return json_integer_value(json_object_get(row("communicators", i), key));
    fail_msg("there is no communicator %s", hash);
    return 0;
}

static inline json_int_t of_world(const char *key)
{
    return of_comm(ids, key);
}

static inline json_int_t of_other(const char *key)
{
    return of_comm(ids + 1, key);
}

static inline json_int_t calls_of_row(size_t i)
{
    return json_integer_value(
        json_object_get(json_object_get(row("collectives", i), "time"), "count"));
}

static inline void all_reduce(pk_comm *comm, uint64_t count, CUstream stream, int32_t result)
{
    pk_nccl_begin(comm, PK_OP_ALL_REDUCE, PK_TYPE_FLOAT32, count, -1, stream);
    gpu->work(stream);
    pk_nccl_end(comm, stream, result);
}

static inline void message(pk_comm_op op, uint64_t count, int32_t peer)
{
    pk_nccl_begin(world, op, PK_TYPE_BYTE, count, peer, the_stream);
    pk_nccl_end(world, the_stream, 0);
}

static inline void end_group(int32_t result)
{
    pk_nccl_group_launch();
    pk_nccl_group_end(result);
}

#define traced(test) cmocka_unit_test_setup_teardown(test, start_traced, stop_traced)

#endif
