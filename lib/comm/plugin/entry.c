/* What NCCL looks up in libpk.so. In libpk.a it is in an object that nothing refers to, so a
 * program gets it only if it asks for it. */
#include <pk/pk.h>

#include "comm/plugin/plugin.h"

#define ENTRY(V, INIT, STATE)                                                                      \
    extern PK_API const pki_nccl_table_v##V ncclProfiler_v##V;                                     \
    const pki_nccl_table_v##V ncclProfiler_v##V = PKI_NCCL_FUNCTIONS(V, INIT, STATE);
PKI_NCCL_TABLES(ENTRY)
