/* What an event of NCCL's costs when perfkit is its profiler: start and stop, by type and by
 * version, as NCCL calls them. The bar: 60 ns. */
#include <pk/pk.h>

#include <stdlib.h>
#include <string.h>

#include "comm/plugin/plugin.h"
#include "base/clock.h"
#include "harness.h"

enum { EVENTS = 4000 }; /* of 16384 places: never full, since each round empties it */

static void *context, *network, *parent;
static pki_nccl_description_v5 description;

static void events(void *of, uint64_t n)
{
    void *event;
    for (uint64_t i = 0; i < n; i++) {
        pki_nccl_start_v5(of, &event, &description);
        pki_nccl_stop_event(event);
    }
}

static void groups(uint64_t n)
{
    description = (pki_nccl_description_v5){.type = PKI_NCCL_GROUP};
    events(context, n);
}

static void collectives(uint64_t n)
{
    description = (pki_nccl_description_v5){.type = PKI_NCCL_COLL,
                                            .parent = parent,
                                            .u.coll.v4 = {.func = "AllReduce",
                                                          .count = 1024,
                                                          .type = "ncclFloat32",
                                                          .channels = 1,
                                                          .algorithm = "RING",
                                                          .protocol = "LL"}};
    events(context, n);
}

static void calls(uint64_t n)
{
    description = (pki_nccl_description_v5){
        .type = PKI_NCCL_COLL_API,
        .u.coll_api = {
            .func = "AllReduce", .count = 1024, .type = "ncclFloat32", .captured = true}};
    events(context, n);
}

static void proxies(uint64_t n)
{
    description = (pki_nccl_description_v5){.type = PKI_NCCL_PROXY_OP, .parent = parent};
    events(network, n);
}

static void off(uint64_t n)
{
    void *event;
    description =
        (pki_nccl_description_v5){.type = 1u << 20}; /* refused, as all are between sessions */
    for (uint64_t i = 0; i < n; i++) {
        pki_nccl_start_v5(NULL, &event, &description);
        pki_nccl_stop_event(event);
    }
}

static void ticks(uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += pki_cycle_counter() ^ pki_cycle_counter();
    __asm__ volatile("" : : "r"(sum));
}

static void empty_pool(void)
{
    pk_flush();
}

int main(int argc, char **argv)
{
    unsigned long rounds = bench_number(argc, argv, "--rounds", 51);
    int mask = 0;
    bench_pin(0);
    pki_nccl_init_v5(&context, 1, &mask, "bench", 1, 2, 0, NULL);
    pki_nccl_init_v5(&network, 2, &mask, "network", 1, 2, 0, NULL);
    if (pk_start(pk_options(.report_path = bench_scratch("nccl.json"), .backends = "nccl")) !=
        PK_OK)
        bench_fail(pk_error_message());
    bench_case cases[] = {
        {.name = "two clock reads", .run = ticks, .n = EVENTS},
        {.name = "group", .run = groups, .n = EVENTS, .after = empty_pool},
        {.name = "call", .run = calls, .n = EVENTS, .after = empty_pool},
        {.name = "collective", .run = collectives, .n = EVENTS, .after = empty_pool},
        {.name = "proxy operation", .run = proxies, .n = EVENTS, .after = empty_pool},
        {.name = "refused", .run = off, .n = EVENTS},
    };
    bench_rounds(cases, sizeof cases / sizeof *cases, rounds);
    bench_print("NCCL's profiler: start + stop", cases, sizeof cases / sizeof *cases);
    pk_backend_info info = {.size = sizeof info};
    if (pk_backend_status("nccl", &info) != PK_OK || strstr(info.reason, "dropped"))
        bench_fail("the pool was full: the figures above are not of recorded events");
    pk_stop();
    pki_nccl_finalize_comm(context);
    pki_nccl_finalize_comm(network);
    bench_scratch_empty();
    return 0;
}
