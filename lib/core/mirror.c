#include "core/mirror.h"

#include "core/registry.h"

static const pki_mirror *all[PKI_MIRRORS_MAX];
static unsigned count;

void pki_mirrors_open(const pki_mirror *const *mirrors, unsigned n)
{
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    for (unsigned i = 0; i < n && i < PKI_MIRRORS_MAX; i++)
        pki_store(&all[i], mirrors[i]);
    pki_store_release(&count, PKI_MIN(n, (unsigned)PKI_MIRRORS_MAX));
    for (uint32_t i = 0; r && i < pki_registry_blocks(r); i++)
        pki_store(&pki_registry_block(r, i)->limit, 0u);
    pki_registry_unlock();
}

void pki_mirrors_close(void)
{
    pki_store_release(&count, 0u);
}

unsigned pki_mirrors_count(void)
{
    return pki_load_acquire(&count); /* pairs with the release in pki_mirrors_open */
}

uint32_t pki_mirrors_begin(uint32_t id, unsigned depth)
{
    unsigned n = pki_mirrors_count();
    for (unsigned i = 0; i < n; i++)
        pki_load(&all[i])->begin(id, depth);
    return n ? PKI_SPECIAL | PKI_MIRRORED : 0;
}

void pki_mirrors_end(uint32_t id, const pki_work *work)
{
    for (unsigned i = pki_mirrors_count(); i-- > 0;)
        pki_load(&all[i])->end(id, work);
}

void pki_mirrors_mark(uint32_t id)
{
    for (unsigned i = 0, n = pki_mirrors_count(); i < n; i++)
        pki_load(&all[i])->mark(id);
}
