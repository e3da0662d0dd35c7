/* lib/session/options/config_text.h - options that are text. */
#pragma once

#include <limits.h>

#include <pk/status.h>

#include "base/process.h"

/* An option's text, NULL for none, and what it is called. */
typedef struct pki_config_text {
    const char *text, *source;
} pki_config_text;

/* What an option or, without one, its variable says, and which of the two it is. An empty option
 * asks for the default whatever the variable says. */
pki_config_text pki_config_text_of(const char *given, const char *field, const char *variable);

/* A path with its %-fields filled in; "" without a text. PK_EINVAL names what is wrong with it. */
pk_status pki_config_path(pki_config_text pattern, const pki_world *world, char path[PATH_MAX]);
