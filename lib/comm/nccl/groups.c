/* lib/comm/nccl/groups.c - groups: timed as one, and filling in handles. */
#include "comm/nccl/communicator.h"

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
