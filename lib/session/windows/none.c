/* lib/session/windows/none.c - built without windows and metrics (-Dservices=): asked for, it is
 * refused at the start. */
#include "base/log.h"
#include "session/session.h"

static pk_status open_windows(pki_session *s)
{
    return s->config.windows[0]
               ? pki_fail(PK_ENOTSUP, "windows_path: this build of perfkit has no windows")
               : PK_OK;
}

static pk_status open_metrics(pki_session *s)
{
    return s->config.metrics[0]
               ? pki_fail(PK_ENOTSUP, "metrics_path: this build of perfkit has no metrics")
               : PK_OK;
}

const pki_service pki_service_windows = {.name = "windows", .open = open_windows};
const pki_service pki_service_metrics = {.name = "metrics", .open = open_metrics};
