/* lib/session/control.c - pk/session.h: start, flush, stop, counts. */
#include <pk/session.h>

#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "base/log.h"
#include "capture/capture.h"
#include "session/backend.h"
#include "session/operator.h"
#include "session/collector/collect.h"
#include "session/collector/drain.h"
#include "session/trace/output.h"
#include "session/process.h"
#include "session/captures/requests.h"
#include "session/report/run.h"
#include "session/start.h"
#include "session/stop.h"
#include "session/collector/toll.h"
#include "session/service.h"

static bool switched_off; /* PK_OFF=1 met the last pk_start */

static pk_status start(const pk_options *options)
{
    bool off = false;
    pk_status status = pki_the_session.open ? PK_OK : pki_operator_read(&off);
    pki_store(&switched_off, off);
    if (status || off)
        return status;
    pki_process_prepare();
    return pki_session_start(&pki_the_session, options);
}

pk_status pki_start_untold(const pk_options *options)
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (status)
        return status;
    status = start(options);
    pki_control_unlock();
    errno = saved;
    return status;
}

pk_status pk_start(const pk_options *options)
{
    int saved = errno;
    pk_status status = pki_start_untold(options);
    if (status != PK_EBUSY && pki_operator_asks(options))
        pki_operator_tell("nothing is recorded: ", status);
    errno = saved;
    return status;
}

static pk_status not_open(void)
{
    return pki_load(&switched_off) ? PK_OK
                                   : pki_fail(PK_EOFF, "perfkit is not started in this process");
}

static pk_status flush(pki_session *s)
{
    uint64_t before = pki_toll_begin();
    pki_backends_flush(PKI_FLUSH_NOW);
    pthread_mutex_lock(&pki_drain_lock);
    pki_backends_collect();
    pki_drain_round(s, true);
    if (s->config.no_collector) {
        pki_collect_check_clock(s, false);
        pki_services_each(round, (s));
    }
    pki_services_each(flush, (s));
    pki_output_check(s);
    pk_status status = s->unreported;
    s->unreported = PK_OK;
    pki_services_each(look, (s));
    pki_toll_of_caller(s, before);
    pki_toll_publish(s);
    if (s->config.no_collector)
        pki_services_each(behind, (s));
    pthread_mutex_unlock(&pki_drain_lock);
    if (s->config.no_collector)
        pki_services_each(unlocked, ());
    return status
               ? pki_fail(status, "trace %s: %s", s->paths.trace, pki_output_error_text(s, status))
               : PK_OK;
}

/* What wants an open session. */
static pk_status of_open_session(pk_status (*call)(pki_session *))
{
    int saved = errno;
    pk_status status = pki_control_lock();
    if (status)
        return status;
    status = pki_the_session.open ? call(&pki_the_session) : not_open();
    pki_control_unlock();
    errno = saved;
    return status;
}

pk_status pk_flush(void)
{
    return of_open_session(flush);
}

pk_status pk_stop(void)
{
    return of_open_session(pki_session_stop);
}

pk_status pk_capture(const char *reason, uint32_t steps)
{
    if (pki_load(&switched_off))
        return PK_OK;
    int saved = errno;
    pk_status status = steps > PKI_CAPTURE_STEPS_MOST
                           ? PK_EINVAL
                           : pki_requests_call(PKI_CAPTURE_CALL, reason, steps);
    if (status == PK_EINVAL)
        pki_fail(status, "pk_capture: %u steps are more than %u", steps, PKI_CAPTURE_STEPS_MOST);
    else if (status == PK_EBUSY)
        pki_fail(status, "pk_capture: earlier calls have not been looked at yet");
    else if (status)
        pki_fail(status, "pk_capture: no session is open, or it has no history (history_steps)");
    errno = saved;
    return status;
}

static void count_now(const pki_session *s, pk_counts *counts)
{
    pthread_mutex_lock(&pki_drain_lock);
    pki_run_counts(s, counts);
    pthread_mutex_unlock(&pki_drain_lock);
}

pk_status pk_get_counts(pk_counts *counts)
{
    pk_counts all;
    memset(&all, 0, sizeof all);
    if (!counts || counts->size < 8 || counts->size > sizeof all)
        return pki_fail(PK_EINVAL, "pk_counts.size has to be sizeof(pk_counts)");
    pk_status status = pki_control_lock();
    if (status)
        return status;
    bool any = pki_the_session.open;
    if (any)
        count_now(&pki_the_session, &all);
    else
        any = pki_session_last_counts(&all);
    pki_control_unlock();
    all.size = counts->size;
    memcpy(counts, &all, counts->size);
    return any ? PK_OK : not_open();
}
