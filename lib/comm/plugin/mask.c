/* lib/comm/plugin/mask.c - which events NCCL is asked for. It has one mask for the process, which
 * it hands out at each communicator's init and reads as a group begins; so it can be turned off
 * between sessions, as long as there is a communicator: without one NCCL may have been unloaded.
 */
#include "comm/plugin/plugin.h"

#include <stdlib.h>
#include <string.h>

#include "comm/plugin/abi.h"

/* All but what costs by the byte. */
#define ALWAYS                                                                                     \
    (PKI_NCCL_GROUP | PKI_NCCL_COLL | PKI_NCCL_P2P | PKI_NCCL_PROXY_OP | PKI_NCCL_GROUP_API |      \
     PKI_NCCL_COLL_API | PKI_NCCL_P2P_API | PKI_NCCL_LAUNCH | PKI_NCCL_CE_COLL)
#define STEPS (PKI_NCCL_PROXY_STEP | PKI_NCCL_PROXY_CTRL | PKI_NCCL_NET)

static int *its_mask, chosen = ALWAYS;
static bool on;

static bool is_set(const char *name)
{
    const char *text = secure_getenv(name);
    return text && strcmp(text, "1") == 0;
}

void pki_nccl_mask_choose(void)
{
    int mask = ALWAYS;
    mask |= is_set("PK_NCCL_KERNEL_CH") ? PKI_NCCL_KERNEL_CH : 0;
    mask |= is_set("PK_NCCL_PROXY_STEPS") ? STEPS : 0;
    pki_store(&chosen, mask);
}

bool pki_nccl_mask_kernels(void)
{
    return (pki_load(&chosen) & PKI_NCCL_KERNEL_CH) != 0;
}

void pki_nccl_mask_at(int *mask)
{
    if (!mask)
        return;
    pki_store(&its_mask, mask);
    pki_store(mask, pki_load(&on) ? pki_load(&chosen) : 0);
}

void pki_nccl_mask_turn(bool now_on)
{
    int *mask = pki_load(&its_mask);
    pki_store(&on, now_on);
    if (mask && pki_nccl_contexts_live() > 0)
        pki_store(mask, now_on ? pki_load(&chosen) : 0);
}

void pki_nccl_mask_after_fork(void)
{
    its_mask = NULL;
    on = false;
}
