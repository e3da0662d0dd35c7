/* lib/backend/shim/pkshim.h - libpkshim.so: entry points that libraries look up by name, for a
 * program that perfkit is linked into statically.
 *
 * Users of NVTX open the library that an environment variable names, so the entry point has to be
 * in a library; a program cannot be opened like one. The shim has the entry point and nothing else:
 * it calls what perfkit has put into pk_shim, and answers "no" as long as that is nothing.
 */
#pragma once

#include <stdint.h>

/* Grows at its end. The shim sets size, perfkit the rest of what lies within. */
typedef struct pk_shim_calls {
    uint32_t size;
    uint32_t reserved;
    int (*nvtx)(const void *(*get_export_table)(uint32_t id));
    int (*nvtx_extension)(void *module);
} pk_shim_calls;

#define PK_SHIM_NAME "pk_shim"
