/* lib/comm/nccl/collectives.c - collectives, messages and groups: each between two events on its
 * stream */
#include "comm/nccl/communicator.h"
#include "comm/nccl/glue.h"

/* ---- collectives and messages: each between two events on its stream ---- */

/* NCCL may call itself by its public names: ncclBcast is made of ncclBroadcast. */
static __thread bool inside;

static pk_comm_type type_of(pki_wrap_type type)
{
    static const uint8_t types[] = {
        PK_COMM_TYPE_INT8,     PK_COMM_TYPE_BYTE,        PK_COMM_TYPE_INT32,
        PK_COMM_TYPE_UINT32,   PK_COMM_TYPE_INT64,       PK_COMM_TYPE_UINT64,
        PK_COMM_TYPE_FLOAT16,  PK_COMM_TYPE_FLOAT32,     PK_COMM_TYPE_FLOAT64,
        PK_COMM_TYPE_BFLOAT16, PK_COMM_TYPE_FLOAT8_E4M3, PK_COMM_TYPE_FLOAT8_E5M2};
    return type >= 0 && (size_t)type < sizeof types ? (pk_comm_type)types[type] : PK_COMM_TYPE_BYTE;
}

#define OPERATION(NAME, PARAMS, ARGS, OP, PEER, TYPE, COUNT)                                       \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS;                                                \
    PKI_WRAP_API pki_wrap_result nccl##NAME PARAMS                                                 \
    {                                                                                              \
        pki_wrap_result(*call) PARAMS = PKI_WRAP_REAL(NAME);                                       \
        if (__builtin_expect(!call, 0))                                                            \
            return PKI_WRAP_INVALID_USAGE;                                                         \
        if (!pki_wrap_is_on() || inside)                                                           \
            return call ARGS;                                                                      \
        pk_comm *known = pki_wrap_comm_of(comm);                                                   \
        inside = true;                                                                             \
        pk_nccl_begin(known, OP, TYPE, COUNT, PEER, stream);                                       \
        pki_wrap_result result = call ARGS;                                                        \
        pk_nccl_end(known, stream, result);                                                        \
        inside = false;                                                                            \
        return result;                                                                             \
    }

#define COLLECTIVE(NAME, PARAMS, ARGS, OP, PEER)                                                   \
    OPERATION(NAME, PARAMS, ARGS, OP, PEER, type_of(type), count)

PKI_WRAP_COLLECTIVES(COLLECTIVE)
PKI_WRAP_LATER_COLLECTIVES(COLLECTIVE)
PKI_WRAP_ONE_SIDED(OPERATION)

/* ---- groups: timed as one, and filling in handles ---- */

PKI_WRAP_API pki_wrap_result ncclGroupStart(void);
PKI_WRAP_API pki_wrap_result ncclGroupEnd(void);
PKI_WRAP_API pki_wrap_result ncclGroupSimulateEnd(pki_wrap_sim *info);

/* Counted while perfkit is off, too, so that one that starts in the middle knows. */
PKI_WRAP_API pki_wrap_result ncclGroupStart(void)
{
    pki_wrap_result (*call)(void) = PKI_WRAP_REAL(GroupStart);
    if (!call)
        return PKI_WRAP_INVALID_USAGE;
    pki_wrap_result result = call();
    if (result == PKI_WRAP_SUCCESS) {
        pki_wrap_group_start();
        pk_nccl_group_start();
    }
    return result;
}

PKI_WRAP_API pki_wrap_result ncclGroupEnd(void)
{
    pki_wrap_result (*call)(void) = PKI_WRAP_REAL(GroupEnd);
    if (!call)
        return PKI_WRAP_INVALID_USAGE;
    pk_nccl_group_launch();
    pki_wrap_result result = call();
    pk_nccl_group_end(result);
    pki_wrap_group_end(result);
    return result;
}

/* Ends the group without doing any of it: nothing is timed. */
PKI_WRAP_API pki_wrap_result ncclGroupSimulateEnd(pki_wrap_sim *info)
{
    pki_wrap_result (*call)(pki_wrap_sim *) = PKI_WRAP_REAL(GroupSimulateEnd);
    if (!call)
        return PKI_WRAP_INVALID_USAGE;
    pki_wrap_result result = call(info);
    pk_nccl_group_end(result);
    pki_wrap_group_end(PKI_WRAP_INVALID_USAGE);
    return result;
}
