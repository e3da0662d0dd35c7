/* lib/alloc/attach.c - libpk's way in. */
#include "alloc/large.h"
#include "alloc/living.h"
#include "alloc/next.h"
#include "alloc/shards.h"

static uint32_t nowhere(void)
{
    return 0;
}

uint32_t (*pki_region_of)(void) = nowhere;

static void attach(uint32_t (*region)(void))
{
    pki_store(&pki_region_of, region ? region : nowhere);
    pki_alloc_peaks_anew();
}

static shard *first_of_all(void)
{
    return &pki_shard_of_others;
}

/* The shared one, and then those of threads. */
static shard *next_of(const shard *s)
{
    return s == &pki_shard_of_others ? pki_shards() : s->next;
}

uint32_t pki_alloc_regions_seen(void)
{
    uint32_t most = 0;
    for (const shard *s = first_of_all(); s; s = next_of(s))
        most = PKI_MAX(most, pki_load(&s->regions));
    return most;
}

static void add(pki_alloc_sum *sum, const cell *c)
{
    sum->frees += pki_load(&c->frees);
    sum->freed += pki_load(&c->freed);
    sum->allocations += pki_load(&c->allocations);
    sum->bytes += pki_load(&c->bytes);
}

static void read_sums(pki_alloc_sum *sums, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sums[i] = (pki_alloc_sum){0};
    for (shard *s = first_of_all(); s; s = next_of(s)) {
        uint32_t regions = PKI_MIN(count, pki_load(&s->regions));
        for (uint32_t i = 0; i < regions; i++) {
            const cell *c = pki_cell_of(s, i);
            if (c)
                add(&sums[i], c);
        }
    }
}

static uint64_t within(void)
{
    uint64_t unflushed = 0;
    for (const shard *s = pki_shards(); s; s = s->next)
        unflushed += s->step;
    return unflushed;
}

static const char *beneath(const char **why)
{
    *why = pki_next_ready() ? pki_next_why() : "it is not ready";
    return *why ? NULL : pki_next_file();
}

__attribute__((visibility("default"))) extern const pki_alloc_interface pk_alloc_interface_1;
const pki_alloc_interface pk_alloc_interface_1 = {
    .size = sizeof(pki_alloc_interface),
    .attach = attach,
    .regions = pki_alloc_regions_seen,
    .sums = read_sums,
    .live = pki_alloc_live,
    .total = pki_alloc_total,
    .peak = pki_alloc_peak,
    .total_peak = pki_alloc_total_peak,
    .at_peak = pki_alloc_at_peak,
    .within = within,
    .beneath = beneath,
    .missed = pki_large_missed,
};
