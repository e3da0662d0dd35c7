/* lib/backend/cuda/cuda.c - the backend: spans of GPU streams, by events of the CUDA driver
 * (pk/gpu.h; docs/internals/backends.md says how it goes about it). */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/counts.h"
#include "backend/cuda/graph.h"
#include "backend/cuda/harvest.h"
#include "base/clock.h"
#include "core/frames.h"
#include "session/activity.h"
#include "session/backend.h"
#include "session/session.h"

#define STOP_WAITS_NS 100000000u
#define STOP_LOOKS_NS 200000

uint32_t pk_gpu_gate_;

static pk_gpu_counts final; /* of the last session; under the drain lock */
static bool running, started_once;

static void probe(pk_backend_info *info)
{
    pki_cuda_verdict verdict = pki_cuda_known();
    /* A program that asks gets the answer that takes cuInit; the report at the end, to which
     * nobody has answered before, does without. */
    if (verdict <= PKI_CUDA_FOUND && (running || !started_once))
        verdict = pki_cuda_decide();
    info->live = verdict == PKI_CUDA_LIVE;
    pki_cuda_version(info->version, sizeof info->version);
    if (verdict == PKI_CUDA_LIVE)
        pki_cuda_reason_text(info->reason, sizeof info->reason);
    else if (verdict == PKI_CUDA_FOUND)
        strcpy(info->reason, "the CUDA driver is there; no span of a stream was begun");
    else
        strncpy(info->reason, pki_cuda_why(), sizeof info->reason - 1);
}

static void foresee(void)
{
    pthread_mutex_lock(&pki_drain_lock);
    memset(&final, 0, sizeof final); /* whether or not it is there in this session */
    pthread_mutex_unlock(&pki_drain_lock);
    pki_cuda_find();
}

static bool start(const pki_config *config)
{
    pki_cuda_verdict verdict = pki_cuda_find();
    bool usable =
        (verdict == PKI_CUDA_LIVE || verdict == PKI_CUDA_FOUND) && pki_cuda_threads_prepare();
    pki_cuda_forget_reason();
    pki_cuda_capture_want(config->gpu_graphs);
    started_once = true;
    if (!usable)
        return false;
    pki_store(&pki_cuda_refused_begun, (uint64_t)0);
    pki_store(&pki_cuda_refused_dropped, (uint64_t)0);
    for (pki_cuda_context *c = pki_cuda_contexts(); c; c = c->next)
        pki_cuda_anchors_reset(&c->anchors);
    pki_store(&pki_comms_wrapped, 0u);
    pki_store(&pki_cuda_session, pki_cuda_session + 1);
    running = true;
    pki_store_release(&pk_gpu_gate_, 1u);
    return true;
}

extern const pki_backend pki_backend_cuda;

static void wait_for_the_rest(void)
{
    uint64_t from = pki_monotonic_ns();
    const struct timespec pause = {0, STOP_LOOKS_NS};
    while (pki_cuda_harvest() && pki_monotonic_ns() - from < STOP_WAITS_NS)
        nanosleep(&pause, NULL);
    pki_cuda_harvest_discard();
}

static void ask(pki_flush why)
{
    uint64_t now = pki_activity_ns(pki_monotonic_ns());
    if (pki_cuda_known() == PKI_CUDA_LIVE && why == PKI_FLUSH_LAST)
        wait_for_the_rest();
    else if (pki_cuda_known() == PKI_CUDA_LIVE)
        pki_cuda_harvest();
    else if (!pki_backends_tell_of_devices(&pki_backend_cuda))
        pki_cuda_harvest_nothing(now); /* nobody had begun a span until then */
}

/* What is still open has no end: its begin was counted, and nothing else. */
static void count_open(pk_gpu_counts *c)
{
    uint64_t known = c->recorded + c->dropped + c->skipped + c->lost;
    if (c->begun <= known)
        return;
    c->lost += c->begun - known;
    pki_cuda_note_reason(PKI_CUDA_NO_END, CUDA_SUCCESS, 0);
}

static void halt(void)
{
    pki_store(&pk_gpu_gate_, 0u);
}

static void stop(void)
{
    pki_cuda_sum(&final);
    count_open(&final);
    running = false;
}

static void after_fork(void)
{
    pki_store(&pk_gpu_gate_, 0u);
    running = false;
    memset(&final, 0, sizeof final);
    pki_cuda_api_after_fork();
    pki_cuda_contexts_after_fork();
    pki_cuda_lanes_after_fork();
    pki_cuda_graphs_after_fork();
    pki_cuda_operations_after_fork();
    pki_cuda_threads_after_fork();
}

pk_status(pk_get_gpu_counts)(pk_gpu_counts *counts)
{
    pk_gpu_counts all;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pthread_mutex_lock(&pki_drain_lock);
    if (running)
        pki_cuda_sum(&all);
    else
        all = final;
    pthread_mutex_unlock(&pki_drain_lock);
    pki_inside_leave();
    return pki_cuda_copy_counts(counts, &all);
}

const pki_backend pki_backend_cuda = {
    .name = "cuda",
    .by_default = true,
    .devices = true,
    .probe = probe,
    .foresee = foresee,
    .start = start,
    .ask = ask,
    .halt = halt,
    .stop = stop,
    .after_fork = after_fork,
};
