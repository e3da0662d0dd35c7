/* lib/comm/nccl/real.h - NCCL's own functions, by their names with a p in front.
 *
 * In the static library they are references like any others (real_linked.c), so that a static NCCL
 * is linked as if it had been called by name; those of newer versions are weak, and NULL where the
 * NCCL at hand has them not. The shared library may be preloaded before any NCCL is there, and NCCL
 * may be visible to nobody but the library that uses it, so it looks for them at the first call of
 * each (real_loaded.c).
 */
#pragma once

#include "comm/nccl/calls.h"

typedef struct pki_wrap_table {
#define PKI_WRAP_POINTER(NAME, PARAMS, ...) pki_wrap_result(*NAME) PARAMS;
    PKI_WRAP_COLLECTIVES(PKI_WRAP_POINTER)
    PKI_WRAP_LATER_COLLECTIVES(PKI_WRAP_POINTER)
    PKI_WRAP_OTHERS(PKI_WRAP_POINTER)
    PKI_WRAP_LATER_OTHERS(PKI_WRAP_POINTER)
    PKI_WRAP_ONE_SIDED(PKI_WRAP_POINTER)
    PKI_WRAP_NEWEST_OTHERS(PKI_WRAP_POINTER)
#undef PKI_WRAP_POINTER
} pki_wrap_table;

extern pki_wrap_table pki_wrap_real;

/* Looks for what is missing. Any thread. */
void pki_wrap_resolve(void);

/* The function, or NULL: this NCCL has none, and the call is PKI_WRAP_INVALID_USAGE. */
#define PKI_WRAP_REAL(NAME)                                                                        \
    (__extension__({                                                                               \
        if (__builtin_expect(!__atomic_load_n(&pki_wrap_real.NAME, __ATOMIC_RELAXED), 0))          \
            pki_wrap_resolve();                                                                    \
        __atomic_load_n(&pki_wrap_real.NAME, __ATOMIC_RELAXED);                                    \
    }))
