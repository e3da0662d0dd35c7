/* lib/alloc/living.c - what lives now, and the most that did. */
#include "alloc/living.h"

#include <stdbool.h>

#include "alloc/shards.h"

typedef struct level {
    int64_t now, peak;
} level;

static level regions[PKI_ALLOC_REGIONS], all;
static int64_t at_peak[PKI_ALLOC_REGIONS], recorded_peak; /* of all, when at_peak was taken */
static uint32_t peak_lock;

static void raise_to(int64_t *peak, int64_t now)
{
    int64_t before = pki_load(peak);
    while (now > before && !__atomic_compare_exchange_n(peak, &before, now, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED))
        ;
}

static void change(level *l, int64_t by)
{
    if (by)
        raise_to(&l->peak, pki_fetch_add(&l->now, by) + by);
}

/* Whoever is about to take something away from a new peak writes down what it consists of; not for
 * each small step upwards, so that a program which grows and shrinks does so for each percent at
 * most. Others go on meanwhile. */
static void record_peak(void)
{
    int64_t peak = pki_load(&all.peak), recorded = pki_load(&recorded_peak);
    if (peak - recorded <= recorded / 100 || __atomic_exchange_n(&peak_lock, 1u, __ATOMIC_ACQUIRE))
        return;
    uint32_t count = pki_alloc_regions_seen();
    for (uint32_t i = 0; i < count; i++)
        pki_store(&at_peak[i], pki_load(&regions[i].now));
    pki_store(&recorded_peak, peak);
    __atomic_store_n(&peak_lock, 0u, __ATOMIC_RELEASE);
}

void pki_living_flush_region(cell *c, uint32_t region)
{
    /* of the shard of others more than one thread's: each of its bytes is flushed once */
    change(&regions[region], __atomic_exchange_n(&c->unflushed, 0, __ATOMIC_RELAXED));
}

void pki_living_flush_total(shard *s)
{
    if (pki_load(&s->unflushed) < 0)
        record_peak();
    change(&all, __atomic_exchange_n(&s->unflushed, 0, __ATOMIC_RELAXED));
}

/* Of words that nobody else writes, so nothing is exchanged. */
static int64_t fetch_own(int64_t *unflushed)
{
    int64_t bytes = *unflushed;
    pki_store(unflushed, 0);
    return bytes;
}

void pki_living_flush(uint32_t region)
{
    shard *s = pki_shard;
    int64_t total = fetch_own(&s->unflushed);
    if (total < 0)
        record_peak();
    change(&all, total);
    change(&regions[region], fetch_own(&pki_cell_of(s, region)->unflushed));
}

/* Who was keeping it may not be here. */
void pki_alloc_unlock_peak(void)
{
    pki_store(&peak_lock, 0u);
}

static uint64_t positive(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

uint64_t pki_alloc_live(uint32_t region)
{
    return positive(pki_load(&regions[region].now));
}

uint64_t pki_alloc_total(void)
{
    return positive(pki_load(&all.now));
}

uint64_t pki_alloc_peak(uint32_t region)
{
    return positive(pki_load(&regions[region].peak));
}

uint64_t pki_alloc_total_peak(void)
{
    return positive(pki_load(&all.peak));
}

/* A peak that nobody has come down from is kept now. */
uint64_t pki_alloc_at_peak(uint32_t region)
{
    int64_t peak = pki_load(&all.peak);
    if (pki_load(&all.now) >= peak - peak / 100)
        record_peak();
    return positive(pki_load(&at_peak[region]));
}

void pki_alloc_peaks_anew(void)
{
    for (uint32_t i = 0; i < pki_alloc_regions_seen(); i++)
        pki_store(&regions[i].peak, pki_load(&regions[i].now));
    pki_store(&all.peak, pki_load(&all.now));
    pki_store(&recorded_peak, 0);
}
