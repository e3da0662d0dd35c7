#include "session/service.h"

#include "base/compiler.h"
#include "comm/live/progress.h"
#include "core/phase.h"

extern const pki_service pki_service_activity, pki_service_tail, pki_service_captures,
    pki_service_live, pki_service_stragglers, pki_service_thinning, pki_service_processors,
    pki_service_io, pki_service_io_steps, pki_service_energy, pki_service_events,
    pki_service_memory, pki_service_memory_steps, pki_service_gpu_memory, pki_service_windows,
    pki_service_metrics, pki_service_goodput, pki_service_watchdog, pki_service_job;

/* Of layers that know no session. */
static const pki_service progress = {
    .name = "progress",
    .reset = pki_progress_reset,
    .folded = pki_progress_round,
    .after_fork = pki_progress_reset,
};
static const pki_service phases = {
    .name = "phases",
    .reset = pki_phases_reset,
    .after_fork = pki_phases_after_fork,
};

/* What measures stands before what tells of it: figures in files are then of the same round. */
const pki_service *const pki_services[] = {
    &pki_service_activity,
    &pki_service_tail,
    &progress,
    &phases,
    &pki_service_captures,
    &pki_service_live,
    &pki_service_stragglers,
    &pki_service_thinning,
    &pki_service_processors,
    &pki_service_io,
    &pki_service_energy,
    &pki_service_events,
    &pki_service_memory,
    &pki_service_memory_steps,
    &pki_service_gpu_memory,
    &pki_service_windows,
    &pki_service_metrics,
    &pki_service_goodput,
    &pki_service_watchdog,
    &pki_service_job,
    &pki_service_io_steps, /* from here on what is read and written is the program's */
};
const size_t pki_service_count = PKI_COUNT_OF(pki_services);

pk_status pki_services_open(pki_session *s)
{
    pk_status status = PK_OK;
    for (size_t i = 0; i < pki_service_count && !status; i++)
        if (pki_services[i]->open)
            status = pki_services[i]->open(s);
    return status;
}

pk_status pki_services_status(void)
{
    pk_status status = PK_OK;
    for (size_t i = 0; i < pki_service_count && !status; i++)
        if (pki_services[i]->status)
            status = pki_services[i]->status();
    return status;
}

bool pki_services_summarise(const pki_session *s, pki_summary *out)
{
    bool done = true;
    for (size_t i = 0; i < pki_service_count && done; i++)
        done = !pki_services[i]->summarise || pki_services[i]->summarise(s, out);
    return done;
}

uint64_t pki_services_spent(void)
{
    uint64_t ns = 0;
    for (size_t i = 0; i < pki_service_count; i++)
        ns += pki_services[i]->spent ? pki_services[i]->spent() : 0;
    return ns;
}
