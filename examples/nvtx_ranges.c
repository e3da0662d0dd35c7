/* nvtx_ranges.c - ranges that other libraries mark with NVTX, between your own regions.
 *
 *     cc nvtx_ranges.c -I/usr/local/cuda/include $(pkg-config --cflags --libs pk) -o nvtx_ranges
 *     ./nvtx_ranges
 *
 * NVTX is how NCCL, cuDNN, PyTorch and others say what they do; it is all headers, and needs no
 * GPU.
 */
#include <nvtx3/nvToolsExt.h>
#include <pk/pk.h>
#include <stdio.h>

enum { STEPS = 20 };

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
static volatile double sink = 0.5;

/* A library that has never heard of perfkit. */
static void library_sort(size_t items)
{
    static nvtxDomainHandle_t domain;
    if (!domain)
        domain = nvtxDomainCreateA("sorter");
    nvtxEventAttributes_t what = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    what.messageType = NVTX_MESSAGE_TYPE_ASCII;
    what.message.ascii = "sort";
    what.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    what.payload.ullValue = items;
    nvtxDomainRangePushEx(domain, &what);
    for (size_t i = 0; i < items; i++)
        sink += 1 / sink;
    nvtxDomainRangePop(domain);
}

/* Its range may end on another thread, and others may begin and end meanwhile. */
static nvtxRangeId_t library_prefetch(void)
{
    return nvtxRangeStartA("prefetch");
}

int main(void)
{
    pk_backend_info nvtx = {.size = sizeof nvtx};
    /* Before the library's first call: each looks for a listener only then. */
    if (pk_start(pk_options(.trace_path = "nvtx_ranges.json", .report_path = "-",
                            .tuning = "nvtx_consume=1")) != PK_OK)
        fprintf(stderr, "perfkit: %s\n", pk_error_message());
    for (size_t i = 0; i < STEPS; i++) {
        nvtxRangeId_t prefetch = library_prefetch();
        {
            PK_REGION_SCOPE(forward);
            library_sort(1000 * (i + 1));
        }
        nvtxRangeEnd(prefetch);
        nvtxMarkA("loss is finite");
    }
    pk_backend_status("nvtx", &nvtx);
    printf("nvtx: %s\n", nvtx.reason);
    pk_stop();
    return 0;
}
