#include "session/report/run.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "core/names.h"
#include "out/report/report.h"
#include "session/collector/collect.h"
#include "session/session.h"
#include "session/trace/output.h"

/* ---- what a session says about itself ---- */

const char *pki_clock_name(uint32_t monotonic)
{
    return monotonic ? "monotonic" : PKI_CYCLE_COUNTER_NAME;
}

static uint64_t count_regions(void)
{
    uint64_t n = 0;
    for (uint32_t id = PKI_NAME_FIRST; id < pki_name_count(); id++)
        n += pki_name_at(id)->kind <= PK_WAIT;
    return n;
}

void pki_run_counts(const pki_session *s, pk_counts *c)
{
    pki_registry_lock();
    pki_registry_counts(s->registry, c);
    pki_registry_unlock();
    pki_output_counts(s, c);
    c->untraced = s->untraced;
    c->regions = count_regions();
    c->other_starts = pki_duplicates_refused();
}

void pki_run_describe(const pki_session *s, bool complete, pki_chrome_run *run)
{
    const pki_clock_map *clock = &s->arena->header->clock;
    double unit = pki_clock_unit_ns(clock);
    *run = (pki_chrome_run){
        .host = s->config.world.host,
        .program = s->config.world.program,
        .rank = s->config.world.rank,
        .world_size = s->config.world.size,
        .local_rank = s->config.world.local_rank,
        .local_size = s->config.world.local_size,
        .node = s->config.world.node,
        .job = s->config.world.job,
        .start_unix = s->start_unix,
        .base_ns = clock->origin_ns,
        .clock_id = s->config.world.clock,
        .clock_name = pki_clock_name(s->config.monotonic),
        .clock_hz = pki_clock_hz(clock),
        .clock_step_ns = (double)clock->step_ticks * unit,
        .clock_uncertainty_ns = (double)clock->uncertainty_ns,
        .clock_ppm = pki_clock_ppm(clock),
        .clock_reason = s->config.clock_reason ? s->config.clock_reason : "",
        .complete = complete,
    };
    if (s->registry) {
        pki_run_counts(s, &run->counts);
        run->toll = pki_toll_now(s);
    }
}

pk_status pki_run_recorded_any(const pki_session *s)
{
    const pk_counts *c = &s->final;
    int error = pki_load(&s->arena->spans.refused);
    if (!error || c->recorded || c->points || !(c->dropped || c->points_dropped))
        return PK_OK;
    return pki_fail(pki_status_of_errno(error),
                    "nothing could be recorded: %s; %llu regions and %llu points were dropped",
                    pki_own_why(error), (unsigned long long)c->dropped,
                    (unsigned long long)c->points_dropped);
}
