#include "backend/cuda/reasons.h"

#include <stdio.h>

#include "base/atomic.h"

static const char *const words[PKI_CUDA_REASONS] = {
    [PKI_CUDA_SAMPLED] = "graphs are replayed without pk_gpu_graph_launching: their spans are read "
                         "about every 10 ms, replays in between are missing",
    [PKI_CUDA_CAPTURE_OFF] = "spans were kept out of captures: gpu_capture (PK_GPU_CAPTURE) is off",
    [PKI_CUDA_REFUSED] = "operations were skipped: NCCL refused the call",
    [PKI_CUDA_LATE] =
        "operations were skipped: a communicator that does not block may put them into "
        "their stream after the call",
    [PKI_CUDA_CAPTURE_NO_EVENTS] = "spans were kept out of a graph that takes no event nodes, as "
                                   "the body of a conditional node",
    [PKI_CUDA_CAPTURE_PROGRAMMATIC] =
        "spans were kept out of captures where a kernel's dependency is programmatic, which holds "
        "between kernels only",
    [PKI_CUDA_CAPTURE_NO_PAIR] = "spans were dropped: graphs hold as many pairs of events as they "
                                 "may, 16384 of a context",
    [PKI_CUDA_NO_PAIR] = "spans were dropped: no pair of events was free",
    [PKI_CUDA_NO_ROOM] = "spans were dropped: too many were in flight on a stream",
    [PKI_CUDA_NO_MEMORY] = "spans were dropped: no memory",
    [PKI_CUDA_NO_END] = "spans were lost: they were open at pk_stop, or when their thread ended",
    [PKI_CUDA_NOT_REACHED] = "spans were lost: the device had not reached their end at pk_stop",
    [PKI_CUDA_LEGACY_CAPTURED] =
        "spans were skipped: the default stream cannot be used while a blocking stream captures",
    [PKI_CUDA_CAPTURE_INVALID] = "spans were skipped: the capture they lay in was already invalid",
    [PKI_CUDA_CAPTURE_SPLIT] = "spans were skipped: only one end of them lay in a capture",
    [PKI_CUDA_CAPTURE_OLD] =
        "spans were skipped: this driver cannot follow captures (it takes 11.3)",
    [PKI_CUDA_CAPTURE_FAILED] = "spans were skipped: their capture could not be followed",
    [PKI_CUDA_NO_CONTEXT] = "spans were skipped: their stream has no context",
    [PKI_CUDA_CALL_FAILED] = "spans were skipped or lost: a driver call failed",
    [PKI_CUDA_CONTEXT_GONE] = "a context was destroyed; spans that it had not finished are lost",
    [PKI_CUDA_CONTEXT_DEAD] = "nothing works in a context any more; it is left alone",
};

/* reason << 48 | context << 32 | code, in one piece. */
static uint64_t said;

void pki_cuda_note_reason(pki_cuda_reason reason, CUresult code, uint32_t context)
{
    uint64_t wanted = (uint64_t)reason << 48 | (uint64_t)(context & 0xFFFF) << 32 | (uint32_t)code;
    uint64_t old = pki_load(&said);
    while (old >> 48 < reason && !__atomic_compare_exchange_n(&said, &old, wanted, true,
                                                              __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void pki_cuda_forget_reason(void)
{
    pki_store(&said, (uint64_t)0);
}

void pki_cuda_reason_text(char *text, size_t size)
{
    uint64_t now = pki_load(&said);
    CUresult code = (CUresult)(uint32_t)now;
    unsigned context = (unsigned)(now >> 32) & 0xFFFF;
    const char *what = words[now >> 48] ? words[now >> 48] : "";
    char where[32] = "";
    if (context)
        snprintf(where, sizeof where, "context %u: ", context);
    if (code)
        snprintf(text, size, "%s%s: %s (%d)", where, what, pki_cuda_error_name(code), (int)code);
    else
        snprintf(text, size, "%s%s", where, what);
}
