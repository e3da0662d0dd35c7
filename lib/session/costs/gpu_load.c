#include "session/costs/gpu_load.h"
#include "session/session.h"

#include <string.h>

#include "measure/device/load.h"

static pki_load load; /* under the fold lock */

static void on_step(pki_fold *fold, const pki_step *step, uint64_t data)
{
    (void)fold, (void)data;
    pki_load_step(&load, step->kind, step->between, step->start, step->start + step->duration);
}

static pk_status open_load(pki_session *s)
{
    (void)s;
    pki_fold_lock();
    pki_load_finish(&load);
    pki_fold_now()->on_account[PKI_FOLD_LOAD] = on_step;
    pki_fold_unlock();
    return PK_OK;
}

void pki_gpu_load_read(uint32_t device, uint64_t from, uint64_t to, const double values[PKI_LOADS])
{
    pki_load_interval interval = {.from = from, .to = to};
    memcpy(interval.values, values, sizeof interval.values);
    pki_fold_lock();
    pki_load_read(&load, device, &interval);
    pki_fold_unlock();
}

static void end_load(pki_session *s)
{
    (void)s;
    pki_fold_lock();
    pki_load_end(&load);
    pki_fold_unlock();
}

static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    return !load.intervals || pki_load_fill(&load, &out->gpu_load);
}

static void forget(void)
{
    pki_fold_lock();
    pki_load_finish(&load);
    pki_fold_unlock();
}

/* What its parent was in the middle of is left alone. */
static void after_fork(void)
{
    pki_load_begin(&load);
}

const pki_service pki_service_gpu_load = {
    .name = "gpu_load",
    .open = open_load,
    .end = end_load,
    .summarise = summarise,
    .forget = forget,
    .after_fork = after_fork,
};
