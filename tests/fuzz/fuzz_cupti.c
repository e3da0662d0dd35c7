/* Any bytes as buffers of CUPTI's: whatever is made of them, the trace is a whole document.
 *
 * fuzz_cupti DOUBLE N: N spoilt copies of buffers with a record of each kind, the same every time.
 * What CUPTI itself vouches for is put right first: pointers, and the times' base.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <pk/pk.h>

#include "../fake/fake_cupti.h"
#include "backend/cupti/control.h"
#include "base/clock.h"

#define MOST 4096
#define PIECES 3u

static fake_cupti_table *fake;
static char path[] = "/tmp/pk-fuzz-cupti-XXXXXX";

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

/* ---- one input ---- */

static void put_right(uint64_t *start, uint64_t *end, uint64_t base)
{
    if (*start && *start < UINT32_MAX)
        *start += base;
    if (*end && *end < UINT32_MAX)
        *end += base;
}

static bool has_times(CUpti_ActivityKind kind)
{
    return kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION &&
           kind != CUPTI_ACTIVITY_KIND_CUDA_EVENT;
}

/* Where start and end are. */
static size_t times_in(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
        return offsetof(CUpti_ActivityAPI, start);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        return offsetof(CUpti_ActivityOverhead3, start);
    default:
        return offsetof(CUpti_ActivityKernel10, start);
    }
}

static void vouch(CUpti_Activity *record, uint64_t base)
{
    CUpti_ActivityKernel10 *k = (void *)record;
    CUpti_ActivityOverhead3 *o = (void *)record;
    uint64_t times[2];
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        k->name = k->gridX % 3 ? "_ZN1a4nameEv" : k->gridX % 2 ? "" : NULL;
        break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        o->overheadData = NULL;
        break;
    default:
        break;
    }
    if (!has_times(record->kind))
        return;
    uint8_t *at = (uint8_t *)record + times_in(record->kind);
    memcpy(times, at, sizeof times);
    put_right(&times[0], &times[1], base);
    memcpy(at, times, sizeof times);
}

static void give(const uint8_t *data, size_t size)
{
    uint8_t *buffer;
    size_t room, most;
    CUpti_Activity *record = NULL;
    pki_cupti_buffer_requested(&buffer, &room, &most);
    must(room >= MOST, "no buffer");
    memcpy(buffer, data, size);
    while (fake->next(buffer, size, &record) == CUPTI_SUCCESS)
        vouch(record, pki_monotonic_ns());
    pki_cupti_buffer_completed(NULL, 0, buffer, room, size);
}

static void check_trace(bool spoilt)
{
    size_t kernels = 0;
    json_error_t error;
    size_t i;
    json_t *event, *doc = json_load_file(path, 0, &error);
    must(doc, error.text);
    json_array_foreach(json_object_get(doc, "traceEvents"), i, event)
    {
        bool slice = strcmp(json_string_value(json_object_get(event, "ph")), "X") == 0;
        kernels += slice && json_object_get(json_object_get(event, "args"), "grid") != NULL;
        must(!slice || json_number_value(json_object_get(event, "dur")) >= 0, "a negative time");
    }
    must(spoilt || kernels > 0, "no kernel has been read");
    json_decref(doc);
}

static void try_input(const uint8_t *data, size_t size, bool spoilt)
{
    must(pk_start(pk_options(
                 .trace_path = path, .backends = "cupti",
                 .tuning =
                     "arena_path=none,clock=monotonic,flush_ms=3600000,cupti_sync_events=1")) ==
             PK_OK,
         "pk_start");
    for (size_t i = 0, piece = size / PIECES; i < PIECES; i++) {
        give(data + i * piece, i + 1 < PIECES ? piece : size - i * piece);
        must(pk_flush() == PK_OK, "pk_flush");
    }
    must(pk_stop() == PK_OK, "pk_stop");
    check_trace(spoilt);
}

/* ---- spoiling ---- */

static uint64_t state = 88172645463325252u;

static size_t chance(size_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % bound);
}

static size_t put(uint8_t *out, size_t at, CUpti_ActivityKind kind, uint32_t n)
{
    uint32_t whole[128] = {0};
    size_t length = fake->lengths[kind];
    for (size_t i = 1; i < length / 4; i++)
        whole[i] = chance(4) ? 0 : 1 + n % 7;
    whole[0] = kind;
    const uint64_t times[2] = {100 * n + 1, 100 * n + 1 + chance(200)};
    if (has_times(kind))
        memcpy((uint8_t *)whole + times_in(kind), times, sizeof times);
    memcpy(out + at, whole, length);
    return at + length;
}

static size_t make_seed(uint8_t *out)
{
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_RUNTIME,         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,          CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_DRIVER,          CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_MEMSET,          CUPTI_ACTIVITY_KIND_MEMORY2,
        CUPTI_ACTIVITY_KIND_MEMORY_POOL,     CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_CUDA_EVENT};
    size_t at = 0;
    for (uint32_t n = 0; at < MOST - 512; n++)
        at = put(out, at, kinds[chance(sizeof kinds / sizeof *kinds)], n);
    return at;
}

static size_t spoil(uint8_t *data, size_t size)
{
    static const uint64_t words[] = {0, 1, UINT32_MAX, UINT64_MAX, (uint64_t)1 << 63, 10, 39};
    size_t at = chance(size - 8), from = chance(size - 64), length = chance(64);
    switch (chance(5)) {
    case 0:
        data[at] ^= (uint8_t)(1u << chance(8));
        return size;
    case 1:
        memcpy(data + at / 8 * 8, &words[chance(sizeof words / sizeof *words)], 8);
        return size;
    case 2:
        memmove(data + PKI_MIN(at, size - 64), data + from, length);
        return size;
    case 3:
        data[at] = (uint8_t)chance(256);
        return size;
    default:
        return chance(10) ? size : 128 + chance(size - 128);
    }
}

int main(int argc, char **argv)
{
    static uint8_t data[MOST];
    fake_cupti_table *(*table)(void) = NULL;
    void *library = argc == 3 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "fake_cupti") : NULL;
    int fd = mkstemp(path);
    memcpy(&table, &symbol, sizeof symbol);
    if (!table || fd < 0)
        return 2;
    close(fd);
    setenv("PK_CUPTI_LIBRARY", argv[1], 1);
    setenv("PK_CUDA_LIBRARY", argv[1], 1);
    fake = table();
    for (int i = 0; i < atoi(argv[2]); i++) {
        size_t size = make_seed(data);
        for (size_t n = i == 0 ? 0 : 1 + chance(40); n > 0 && size > 256; n--)
            size = spoil(data, size);
        try_input(data, size, i > 0);
    }
    unlink(path);
    return 0;
}
