/* abi.c - lib/comm/nccl/calls.h against the real nccl.h: the same sizes, values and
 * places, and each function taken by a pointer of our type, or this does not compile. */
#include <nccl.h>

#include <stdint.h>

/* The table's words for types, and what they really are. */
#define PKI_WRAP_REAL_TYPES
typedef ncclResult_t pki_wrap_result;
typedef ncclDataType_t pki_wrap_type;
typedef ncclRedOp_t pki_wrap_redop;
typedef ncclComm_t pki_wrap_comm;
typedef cudaStream_t pki_wrap_stream;
typedef ncclUniqueId pki_wrap_id;
typedef ncclConfig_t pki_wrap_config_arg;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
typedef ncclSimInfo_t pki_wrap_sim;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
typedef ncclWindow_t pki_wrap_window;
_Static_assert(sizeof(ncclWindow_t) == sizeof(void *), "windows");
#endif

#include "comm/nccl/calls.h"

_Static_assert(sizeof(ncclResult_t) == sizeof(int), "results");
_Static_assert(sizeof(ncclDataType_t) == sizeof(int), "types");
_Static_assert(sizeof(ncclRedOp_t) == sizeof(int), "reductions");
_Static_assert(sizeof(ncclComm_t) == sizeof(void *), "communicators");
_Static_assert(sizeof(ncclUniqueId) == PKI_WRAP_ID_BYTES, "ids");
_Static_assert((int)ncclSuccess == PKI_WRAP_SUCCESS, "success");
_Static_assert((int)ncclInvalidUsage == PKI_WRAP_INVALID_USAGE, "usage");
_Static_assert((int)ncclInProgress == PKI_WRAP_IN_PROGRESS, "in progress");
_Static_assert(NCCL_SPLIT_NOCOLOR == PKI_WRAP_NO_COLOR, "no colour");

#define SAME_PLACE(ours, theirs)                                                                   \
    _Static_assert(offsetof(pki_wrap_config, ours) == offsetof(ncclConfig_t, theirs), #theirs)
SAME_PLACE(size, size);
SAME_PLACE(blocking, blocking);
SAME_PLACE(net_name, netName);
SAME_PLACE(split_share, splitShare);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
SAME_PLACE(comm_name, commName);
#endif

/* By value: lib/comm/nccl/wrap.c takes ncclInt8 and its like as places in a list. */
_Static_assert(ncclInt8 == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclUint32 == 3, "types");
_Static_assert(ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclFloat32 == 7, "types");
_Static_assert(ncclFloat64 == 8 && ncclBfloat16 == 9, "types");

#define SAME_FUNCTION(NAME, PARAMS, ...)                                                           \
    pki_wrap_result(*const check_##NAME) PARAMS = nccl##NAME;                                      \
    pki_wrap_result(*const check_p##NAME) PARAMS = pnccl##NAME;
#define DECLARED_FUNCTION(NAME, PARAMS, ...)                                                       \
    extern pki_wrap_result(*const check_##NAME) PARAMS, (*const check_p##NAME)PARAMS;
PKI_WRAP_COLLECTIVES(DECLARED_FUNCTION)
PKI_WRAP_COLLECTIVES(SAME_FUNCTION)
PKI_WRAP_OTHERS(DECLARED_FUNCTION)
PKI_WRAP_OTHERS(SAME_FUNCTION)
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
PKI_WRAP_LATER_COLLECTIVES(DECLARED_FUNCTION)
PKI_WRAP_LATER_COLLECTIVES(SAME_FUNCTION)
PKI_WRAP_LATER_OTHERS(DECLARED_FUNCTION)
PKI_WRAP_LATER_OTHERS(SAME_FUNCTION)
#endif

/* Newer than the header, perhaps: then the table goes by the documentation. */
#ifdef NCCL_REVOKE_DEFAULT
extern ncclResult_t (*const of_revoke)(ncclComm_t, int);
ncclResult_t (*const of_revoke)(ncclComm_t, int) = ncclCommRevoke;
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
PKI_WRAP_NEWEST_OTHERS(DECLARED_FUNCTION)
PKI_WRAP_NEWEST_OTHERS(SAME_FUNCTION)
#define SAME_ONE_SIDED(NAME, PARAMS, ...) SAME_FUNCTION(NAME, PARAMS)
PKI_WRAP_ONE_SIDED(DECLARED_FUNCTION)
PKI_WRAP_ONE_SIDED(SAME_ONE_SIDED)
#endif
