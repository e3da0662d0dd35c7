/* lib/session/report/none.c - built without reports (-Dservices=): asked for, they are refused at
 * the start. Statistics are there by pk_region_stats. */
#include "base/log.h"
#include "measure/summary.h"
#include "session/report/run.h"
#include "session/report/summarise.h"

pk_status pki_report_check(const char *path)
{
    return path[0] ? pki_fail(PK_ENOTSUP, "report_path: this build of perfkit has no reports")
                   : PK_OK;
}

pk_status pki_report_stop(pki_session *s, char **line, size_t *bytes)
{
    (void)s, (void)line, (void)bytes;
    return PK_OK;
}

pk_status pki_environment_config(pki_config *c)
{
    (void)c;
    return PK_OK;
}

pk_status pki_limits_config(pki_config *c, pki_config_text peak)
{
    (void)c, (void)peak;
    return PK_OK;
}

/* ---- the processors' side, which reports alone tell of ---- */

void pki_cpu_side_begin(const char *root)
{
    (void)root;
}

void pki_cpu_side_poll(uint32_t stepper, bool now)
{
    (void)stepper, (void)now;
}

pki_cpu_side pki_cpu_side_end(void)
{
    return (pki_cpu_side){.looks = 0};
}

/* ---- parts of a summary, which nobody makes ---- */

void pki_comm_finish(pki_summary *summary)
{
    (void)summary;
}

void pki_step_summary_finish(pki_step_summary *steps)
{
    (void)steps;
}

void pki_stage_summary_finish(pki_stage_summary *stages)
{
    (void)stages;
}
