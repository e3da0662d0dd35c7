/* lib/base/variable.h - the variables of the environment that stand for options. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Is there one of this name? */
bool pki_variable_is_known(const char *name, size_t length);

/* An empty variable counts as not set: NULL. So does one that is not known. */
const char *pki_variable(const char *name);
