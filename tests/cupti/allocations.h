/* tests/cupti/allocations.h - a program that allocates on the mock of a device, and the report. */
#ifndef TESTS_CUPTI_ALLOCATIONS_H
#define TESTS_CUPTI_ALLOCATIONS_H

#include "scene.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#define MIB ((uint64_t)1 << 20)
#define CALL(name) .id = CUPTI_RUNTIME_TRACE_CBID_##name
#define does(...)                                                                                  \
    .memory = &(const fake_memory)                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define take(at, ...)                                                                              \
    play(RUNTIME, CALL(cudaMalloc_v3020), .inner = CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,          \
         does(.what = FAKE_ALLOCATE, .address = (at), .bytes = __VA_ARGS__))
#define give(...)                                                                                  \
    play(RUNTIME, CALL(cudaFree_v3020), .inner = CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,             \
         does(.what = FAKE_FREE, .address = __VA_ARGS__))
#define from_pool(at, ...)                                                                         \
    play(RUNTIME, CALL(cudaMallocAsync_v11020),                                                    \
         does(.what = FAKE_ALLOCATE, .address = (at), .pool = 0x9000, .bytes = __VA_ARGS__))
#define to_pool(...)                                                                               \
    play(RUNTIME, CALL(cudaFreeAsync_v11020),                                                      \
         does(.what = FAKE_FREE, .pool = 0x9000, .address = __VA_ARGS__))

static pk_region forward = PK_REGION("forward"), cache = PK_REGION("cache");

#define begin_memory(...)                                                                          \
    assert_int_equal(pk_start(pk_options(.report_path = "run.report.json", .costs = "memory",      \
                                         .flush_ms = 3600000, __VA_ARGS__)),                       \
                     PK_OK)

/* ---- the report ---- */

static inline json_t *stop_and_read(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    return load_document("run.report.json");
}

static inline const json_t *row(const json_t *rows, const char *key, const char *name)
{
    size_t i;
    json_t *found;
    json_array_foreach(rows, i, found)
    {
        if (strcmp(json_string_value(member(found, key)), name) == 0)
            return found;
    }
    return NULL;
}

static inline const json_t *place_of(const json_t *report, const char *place)
{
    return row(member(member(report, "gpu_memory"), "places"), "place", place);
}

static inline const json_t *region_of(const json_t *place, const char *name)
{
    return row(member(place, "regions"), "name", name);
}

static inline uint64_t of(const json_t *object, const char *key)
{
    return (uint64_t)json_number_value(member(object, key));
}

static inline void is(const json_t *object, const char *key, uint64_t value)
{
    if (of(object, key) != value)
        fail_msg("%s: %" PRIu64 ", not %" PRIu64, key, of(object, key), value);
}

#endif
