/* Messages of the real NCCL between events, by the explicit calls of pk/nccl.h, and what NCCL's
 * profiler interface tells beside them: one GPU sends to itself, against CUPTI's kernels.
 */
#include <stdio.h>
#include <string.h>

#include "collectives.h"
#include "gpu.h"

enum { MESSAGES = 50 };
#define MESSAGE_BYTES ((size_t)64 << 20)

static pk_region sweep = PK_REGION_OF(PK_COMM, "nccl.sweep");

static void message(void)
{
    one_gpu *g = &gpus[0];
    size_t n = MESSAGE_BYTES / 4;
    nccl_group_begins();
    pk_nccl_begin(g->comm, PK_OP_SEND, PK_TYPE_FLOAT32, n, 0, g->stream);
    int sent = nccl.send(nccl_pointer(g->from), n, FLOAT32, 0, g->nccl, g->stream);
    pk_nccl_end(g->comm, g->stream, sent);
    pk_nccl_begin(g->comm, PK_OP_RECV, PK_TYPE_FLOAT32, n, 0, g->stream);
    int received = nccl.receive(nccl_pointer(g->to), n, FLOAT32, 0, g->nccl, g->stream);
    pk_nccl_end(g->comm, g->stream, received);
    nccl_group_ends();
}

static size_t pick(const gpu_trace *t, const char *category, const char *beginning, gpu_event *to,
                   size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < t->count && n < room; i++)
        if (strcmp(t->events[i].category, category) == 0 &&
            strncmp(t->events[i].name, beginning, strlen(beginning)) == 0)
            to[n++] = t->events[i];
    return n;
}

static double length_of(const gpu_event *e)
{
    return e->end - e->start;
}

/* On the stream in their order, so the n-th span is the n-th kernel's. */
static void compare_with_kernels(const gpu_trace *t)
{
    static gpu_event spans[MESSAGES], works[MESSAGES];
    double over[MESSAGES];
    size_t n = pick(t, "collective", "NCCL send_recv", spans, MESSAGES);
    size_t k = pick(t, "kernel", "nccl", works, MESSAGES);
    gpu_figure("nccl.messages", "%zu of %d as one operation each, %zu kernels", n, MESSAGES, k);
    gpu_check(n == MESSAGES, "%zu of %d", n, MESSAGES);
    for (size_t i = 0; i < n && i < k; i++)
        over[i] = length_of(&spans[i]) - length_of(&works[i]);
    if (n == MESSAGES && k == MESSAGES) {
        double least = gpu_quantile(over, MESSAGES, 0), usual = gpu_median(over, MESSAGES);
        gpu_figure("nccl.span_over_kernel_us", "least %.2f, median %.2f", least / 1e3, usual / 1e3);
        gpu_bar(least > -5000 && usual < 50000, "spans are %.0f to %.0f ns longer than kernels",
                least, usual);
    }
}

static void on_one_gpu(void)
{
    const char *path = gpu_start("cuda,cupti,nccl");
    gpu_need("cuda");
    nccl_make(1, MESSAGE_BYTES);
    gpu_figure("nccl.init", "%s", gpu_reason("nccl"));
    gpu_check(strncmp(gpu_reason("nccl"), "1 communicators", 15) == 0, "%s", gpu_reason("nccl"));
    PK_SCOPE(sweep) {
        for (int i = 0; i < MESSAGES; i++)
            message();
    }
    nccl_synchronize();
    nccl_destroy();
    gpu_figure("nccl.finalize", "%s", gpu_reason("nccl"));
    gpu_check(strncmp(gpu_reason("nccl"), "1 communicators", 15) != 0, "%s", gpu_reason("nccl"));
    gpu_check(pk_stop() == PK_OK, "%s", pk_error_message());
    gpu_trace t = gpu_read_trace(path);
    gpu_figure("nccl.plugin", "%zu sends, %zu receives told by the profiler interface",
               gpu_count(&t, "user_annotation", "NCCL send"),
               gpu_count(&t, "user_annotation", "NCCL recv"));
    compare_with_kernels(&t);
}

int main(void)
{
    driver_open();
    nccl_open();
    on_one_gpu();
    return gpu_result();
}
