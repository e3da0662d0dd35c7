/* A trace with all that CUPTI tells, for readers in other languages: make_trace DOUBLE TRACE. What
 * else is wanted is in the environment. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/pk.h>

#include "../fake/fake_cupti.h"

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward"),
                 load = PK_REGION_OF(PK_DATA, "load");

static fake_cupti_table *open_fake(const char *path)
{
    fake_cupti_table *(*table)(void) = NULL;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "fake_cupti") : NULL;
    memcpy(&table, &symbol, sizeof symbol);
    setenv("PK_CUPTI_LIBRARY", path, 1);
    setenv("PK_CUDA_LIBRARY", path, 1);
    return table ? table() : NULL;
}

static void record(const fake_cupti_table *fake, uint32_t event, uint32_t stream)
{
    fake->play(&(fake_call){.domain = CUPTI_CB_DOMAIN_RUNTIME_API,
                            .id = CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
                            .records = event,
                            .stream = stream});
}

static void step(const fake_cupti_table *fake)
{
    static const CUpti_CallbackDomain runtime = CUPTI_CB_DOMAIN_RUNTIME_API;
    pk_region_begin(&load);
    fake->play(&(fake_call){.domain = runtime,
                            .id = 41,
                            .device = CUPTI_ACTIVITY_KIND_MEMCPY,
                            .bytes = 1 << 20,
                            .ns = 9000,
                            .stream = 13});
    record(fake, 5, 13);
    pk_region_end(&load);
    pk_region_begin(&forward);
    fake->play(&(fake_call){.domain = runtime, .id = 10});
    fake->play(&(fake_call){.domain = runtime,
                            .id = CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020,
                            .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT,
                            .waits_for = 5,
                            .stream = 7});
    for (uint64_t i = 0; i < 5; i++)
        fake->play(&(fake_call){.domain = runtime,
                                .id = i % 2 ? 211 : 505,
                                .inner = 307,
                                .device = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                .kernel = i == 4 ? "_Z23ncclDevKernel_AllReducePf" : "_Z4gemmPf",
                                .delay = 30000,
                                .ns = 20000});
    record(fake, 6, 7);
    fake->play(&(fake_call){.domain = runtime,
                            .id = CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020,
                            .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
                            .waits_for = 6});
    fake->play(&(fake_call){.domain = CUPTI_CB_DOMAIN_DRIVER_API,
                            .id = 307,
                            .device = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                            .kernel = "triton_"});
    fake->play(&(fake_call){.domain = runtime,
                            .id = 51,
                            .device = CUPTI_ACTIVITY_KIND_MEMSET,
                            .bytes = 4096,
                            .device_id = 1});
    fake->play(&(fake_call){
        .domain = runtime, .id = 311, .device = CUPTI_ACTIVITY_KIND_GRAPH_TRACE, .graph = 3});
    fake->play(&(fake_call){.domain = runtime,
                            .id = 165,
                            .wait = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE});
    pk_region_end(&forward);
    fake->finish();
    pk_step(32);
}

int main(int argc, char **argv)
{
    const fake_cupti_table *fake = argc == 3 ? open_fake(argv[1]) : NULL;
    if (!fake || pk_start(pk_options(.trace_path = argv[2], .backends = "cupti", .rank = 2,
                                     .world_size = 4, .tuning = "flush_ms=100")) != PK_OK)
        return 2;
    for (int i = 0; i < 20; i++) {
        step(fake);
        if (i % 5 == 4)
            pk_flush();
    }
    return pk_stop() == PK_OK ? 0 : 1;
}
