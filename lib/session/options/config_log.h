/* lib/session/options/config_log.h - log, log_user, log_level, and PK_LOG. */
#pragma once

#include "session/options/config.h"

/* First of all, so that what is wrong with the others is logged. */
pk_status pki_config_log(const pk_options *options);
