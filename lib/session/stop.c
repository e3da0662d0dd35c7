#include "session/stop.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/inside.h"
#include "session/backend.h"
#include "session/collector/collect.h"
#include "session/duplicates.h"
#include "session/collector/drain.h"
#include "session/job/job.h"
#include "session/trace/output.h"
#include "session/report/report_file.h"
#include "session/report/run.h"
#include "session/collector/toll.h"
#include "session/operator.h"
#include "session/service.h"

/* What is in the rings, and what is still open, at one moment. */
static void last_rounds(pki_session *s)
{
    uint64_t now = pki_ticks(s->config.monotonic), before = pki_toll_begin();
    pki_services_each(halt, (s));
    pki_backends_flush(PKI_FLUSH_LAST);
    pthread_mutex_lock(&pki_drain_lock);
    pki_backends_stop();
    pki_services_each(close, (s));
    pthread_mutex_unlock(&pki_drain_lock);
    pki_registry_close(s->registry);
    pki_collect_stop(s);
    pthread_mutex_lock(&pki_drain_lock);
    pki_collect_check_clock(s, true);
    pki_services_each(look, (s));
    s->stop_ns = pki_clock_ns(&s->arena->header->clock, now);
    pki_drain_seal(s);
    pki_drain_round(s, false);
    pki_drain_settle(s);
    pki_drain_open_regions(s, pki_ticks(s->config.monotonic));
    pki_drain_open_spans(s, pki_ticks(s->config.monotonic));
    pki_drain_round(s, true);
    pki_output_check(s);
    pki_run_counts(s, &s->final);
    pki_session_set_last_counts(&s->final);
    pki_services_each(end, (s));
    pki_toll_of_caller(s, before);
    pthread_mutex_unlock(&pki_drain_lock);
}

static pk_status write_reports(pki_session *s)
{
    pki_summary summary;
    char *line = NULL;
    size_t n = 0;
    pk_status status = PK_OK;
    pthread_mutex_lock(&pki_drain_lock);
    if (!pki_job_wants_summary(s)) {
        status = PK_OK;
    } else if (pki_run_summarise(s, &summary)) {
        status = pki_job_stop(s, &summary);
        if (s->writing)
            line = pki_report_line(&summary, &n);
        if (s->writing && !line && !status)
            status = pki_fail(PK_ENOMEM, "no memory for the report in the trace");
        pki_summary_finish(&summary);
    } else {
        status = pki_fail(PK_ENOMEM, "no memory for the report");
    }
    pki_drain_close(s, line, n);
    pthread_mutex_unlock(&pki_drain_lock);
    free(line);
    return status;
}

static void warn_of_copies(const pki_session *s)
{
    if (s->final.other_starts)
        pki_log(
            PK_LOG_WARNING,
            "another copy of perfkit in this process wanted to start and was refused, %llu times",
            (unsigned long long)s->final.other_starts);
}

pk_status pki_session_stop(pki_session *s)
{
    last_rounds(s);
    pki_services_each(wait, (s));
    warn_of_copies(s);
    pk_status status = write_reports(s);
    pki_services_each(forget, ());
    s->arena->header->running = 0;
    /* An arena completes its trace, so without one it is of no use. */
    pki_paths_end(&s->paths, s->arena, s->error_status && s->trace_location != PKI_TRACE_GONE);
    s->open = false;
    pki_duplicates_release();
    if (s->error_status)
        status = pki_fail(s->error_status, "trace %s: %s; %llu events are missing", s->paths.trace,
                          pki_output_error_text(s, s->error_status),
                          (unsigned long long)s->final.unwritten);
    else if (!status)
        status = pki_services_status();
    if (!status)
        status = pki_run_recorded_any(s);
    if (s->operators)
        pki_operator_tell("", status);
    pki_session_reset_log();
    return status;
}

static void stop_for_exit(pki_session *s)
{
    pki_session_stop(s);
}

/* The collector stops the session: exit() may have been called by a handler that interrupted this
 * thread amid malloc, and nobody else can be waited for without end. */
void pki_session_exit(void)
{
    bool ended = false;
    if (pki_control_lock_within(PKI_EXIT_PATIENCE_NS)) {
        ended = !pki_the_session.open ||
                pki_collect_finish(&pki_the_session, stop_for_exit, PKI_EXIT_PATIENCE_NS);
        if (ended)
            pki_control_unlock();
        else
            pki_inside_leave(); /* the collector is still at it: nobody else gets the lock */
    }
    if (ended)
        pki_job_exit();
    pki_session_abandon(!ended);
}
