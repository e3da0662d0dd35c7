/* lib/session/job/none.c - built without reports of jobs and state files of their life
 * (-Dservices=): asked for, it is refused at the start. */
#include "base/log.h"
#include "session/job/job.h"
#include "session/session.h"

static pk_status open_goodput(pki_session *s)
{
    return s->config.goodput[0]
               ? pki_fail(PK_ENOTSUP, "goodput_path: this build of perfkit has no state files")
               : PK_OK;
}

static pk_status open_job(pki_session *s)
{
    return s->config.job[0]
               ? pki_fail(PK_ENOTSUP, "job_path: this build of perfkit has no reports of jobs")
               : PK_OK;
}

const pki_service pki_service_goodput = {.name = "goodput", .open = open_goodput};
const pki_service pki_service_job = {.name = "job", .open = open_job};
const pki_service pki_service_stragglers = {.name = "stragglers"};

pk_status pki_job_stop(pki_session *s, const pki_summary *summary)
{
    (void)s, (void)summary;
    return PK_OK;
}

void pki_job_exit(void) {}
