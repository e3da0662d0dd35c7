/* lib/core/innermost.h - where the calling thread is, for libraries that count for it. */
#pragma once

#include <stdint.h>

/* The name's id of the calling thread's innermost open region; 0: none, or nothing is recorded. It
 * neither waits nor allocates, and may be called amid a call of ours. Beyond 64 open regions it is
 * the 64th. */
uint32_t pki_innermost_region(void);
