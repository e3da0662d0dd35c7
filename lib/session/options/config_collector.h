/* lib/session/options/config_collector.h - who empties the rings, and where. */
#pragma once

#include "session/options/config.h"

/* PK_EINVAL names the option and what is wrong with it. */
pk_status pki_config_collector(pki_config *config, const pk_options *options);
