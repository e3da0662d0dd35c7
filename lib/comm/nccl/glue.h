/* lib/comm/nccl/glue.h - what all files of libpk_nccl share.
 *
 * libpk_nccl defines functions of NCCL and calls on by their names with a p. It knows perfkit as
 * any program does, through <pk/...>. Arguments, results, errno and CUDA's error state pass through
 * untouched; while perfkit is off a call is two loads and branches and NCCL's own.
 */
#pragma once

#include <stdbool.h>

#include <pk/nccl.h>

#include "comm/nccl/real.h"

/* On the definition of a function of NCCL: all else is hidden. */
#define PKI_WRAP_API __attribute__((visibility("default")))

static inline bool pki_wrap_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&pk_gpu_gate_, __ATOMIC_RELAXED) != 0, 0);
}

/* What the call came to: done, or under way. */
static inline bool pki_wrap_went_well(pki_wrap_result result)
{
    return result == PKI_WRAP_SUCCESS || result == PKI_WRAP_IN_PROGRESS;
}
