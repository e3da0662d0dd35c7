#include "backend/nvtx/nvtx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tuning.h"

static char emitting[192],
    not_consuming[192]; /* of the last start; "" if there was nothing to say */
static bool emits, consumes, started;

static bool start(const pki_config *config)
{
    started = true;
    not_consuming[0] = '\0';
    consumes = config->nvtx_consume && pki_nvtx_inject(config, not_consuming, sizeof not_consuming);
    emits = pki_nvtx_emit_start(emitting, sizeof emitting);
    pki_nvtx_consume(consumes);
    return emits || consumes;
}

/* Whoever wants other people's ranges wants this backend. */
static bool is_requested(const pki_config *config)
{
    return config->nvtx_consume;
}

static void collect(void)
{
    if (consumes)
        pki_nvtx_ranges_collect();
}

static void stop(void)
{
    pki_nvtx_consume(false);
    if (consumes)
        pki_nvtx_ranges_stop();
}

static void after_fork(void)
{
    pki_nvtx_consume(false);
    pki_nvtx_domains_after_fork();
    pki_nvtx_ranges_after_fork();
}

/* ---- in words ---- */

/* Before pk_start: nothing is opened only to be asked. */
static void describe_before_start(pk_backend_info *info)
{
    const char *path = secure_getenv(PKI_NVTX_VARIABLE);
    char consume[8] = "";
    pki_tuning_of_environment(PKI_TUNING_NVTX_CONSUME, consume, sizeof consume);
    info->live = (path && *path) || strcmp(consume, "1") == 0;
    if (path && *path)
        snprintf(info->reason, sizeof info->reason, PKI_NVTX_VARIABLE " names %.120s", path);
    else if (info->live)
        snprintf(info->reason, sizeof info->reason, "to consume the ranges of other libraries");
    else
        snprintf(info->reason, sizeof info->reason,
                 "no tool listens (" PKI_NVTX_VARIABLE " is not set)");
}

static void describe(pk_backend_info *info)
{
    size_t n = 0, size = sizeof info->reason;
    unsigned users = pki_nvtx_attached();
    info->live = emits || consumes;
    if (consumes)
        n = (size_t)snprintf(info->reason, size, "consuming the ranges of %u user%s of NVTX", users,
                             users == 1 ? "" : "s");
    if (*emitting)
        n += (size_t)snprintf(info->reason + n, size - n, "%s%s", n ? "; " : "", emitting);
    if (*not_consuming && n < size)
        n += (size_t)snprintf(info->reason + n, size - n, "%s%s", n ? "; " : "", not_consuming);
    if (n == 0)
        snprintf(info->reason, size, "no tool listens (" PKI_NVTX_VARIABLE " is not set)");
}

static void probe(pk_backend_info *info)
{
    snprintf(info->version, sizeof info->version, "%d", NVTX_VERSION);
    if (started)
        describe(info);
    else
        describe_before_start(info);
}

extern const pki_backend pki_backend_nvtx;
const pki_backend pki_backend_nvtx = {.name = "nvtx",
                                      .by_default = true,
                                      .probe = probe,
                                      .start = start,
                                      .mirror = &pki_nvtx_mirror,
                                      .requested = is_requested,
                                      .collect = collect,
                                      .stop = stop,
                                      .after_fork = after_fork};
