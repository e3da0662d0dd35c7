/* lib/backend/nvtx/wanted.h - does a session want other people's ranges? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

/* Here, so that no table of the loader's is between: what a range's begin and end read. */
#define PKI_NVTX_NEAR __attribute__((visibility("hidden")))

/* The session that wants ranges, by its registry's serial (high half), and how many categories have
 * been named by then; 0: no session does. */
extern PKI_NVTX_NEAR uint64_t pki_nvtx_wanted;

bool pki_nvtx_consuming(void);
void pki_nvtx_consume(bool on);

/* What threads remember of messages with categories may be wrong from here on. */
void pki_nvtx_category_named(void);

static inline uint32_t pki_nvtx_session_now(void)
{
    return (uint32_t)(pki_load(&pki_nvtx_wanted) >> 32);
}
