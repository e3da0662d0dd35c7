/* lib/session/report/environment.h - machine and build, for the report and for captures. Read at
 * the end, and by the thread that writes captures: nothing of it is on the way of a recording
 * thread or of the collector. */
#pragma once

#include "measure/environment.h"
#include "session/options/config.h"

/* PK_ENVIRONMENT: on or off. */
pk_status pki_environment_config(pki_config *c);

/* False: no memory. */
bool pki_environment_fill(const pki_config *c, pki_environment *out);
