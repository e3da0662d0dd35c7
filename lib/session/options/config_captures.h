/* lib/session/options/config_captures.h - what of a configuration is about the history and its
 * captures. */
#pragma once

#include "session/options/config.h"

/* Behind all numbers and paths. PK_EINVAL names the option and what is wrong with it. */
pk_status pki_config_captures(pki_config *config, const pk_options *options);
