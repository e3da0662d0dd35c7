/* lib/session/live/none.c - built without a watchdog, and without what `pk top` and `pk where` read
 * (-Dservices=): asked for, it is refused at the start. */
#include "base/log.h"
#include "session/session.h"

static pk_status open_none(pki_session *s)
{
    return s->config.hang_seconds
               ? pki_fail(PK_ENOTSUP, "hang_seconds: this build of perfkit has no watchdog")
               : PK_OK;
}

const pki_service pki_service_live = {.name = "live"};
const pki_service pki_service_watchdog = {.name = "watchdog", .open = open_none};
