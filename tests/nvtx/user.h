/* tests/nvtx/user.h - what the programs of this folder share: each is a user of NVTX like any
 * other, starts perfkit so that it consumes ranges, and looks at the trace. Built twice, with
 * libpk.a and the shim, and with libpk.so.
 *
 * PROGRAM [SHIM [MODULE]]
 */
#ifndef TESTS_NVTX_USER_H
#define TESTS_NVTX_USER_H

#include "document.h"
#include "tuning.h"
#include "kit.h"

#include <sys/syscall.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <pk/pk.h>

static const char *shim, *module; /* of the command line */
static const char *path;
static nvtxDomainHandle_t lib;

static inline void start(void)
{
    path = kit_path("nvtx.json");
    must(pk_start(pk_options(.trace_path = path, .backends = "nvtx",
                             .tuning = kit_tuning("nvtx_consume=1,nvtx_shim=%s",
                                                  shim ? shim : ""))) == PK_OK);
}

static inline int setup(void **state)
{
    (void)state;
    start();
    lib = nvtxDomainCreateA("lib");
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    pk_stop();
    kit_clean();
    return 0;
}

static inline pk_counts counts(void)
{
    pk_counts c = {.size = sizeof c};
    assert_int_equal(pk_get_counts(&c), PK_OK);
    return c;
}

static inline json_t *stop(void)
{
    assert_int_equal(pk_stop(), PK_OK);
    pk_counts c = counts();
    assert_int_equal(c.recorded + c.dropped, c.begun);
    return load_document(path);
}

static inline uint64_t calls(const char *name)
{
    static pk_stats stats;
    memset(&stats, 0, sizeof stats);
    pk_region_stats(pk_region_named(name), &stats);
    return stats.count;
}

static inline json_int_t number(const json_t *document, const char *name, const char *arg)
{
    return json_integer_value(member(member(find_event(document, name), "args"), arg));
}

static inline nvtxEventAttributes_t says(const char *message)
{
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = message;
    return a;
}

static inline void push(nvtxDomainHandle_t domain, const char *message)
{
    nvtxEventAttributes_t a = says(message);
    nvtxDomainRangePushEx(domain, &a);
}

#define with_ranges(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

static inline void take_arguments(int argc, char **argv)
{
    unsetenv("NVTX_INJECTION64_PATH");
    shim = argc > 1 && *argv[1] ? argv[1] : NULL;
    module = argc > 2 ? argv[2] : NULL;
}

#endif
