/* lib/base/wheels.h - NVIDIA's libraries in Python's packages, where no loader looks.
 *
 * pip installs them as .../site-packages/nvidia/PACKAGE/lib/FILE. Looked through, in this order:
 * the packages that this process has loaded something from already, which suit it best; those of
 * $VIRTUAL_ENV and $CONDA_PREFIX; those of /usr/local and /usr.
 */
#pragma once

#include <stddef.h>

/* Opens the first of the files, each sought in all of the packages before the next one; both lists
 * end with NULL. NULL if there is none, and why in words. Never closed again. */
void *pki_wheel_open(const char *const files[], const char *const packages[], char *reason,
                     size_t size);
