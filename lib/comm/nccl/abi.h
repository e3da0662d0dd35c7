/* lib/comm/nccl/abi.h - NCCL's types as far as calls of it pass them, in words of our own: its
 * header need not be there, and no version of it is preferred. NCCL is a C library whose
 * enumerations are ints and whose handles are pointers; the unique id travels by value.
 * tests/nccl/wrap/abi.c holds this against a real nccl.h where there is one. Source: NCCL's
 * documentation and headers, 2.19 to 2.28, and the user guide of 2.30.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct pki_wrap_config { /* each version has more at its end; size says how much there is */
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name; /* since 2.27; NULL: none */
} pki_wrap_config;

enum {
    PKI_WRAP_SUCCESS = 0,
    PKI_WRAP_INVALID_USAGE = 5,
    PKI_WRAP_IN_PROGRESS = 7, /* of a communicator that does not block: not an error */
    PKI_WRAP_NO_COLOR = -1,
    PKI_WRAP_ID_BYTES = 128
};

/* The test has the real ones in their place. */
#ifndef PKI_WRAP_REAL_TYPES
typedef int pki_wrap_result;
typedef int pki_wrap_type;
typedef int pki_wrap_redop;
typedef struct ncclComm *pki_wrap_comm;
typedef struct CUstream_st *pki_wrap_stream;
typedef struct pki_wrap_id {
    char internal[PKI_WRAP_ID_BYTES];
} pki_wrap_id;
typedef pki_wrap_config pki_wrap_config_arg;
typedef struct ncclWindow_vidmem *pki_wrap_window; /* an opaque pointer, since 2.27 */
typedef struct pki_wrap_sim pki_wrap_sim;
#endif
