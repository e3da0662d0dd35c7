/* lib/session/config_captures.h - what of a configuration is about the history and its captures. */
#pragma once

#include "session/config.h"

/* An option's text, NULL for none, and what it is called. */
typedef struct pki_config_text {
    const char *text, *source;
} pki_config_text;

/* Behind all numbers and paths. PK_EINVAL names the option and what is wrong with it. */
pk_status pki_config_captures(pki_config *config, pki_config_text capture, pki_config_text path);
