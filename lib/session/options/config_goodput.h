/* lib/session/options/config_goodput.h - goodput_path, costs. */
#pragma once

#include "session/options/config.h"

/* Once the world and the other paths are known. */
pk_status pki_config_goodput(pki_config *config, const pk_options *options);
