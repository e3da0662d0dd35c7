#include "backend/nvtx/wanted.h"

#include "core/registry.h"

uint64_t pki_nvtx_wanted;
static uint32_t categories_named;

bool pki_nvtx_consuming(void)
{
    return pki_load(&pki_nvtx_wanted) != 0;
}

void pki_nvtx_consume(bool on)
{
    uint64_t named = pki_load(&categories_named);
    pki_store(&pki_nvtx_wanted, on ? (uint64_t)pki_registry_serial() << 32 | named : 0);
}

void pki_nvtx_category_named(void)
{
    uint32_t named = pki_fetch_add(&categories_named, 1u) + 1;
    uint64_t now = pki_load(&pki_nvtx_wanted);
    while (now && !__atomic_compare_exchange_n(&pki_nvtx_wanted, &now, now >> 32 << 32 | named,
                                               false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}
