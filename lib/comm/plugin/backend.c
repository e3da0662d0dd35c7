#include "comm/plugin/plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/plugin/abi.h"
#include "comm/plugin/callbacks.h"

static char how[192]; /* NCCL finds us, or why not; of the last start */
static bool started, found;
static uint64_t dropped, unknown, stale; /* before the session */

static bool is_named(const char *list)
{
    for (const char *p = list; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n == 4 && memcmp(p, "nccl", 4) == 0)
            return true;
        p += n;
    }
    return false;
}

/* A communicator that is there already tells us whoever the variable names: it has found us. */
static bool start(const pki_config *config)
{
    started = true;
    pki_store(&pki_comms_wrapped, 0u); /* who wraps says so with the first call */
    found = pki_nccl_make_discoverable(config, is_named(config->backends), how, sizeof how);
    if (!found && pki_nccl_contexts_live() == 0)
        return false;
    pki_nccl_mask_choose();
    pki_nccl_assemble_start();
    pki_nccl_emit_start();
    pki_nccl_tracks_start();
    dropped = pki_load(&pki_nccl_lost.dropped);
    unknown = pki_load(&pki_nccl_lost.unknown);
    stale = pki_load(&pki_nccl_lost.stale);
    pki_store(&pki_nccl_open.monotonic, config->monotonic);
    pki_store_release(&pki_nccl_open.recording, 1); /* pairs with the acquire of a start */
    pki_nccl_mask_turn(true);
    return true;
}

static void stop(void)
{
    pki_nccl_mask_turn(false);
    pki_store(&pki_nccl_open.recording, 0);
    pki_nccl_assemble_stop();
}

static void after_fork(void)
{
    pki_nccl_callbacks_after_fork();
    pki_nccl_pool_after_fork();
    pki_nccl_contexts_after_fork();
    pki_nccl_mask_after_fork();
    pki_nccl_assemble_after_fork();
    found = false;
}

/* ---- what it says of itself ---- */

static void describe_future(pk_backend_info *info)
{
    const char *name = secure_getenv(PKI_NCCL_VARIABLE);
    info->live = 0;
    if (name && *name)
        snprintf(info->reason, sizeof info->reason, PKI_NCCL_VARIABLE " names %.120s", name);
    else
        snprintf(info->reason, sizeof info->reason,
                 "listens to NCCL from pk_start on, if that is in the process");
}

static size_t put_losses(char *text, size_t size, const char *words, uint64_t n)
{
    int length = n ? snprintf(text, size, "; %llu %s", (unsigned long long)n, words) : 0;
    return length > 0 ? PKI_MIN((size_t)length, size - 1) : 0;
}

static void describe(pk_backend_info *info)
{
    size_t size = sizeof info->reason;
    uint32_t live = pki_nccl_contexts_live();
    info->live = found || live;
    if (!info->live || (live == 0 && pki_nccl_operations() == 0)) {
        snprintf(info->reason, size, "%.180s", how);
        return;
    }
    size_t n = (size_t)snprintf(info->reason, size, "%u communicators, %llu operations", live,
                                (unsigned long long)pki_nccl_operations());
    n += put_losses(info->reason + n, size - n, "events dropped: the pool was full",
                    pki_load(&pki_nccl_lost.dropped) - dropped);
    n += put_losses(info->reason + n, size - n, "events of unknown types",
                    pki_load(&pki_nccl_lost.unknown) - unknown);
    n += put_losses(info->reason + n, size - n, "ends of events that were not open",
                    pki_load(&pki_nccl_lost.stale) - stale);
    put_losses(info->reason + n, size - n, "communicators refused", pki_nccl_contexts_refused());
}

static void probe(pk_backend_info *info)
{
    snprintf(info->version, sizeof info->version, "profiler 2 to 6");
    if (started)
        describe(info);
    else
        describe_future(info);
}

extern const pki_backend pki_backend_nccl;
const pki_backend pki_backend_nccl = {.name = "nccl",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .collect = pki_nccl_assemble_collect,
                                      .stop = stop,
                                      .after_fork = after_fork};
