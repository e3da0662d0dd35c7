#include "alloc/counts.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "alloc/interface.h"
#include "alloc/next.h"
#include "base/atomic.h"
#include "base/compiler.h"

/* Of threads for which there was no room, and of what threads do on their last way out. Several
 * write it at once. */
extern shard pki_shard_of_others;

static uint32_t pki_alloc_regions_seen(void);
static cell *pki_cell_of(shard *s, uint32_t region);

/* ---- region and size of large blocks, in a table by where a block begins ---- */

uint64_t *pki_large_parts[PKI_LARGE_PARTS];
static uint64_t missed;
static uint32_t refusals_left;

/* Whoever was refused room is refused again: not each block asks the system. Of any part: it is
 * the process that has no room. Which of two threads takes one off is no matter. */
static bool should_retry(void)
{
    uint32_t left = pki_load(&refusals_left);
    if (left)
        pki_store(&refusals_left, left - 1);
    return !left;
}

/* Pages of 4 KiB: with huge ones, a program that allocates here and there would get 2 MiB for each
 * GiB of its addresses. */
static uint64_t *reserve(size_t bytes)
{
    if (!should_retry())
        return NULL;
    void *room = pki_room_map(bytes);
    int error = errno;
    if (room)
        madvise(room, bytes, MADV_NOHUGEPAGE);
    else
        pki_store(&refusals_left, PKI_LARGE_UNASKED);
    errno = error;
    return room;
}

/* The loser of two who make the same, which can be a handler and whom it has struck, gives its own
 * back. */
uint64_t *pki_large_make(const void *block)
{
    const size_t bytes = PKI_LARGE_WORDS * sizeof(uint64_t);
    uint64_t **at = pki_large_part(block), *there = NULL;
    uint64_t *part = reserve(bytes);
    /* pairs with the acquire in pki_large_put and pki_large_remove */
    if (part &&
        !__atomic_compare_exchange_n(at, &there, part, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        pki_room_unmap(part, bytes);
        part = there;
    }
    return part;
}

bool pki_large_miss(void)
{
    pki_fetch_add(&missed, 1);
    return false;
}

uint64_t pki_large_missed(void)
{
    return pki_load(&missed);
}

/* ---- what lives now, and the most that did. See interface.h for the figures ---- */

typedef struct level {
    int64_t now, peak;
} level;

static level living_regions[PKI_ALLOC_REGIONS], all;
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
        pki_store(&at_peak[i], pki_load(&living_regions[i].now));
    pki_store(&recorded_peak, peak);
    __atomic_store_n(&peak_lock, 0u, __ATOMIC_RELEASE);
}

static void pki_living_flush_region(cell *c, uint32_t region)
{
    /* of the shard of others more than one thread's: each of its bytes is flushed once */
    change(&living_regions[region], __atomic_exchange_n(&c->unflushed, 0, __ATOMIC_RELAXED));
}

static void pki_living_flush_total(shard *s)
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
    change(&living_regions[region], fetch_own(&pki_cell_of(s, region)->unflushed));
}

/* Who was keeping it may not be here. */
static void pki_alloc_unlock_peak(void)
{
    pki_store(&peak_lock, 0u);
}

static uint64_t positive(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

static uint64_t pki_alloc_live(uint32_t region)
{
    return positive(pki_load(&living_regions[region].now));
}

static uint64_t pki_alloc_total(void)
{
    return positive(pki_load(&all.now));
}

static uint64_t pki_alloc_peak(uint32_t region)
{
    return positive(pki_load(&living_regions[region].peak));
}

static uint64_t pki_alloc_total_peak(void)
{
    return positive(pki_load(&all.peak));
}

/* A peak that nobody has come down from is kept now. */
static uint64_t pki_alloc_at_peak(uint32_t region)
{
    int64_t peak = pki_load(&all.peak);
    if (pki_load(&all.now) >= peak - peak / 100)
        record_peak();
    return positive(pki_load(&at_peak[region]));
}

static void pki_alloc_peaks_anew(void)
{
    for (uint32_t i = 0; i < pki_alloc_regions_seen(); i++)
        pki_store(&living_regions[i].peak, pki_load(&living_regions[i].now));
    pki_store(&all.peak, pki_load(&all.now));
    pki_store(&recorded_peak, 0);
}

/* ---- the shards, for who adds them up ---- */

#define STEP 65536u       /* of the first shards; each doubling of their number halves it... */
#define LEAST_STEP 16384u /* ...to this one */
#define FIRST_SHARDS 64u  /* which have STEP */

shard pki_shard_of_others;
static cell far_of_others[PKI_ALLOC_REGIONS - PKI_ALLOC_NEAR];
_Thread_local shard *pki_shard = &pki_shard_of_others;

static shard *first;
static uint32_t made;
static pthread_key_t at_thread_end;
static bool has_key;
static _Thread_local enum { NEW, CLAIMING, HAS, LEFT } stage;

/* All that were ever taken, newest first. */
static shard *pki_shards(void)
{
    return __atomic_load_n(&first, __ATOMIC_ACQUIRE); /* pairs with the release in add */
}

static void add(shard *s)
{
    shard *before = pki_load(&first);
    do
        s->next = before;
    while (
        !__atomic_compare_exchange_n(&first, &before, s, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* One that a thread has left; it goes on counting where that one stopped. */
static shard *reuse(void)
{
    for (shard *s = pki_shards(); s; s = s->next) {
        uint32_t free = 0;
        /* the acquire pairs with the release in release_own */
        if (!pki_load(&s->taken) && __atomic_compare_exchange_n(&s->taken, &free, 1, false,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return s;
    }
    return NULL;
}

static uint64_t step_of(uint32_t before)
{
    uint64_t step = STEP;
    for (uint32_t with_it = FIRST_SHARDS; before >= with_it && step > LEAST_STEP; with_it *= 2)
        step /= 2;
    return step;
}

static shard *make(void)
{
    shard *s = pki_room_map(sizeof *s);
    if (!s)
        return NULL;
    s->taken = 1;
    s->step = step_of(pki_fetch_add(&made, 1));
    s->twice = 2 * s->step;
    add(s);
    return s;
}

/* A key beyond the first 32 makes pthread_setspecific allocate: that call finds us CLAIMING. */
static bool claim(void)
{
    int error = errno;
    stage = CLAIMING;
    shard *s = reuse();
    s = s ? s : make();
    if (s && has_key && pthread_setspecific(at_thread_end, s) == 0) {
        pki_shard = s;
        stage = HAS;
    } else { /* nobody would give it back */
        if (s)
            __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
        stage = NEW;
    }
    errno = error;
    return stage == HAS;
}

static bool get(void)
{
    return stage == HAS || (stage == NEW && pki_load(&has_key) && claim());
}

static void release_own(void *of)
{
    shard *s = of;
    pki_shard = &pki_shard_of_others;
    stage = LEFT;
    pki_living_flush_total(s);
    __atomic_store_n(&s->taken, 0, __ATOMIC_RELEASE);
}

/* ---- where a region is counted ---- */

/* The loser of two who make the same, which can be a handler and whom it has struck, gives its own
 * back. */
static cell *make_far(shard *s, uint32_t part)
{
    cell *cells = pki_room_map(PKI_ALLOC_NEAR * sizeof *cells), *there = NULL;
    if (!cells)
        return NULL;
    /* pairs with the acquire in pki_cell_of */
    if (__atomic_compare_exchange_n(&s->far[part], &there, cells, false, __ATOMIC_RELEASE,
                                    __ATOMIC_ACQUIRE))
        return cells;
    pki_room_unmap(cells, PKI_ALLOC_NEAR * sizeof *cells);
    return there;
}

/* NULL: nothing has been counted there. */
static cell *pki_cell_of(shard *s, uint32_t region)
{
    if (region < PKI_ALLOC_NEAR)
        return &s->cells[region];
    if (s == &pki_shard_of_others)
        return &far_of_others[region - PKI_ALLOC_NEAR];
    cell *cells = pki_load_acquire(&s->far[region / PKI_ALLOC_NEAR - 1]);
    return cells ? &cells[region % PKI_ALLOC_NEAR] : NULL;
}

static void shards_raise_to(uint32_t *seen, uint32_t count)
{
    uint32_t before = pki_load(seen);
    while (before < count && !__atomic_compare_exchange_n(seen, &before, count, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* In the thread's own shard; NULL: there is no room. */
static cell *cell_in(shard *s, uint32_t region)
{
    int error = errno;
    cell *c = pki_cell_of(s, region);
    if (!c && make_far(s, region / PKI_ALLOC_NEAR - 1))
        c = pki_cell_of(s, region);
    if (c) {
        if (!pki_load(&pki_sample_bytes)) /* then all come this way */
            shards_raise_to(&s->near, PKI_MIN(region + 1, PKI_ALLOC_NEAR));
        shards_raise_to(&s->regions, region + 1);
    }
    errno = error;
    return c;
}

/* ---- what a block counts for, where some stand for all (next.h) ---- */

#define SCALE 10 /* bits behind the point of cells' allocations and frees, then */

typedef struct weight {
    uint64_t blocks, bytes;
} weight;

/* 1 / (1 - exp(-x)) of x = bytes / mean, with 20 bits behind the point: the inverse of the chance
 * that one of so many bytes is drawn, so that what is counted, times this, is what was asked for on
 * average. By the series 1/x + 1/2 + x/12 - x^3/720 + x^5/30240 for x <= 1, and w(2x) =
 * w(x)^2 / (2 w(x) - 1). */
static uint64_t inverse_chance(uint64_t bytes, uint64_t mean)
{
    const uint64_t one = 1u << 20;
    unsigned halvings = 0;
    if (bytes / 16 >= mean)
        return one;
    for (; bytes > mean; halvings++)
        mean *= 2;
    uint64_t x = bytes * one / mean, cube = x * x / one * x / one;
    uint64_t w =
        mean * one / bytes + one / 2 + x / 12 - cube / 720 + cube * (x * x / one) / one / 30240;
    for (; halvings; halvings--)
        w = w * w / (2 * w - one);
    return w;
}

static weight weight_of(uint64_t bytes)
{
    uint64_t mean = pki_load(&pki_sample_bytes);
    if (!mean)
        return (weight){1, bytes};
    uint64_t each = inverse_chance(bytes + 1, mean);
    return (weight){each >> (20 - SCALE), bytes > mean * 16 ? bytes : bytes * each >> 20};
}

static void count_for_others(uint32_t region, weight w, bool is_new)
{
    shard *s = &pki_shard_of_others;
    cell *c = pki_cell_of(s, region);
    int64_t by = is_new ? (int64_t)w.bytes : -(int64_t)w.bytes;
    pki_fetch_add(is_new ? &c->allocations : &c->frees, w.blocks);
    pki_fetch_add(is_new ? &c->bytes : &c->freed, w.bytes);
    pki_fetch_add(&c->unflushed, by);
    pki_fetch_add(&s->unflushed, by);
    shards_raise_to(&s->regions, region + 1);
    pki_living_flush_total(s);
    pki_living_flush_region(c, region);
}

bool pki_count_allocated_first(uint32_t region, uint64_t bytes)
{
    weight w = weight_of(bytes);
    cell *c = get() ? cell_in(pki_shard, region) : NULL;
    if (c) {
        pki_bump(&c->allocations, w.blocks);
        pki_bump(&c->bytes, w.bytes);
        return pki_count_in(pki_shard, c, (int64_t)w.bytes);
    }
    count_for_others(region, w, true);
    return false;
}

bool pki_count_freed_first(uint32_t region, uint64_t bytes)
{
    weight w = weight_of(bytes);
    cell *c = get() ? cell_in(pki_shard, region) : NULL;
    if (c) {
        pki_bump(&c->frees, w.blocks);
        pki_bump(&c->freed, w.bytes);
        return pki_count_in(pki_shard, c, -(int64_t)w.bytes);
    }
    count_for_others(region, w, false);
    return false;
}

/* Threads that are not here have left. */
static void after_fork(void)
{
    for (shard *s = pki_shards(); s; s = s->next)
        if (s != pki_shard)
            pki_store(&s->taken, 0);
    pki_alloc_unlock_peak();
}

__attribute__((constructor)) static void prepare(void)
{
    pki_store(&has_key, pthread_key_create(&at_thread_end, release_own) == 0);
    pthread_atfork(NULL, NULL, after_fork);
}

/* ---- libpk's way in ---- */

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

/* Ids below have been counted on some thread. */
static uint32_t pki_alloc_regions_seen(void)
{
    uint32_t most = 0;
    for (const shard *s = first_of_all(); s; s = next_of(s))
        most = PKI_MAX(most, pki_load(&s->regions));
    return most;
}

static void attach_add(pki_alloc_sum *sum, const cell *c)
{
    sum->frees += pki_load(&c->frees);
    sum->freed += pki_load(&c->freed);
    sum->allocations += pki_load(&c->allocations);
    sum->bytes += pki_load(&c->bytes);
}

static uint64_t rounded(uint64_t blocks)
{
    return pki_load(&pki_sample_bytes) ? (blocks + (1u << SCALE) / 2) >> SCALE : blocks;
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
                attach_add(&sums[i], c);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        sums[i].allocations = rounded(sums[i].allocations);
        sums[i].frees = rounded(sums[i].frees);
    }
}

static uint64_t sampled(void)
{
    return pki_load(&pki_sample_bytes);
}

static void count_next(void)
{
    pki_sample_left = 0;
    pki_sample_drawn = true;
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
    *why = "it is not ready";
    return pki_next_ready() ? pki_next_file(why) : NULL;
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
    .sampled = sampled,
    .count_next = count_next,
};
