#include "stats/slot.h"

#include <pk/stats.h>

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "stats/buckets.h"
#include "stats/tally.h"

/* ---- which sample is a quantile, and in which bucket it lies ---- */

uint64_t pki_rank(double q, uint64_t n)
{
    if (!(q > 0))
        return 1;
    if (q >= 1)
        return n;
    uint64_t below = (uint64_t)(q * (double)n), rank = below > 1 ? below - 1 : 1;
    while (rank < n && (double)rank / (double)n < q)
        rank++;
    return rank;
}

size_t pki_rank_bucket(const uint64_t *counts, size_t n, size_t stride, uint64_t rank)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < n; i++) {
        seen += *(const uint64_t *)((const char *)counts + i * stride);
        if (seen >= rank)
            return i;
    }
    return n - 1;
}

/* ---- memory for a table's distributions, in 64 KiB spans of a mapping ---- */

#define PKI_POOL_SPAN_BYTES 65536u

typedef struct span {
    uint64_t next; /* offset, 0 for none */
    uint64_t bytes;
    uint64_t pad[6];
} span;

static size_t lines_up(size_t bytes)
{
    return (bytes + PKI_LINE - 1) & ~(size_t)(PKI_LINE - 1);
}

static void enter_span(const pki_spans *spans, pki_pool *pool, uint64_t offset)
{
    span *s = pki_spans_at(spans, offset);
    pool->span_now = offset;
    pool->spare = (char *)(s + 1);
    pool->spare_end = (char *)s + s->bytes;
}

static bool append_span(pki_spans *spans, pki_pool *pool, size_t bytes)
{
    size_t whole = PKI_MAX(sizeof(span) + bytes, PKI_POOL_SPAN_BYTES);
    span *s = pki_spans_claim(spans, whole);
    if (!s)
        return false;
    s->bytes = whole;
    uint64_t offset = pki_spans_offset(spans, s);
    if (pool->span_now)
        ((span *)pki_spans_at(spans, pool->span_now))->next = offset;
    else
        pool->spans = offset;
    enter_span(spans, pool, offset);
    return true;
}

/* On to the next span: one left from before a reset, or a new one. */
static bool next_span(pki_spans *spans, pki_pool *pool, size_t bytes)
{
    uint64_t next = pool->span_now ? ((span *)pki_spans_at(spans, pool->span_now))->next : 0;
    if (!next)
        return append_span(spans, pool, bytes);
    enter_span(spans, pool, next);
    return true;
}

void *pki_pool_claim(pki_spans *spans, pki_pool *pool, size_t bytes)
{
    bytes = lines_up(bytes);
    while ((size_t)(pool->spare_end - pool->spare) < bytes)
        if (!next_span(spans, pool, bytes))
            return NULL;
    void *at = pool->spare;
    pool->spare += bytes;
    return memset(at, 0, bytes);
}

static void pki_pool_reset(const pki_spans *spans, pki_pool *pool)
{
    if (pool->spans)
        enter_span(spans, pool, pool->spans);
}

/* ---- one region's distribution: a slot and its chunks of buckets ---- */

static inline pki_link pki_link_to(const pki_slot *slot, const void *to)
{
    return (pki_link)(((const char *)to - (const char *)slot) / PKI_LINE);
}

void pki_slot_clear(pki_slot *slot, uint32_t id)
{
    memset(slot, 0, sizeof *slot);
    slot->min = slot->min_before = UINT64_MAX;
    slot->id = id;
}

/* What is kept first: a reader in between sees the same twice. */
void pki_slot_seal(pki_slot *slot)
{
    pki_store_release(&slot->min_before, PKI_MIN(slot->min_before, slot->min));
    pki_store_release(&slot->max_before, PKI_MAX(slot->max_before, slot->max));
    pki_store_release(&slot->min, UINT64_MAX);
    pki_store_release(&slot->max, (uint64_t)0);
}

/* The bucket's counter, made if needed; NULL without room. */
static uint32_t *bucket_of(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint32_t bucket)
{
    pki_link *link = &slot->chunks[bucket / PKI_CHUNK_BUCKETS];
    if (PKI_UNLIKELY(!*link)) {
        void *chunk = pki_pool_claim(spans, pool, sizeof(pki_chunk));
        if (!chunk)
            return NULL;
        pki_store_release(link, pki_link_to(slot, chunk)); /* zeroed before readers see it */
    }
    return (uint32_t *)pki_follow(slot, *link) + bucket % PKI_CHUNK_BUCKETS;
}

/* The bucket has overflowed so many times. */
static PKI_COLD void add_carry(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint32_t bucket,
                               uint32_t times)
{
    if (!slot->carry) {
        void *words = pki_pool_claim(spans, pool, PK_STATS_BUCKETS * sizeof(uint32_t));
        if (!words)
            return;
        pki_store_release(&slot->carry,
                          pki_link_to(slot, words)); /* zeroed before readers see it */
    }
    uint32_t *counter = (uint32_t *)pki_follow(slot, slot->carry) + bucket;
    pki_bump(counter, times);
}

static void add_to_bucket(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint32_t bucket,
                          uint32_t n)
{
    uint32_t *counter = bucket_of(spans, pool, slot, bucket);
    if (!counter)
        return;
    uint32_t sum = pki_load(counter) + n;
    if (PKI_UNLIKELY(sum < n))
        add_carry(spans, pool, slot, bucket, 1);
    pki_store_release(counter, sum);
}

void pki_slot_count_bucket(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint32_t bucket)
{
    add_to_bucket(spans, pool, slot, bucket, 1);
}

void pki_slot_count_times(pki_spans *spans, pki_pool *pool, pki_slot *slot, uint64_t ticks,
                          uint32_t times)
{
    pki_u128 squares = (pki_u128)ticks * ticks * times;
    uint64_t low = pki_load(&slot->squares_low) + (uint64_t)squares;
    uint64_t carry = low < (uint64_t)squares;
    pki_store(&slot->squares_high,
              pki_load(&slot->squares_high) + (uint64_t)(squares >> 64) + carry);
    pki_store(&slot->squares_low, low);
    pki_bump(&slot->count, times);
    pki_bump(&slot->sum, ticks * times);
    pki_store(&slot->min, PKI_MIN(pki_load(&slot->min), ticks));
    pki_store(&slot->max, PKI_MAX(pki_load(&slot->max), ticks));
    pki_bump(&slot->untimed, times - 1);
    pki_bump(&slot->spread, (uint64_t)times * (times - 1));
    add_to_bucket(spans, pool, slot, pki_bucket(ticks), times);
}

static void merge_buckets(pki_spans *spans, pki_pool *pool, pki_slot *to, const pki_slot *from)
{
    for (uint32_t c = 0; c < PKI_CHUNKS; c++) {
        const uint32_t *chunk = from->chunks[c] ? pki_follow(from, from->chunks[c]) : NULL;
        for (uint32_t i = 0; chunk && i < PKI_CHUNK_BUCKETS; i++)
            if (chunk[i])
                add_to_bucket(spans, pool, to, c * PKI_CHUNK_BUCKETS + i, chunk[i]);
    }
    const uint32_t *carries = from->carry ? pki_follow(from, from->carry) : NULL;
    for (uint32_t i = 0; carries && i < PK_STATS_BUCKETS; i++)
        if (carries[i])
            add_carry(spans, pool, to, i, carries[i]);
}

void pki_slot_merge(pki_spans *spans, pki_pool *pool, pki_slot *to, const pki_slot *from)
{
    uint64_t low = to->squares_low + from->squares_low;
    to->squares_high += from->squares_high + (low < from->squares_low);
    to->squares_low = low;
    to->count += from->count;
    to->sum += from->sum;
    to->merged += from->count;
    to->min_before = PKI_MIN(to->min_before, PKI_MIN(from->min, from->min_before));
    to->max_before = PKI_MAX(to->max_before, PKI_MAX(from->max, from->max_before));
    to->self += from->self;
    to->untimed += from->untimed;
    to->spread += from->spread;
    to->bytes += from->bytes;
    to->flops += from->flops;
    merge_buckets(spans, pool, to, from);
}

/* ---- reading ---- */

/* Between pki_stats_begin and pki_stats_finish the sum of squares travels in the spare words, and
 * what sampling_error is made of. */
enum { LOW, HIGH, SPREAD, OCTAVES };

_Static_assert((int)OCTAVES == PKI_STATS_OCTAVES && PKI_CHUNKS < 64, "a bit for each octave");

void pki_stats_begin(pk_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->size = sizeof *stats;
    stats->min = UINT64_MAX;
}

void pki_stats_again(pk_stats *stats)
{
    for (uint64_t left = stats->spare[OCTAVES]; left; left &= left - 1) {
        uint32_t first = (uint32_t)__builtin_ctzll(left) * PKI_CHUNK_BUCKETS;
        memset(stats->buckets + first, 0, PKI_CHUNK_BUCKETS * sizeof *stats->buckets);
    }
    memset(stats, 0, offsetof(pk_stats, buckets));
    stats->size = sizeof *stats;
    stats->min = UINT64_MAX;
}

void pki_stats_hand_out(pk_stats *stats)
{
    stats->spare[OCTAVES] = 0;
}

static uint64_t octaves_of(const pk_stats *stats)
{
    uint64_t all = ((uint64_t)1 << PKI_CHUNKS) - 1;
    return stats->spare[OCTAVES] ? stats->spare[OCTAVES] : all;
}

/* Of an octave most buckets are empty: four at a time. */
static size_t used_in_octave(const pk_stats *stats, uint32_t first, uint16_t *used)
{
    size_t count = 0;
    for (uint32_t i = first; i < first + PKI_CHUNK_BUCKETS; i += 4) {
        const uint64_t *b = stats->buckets + i;
        if (!(b[0] | b[1] | b[2] | b[3]))
            continue;
        for (uint32_t j = 0; j < 4; j++)
            if (b[j])
                used[count++] = (uint16_t)(i + j);
    }
    return count;
}

size_t pki_stats_used(const pk_stats *stats, uint16_t used[PK_STATS_BUCKETS])
{
    size_t count = 0;
    for (uint64_t left = octaves_of(stats); left; left &= left - 1)
        count += used_in_octave(stats, (uint32_t)__builtin_ctzll(left) * PKI_CHUNK_BUCKETS,
                                used + count);
    return count;
}

static void add_square(pk_stats *stats, uint64_t low, uint64_t high)
{
    uint64_t sum = stats->spare[LOW] + low;
    stats->spare[HIGH] += high + (sum < low);
    stats->spare[LOW] = sum;
}

/* The chunk's counters; NULL if it has none. */
static inline const uint32_t *chunk_of(const pki_slot *slot, uint32_t chunk)
{
    /* pairs with the release in bucket_of */
    pki_link link = pki_load_acquire(&slot->chunks[chunk]);
    return link ? pki_follow(slot, link) : NULL;
}

static inline uint64_t count_of(const pki_slot *slot, const uint32_t *chunk, uint32_t bucket)
{
    /* pairs with the releases in pki_slot_count and add_to_bucket */
    uint64_t count = pki_load_acquire(&chunk[bucket % PKI_CHUNK_BUCKETS]);
    pki_link carry = pki_load_acquire(&slot->carry); /* with the release in add_carry */
    if (PKI_UNLIKELY(carry))
        count += (uint64_t)pki_load((const uint32_t *)pki_follow(slot, carry) + bucket) << 32;
    return count;
}

uint64_t pki_slot_bucket(const pki_slot *slot, uint32_t bucket)
{
    const uint32_t *chunk = chunk_of(slot, bucket / PKI_CHUNK_BUCKETS);
    return chunk ? count_of(slot, chunk, bucket) : 0;
}

/* In bucket i, or in none of its chunk: then i is the chunk's last. */
static uint64_t count_in(const pki_slot *slot, uint32_t *i)
{
    if (pki_load(&slot->chunks[*i / PKI_CHUNK_BUCKETS]))
        return pki_slot_bucket(slot, *i);
    *i |= PKI_CHUNK_BUCKETS - 1;
    return 0;
}

uint64_t pki_slot_quantile(const pki_slot *slot, double q)
{
    uint64_t total = 0, before = 0;
    for (uint32_t i = 0; i < PK_STATS_BUCKETS; i++)
        total += count_in(slot, &i);
    uint64_t rank = total ? pki_rank(q, total) : 0;
    for (uint32_t i = 0; i < PK_STATS_BUCKETS && rank; i++) {
        before += count_in(slot, &i);
        if (before >= rank)
            return (uint64_t)pki_bucket_middle(i);
    }
    return 0;
}

static void add_octave(pk_stats *stats, const pki_slot *slot, const uint32_t *chunk, uint32_t first)
{
    for (uint32_t i = 0; i < PKI_CHUNK_BUCKETS; i += 4) {
        const uint32_t *b = chunk + i;
        bool any = pki_load(&b[0]) | pki_load(&b[1]) | pki_load(&b[2]) | pki_load(&b[3]);
        for (uint32_t j = i; j < i + 4 && (any || pki_load(&slot->carry)); j++) {
            uint64_t count = count_of(slot, chunk, first + j);
            if (count)
                pki_stats_count(stats, first + j, count);
        }
    }
}

static void add_buckets(pk_stats *stats, const pki_slot *slot)
{
    for (uint32_t c = 0; c < PKI_CHUNKS; c++) {
        const uint32_t *chunk = chunk_of(slot, c);
        if (chunk)
            add_octave(stats, slot, chunk, c * PKI_CHUNK_BUCKETS);
    }
}

void pki_stats_add_slot(pk_stats *stats, const pki_slot *slot)
{
    add_buckets(stats, slot);
    stats->count += pki_load(&slot->count);
    stats->sum += pki_load(&slot->sum);
    /* since the last seal first: pairs with the releases of pki_slot_seal */
    uint64_t min = pki_load_acquire(&slot->min), max = pki_load_acquire(&slot->max);
    stats->min = PKI_MIN(stats->min, PKI_MIN(min, pki_load(&slot->min_before)));
    stats->max = PKI_MAX(stats->max, PKI_MAX(max, pki_load(&slot->max_before)));
    stats->self += pki_load(&slot->self);
    stats->untimed += pki_load(&slot->untimed);
    stats->spare[SPREAD] += pki_load(&slot->spread);
    stats->bytes += pki_load(&slot->bytes);
    stats->flops += pki_load(&slot->flops);
    add_square(stats, pki_load(&slot->squares_low), pki_load(&slot->squares_high));
}

/* A number of 192 bits: high * 2^64 + low. */
typedef struct wide {
    pki_u128 high;
    uint64_t low;
} wide;

static wide product(pki_u128 a, uint64_t b)
{
    pki_u128 low = (pki_u128)(uint64_t)a * b;
    return (wide){(a >> 64) * b + (low >> 64), (uint64_t)low};
}

static wide difference(wide a, wide b)
{
    return (wide){a.high - b.high - (a.low < b.low), a.low - b.low};
}

/* Var = E[x^2] - E[x]^2 = (n * sum(x^2) - sum(x)^2) / n^2, whose difference is taken in integers:
 * in floating point it would be lost where all samples are alike. Negative only where a sample is
 * half entered. */
static double deviation(const pk_stats *stats)
{
    pki_u128 squares = (pki_u128)stats->spare[HIGH] << 64 | stats->spare[LOW];
    wide apart = difference(product(squares, stats->count), product(stats->sum, stats->sum));
    if (apart.high >> 127)
        return 0;
    long double square = (long double)apart.high * 18446744073709551616.0L + (long double)apart.low;
    return (double)(sqrtl(square) / (long double)stats->count);
}

static uint64_t to_ns(uint64_t ticks, double unit_ns)
{
    return unit_ns == 1.0 ? ticks : (uint64_t)llroundl((long double)ticks * (long double)unit_ns);
}

void pki_stats_finish(pk_stats *stats, double unit_ns)
{
    stats->unit_ns = unit_ns;
    if (stats->count == 0) {
        stats->min = 0;
    } else {
        stats->stddev = deviation(stats) * unit_ns;
        stats->mean =
            (double)((long double)stats->sum / (long double)stats->count * (long double)unit_ns);
        stats->sampling_error = sqrt((double)stats->spare[SPREAD]) / (double)stats->count;
    }
    stats->sum = to_ns(stats->sum, unit_ns);
    stats->min = to_ns(stats->min, unit_ns);
    stats->max = to_ns(stats->max, unit_ns);
    stats->self = to_ns(stats->self, unit_ns);
    memset(stats->spare, 0, OCTAVES * sizeof *stats->spare);
}

/* Buckets with calls, in order. */
typedef struct walk {
    const pk_stats *stats;
    uint16_t used[PK_STATS_BUCKETS];
    size_t count;
    uint64_t total; /* calls in them */
} walk;

static void begin_walk(walk *w, const pk_stats *stats)
{
    w->stats = stats;
    w->count = pki_stats_used(stats, w->used);
    w->total = 0;
    for (size_t i = 0; i < w->count; i++)
        w->total += stats->buckets[w->used[i]];
}

static uint32_t bucket_of_rank(const walk *w, uint64_t rank)
{
    uint64_t seen = 0;
    size_t i = 0;
    while (i + 1 < w->count && (seen += w->stats->buckets[w->used[i]]) < rank)
        i++;
    return w->used[i];
}

static uint64_t quantile_of(const walk *w, double q)
{
    const pk_stats *stats = w->stats;
    if (w->total == 0)
        return 0;
    uint64_t rank = pki_rank(q, w->total);
    if (rank == 1 || rank == w->total)
        return rank == 1 ? stats->min : stats->max;
    double middle = pki_bucket_middle(bucket_of_rank(w, rank));
    uint64_t ns = (uint64_t)llround(middle * stats->unit_ns);
    return PKI_MIN(PKI_MAX(ns, stats->min), stats->max);
}

uint64_t pk_stats_quantile(const pk_stats *stats, double q)
{
    walk w;
    if (!stats || stats->size < sizeof *stats)
        return 0;
    begin_walk(&w, stats);
    return quantile_of(&w, q);
}

pki_dist pki_stats_dist(const pk_stats *s)
{
    walk w;
    begin_walk(&w, s);
    return (pki_dist){.count = s->count,
                      .sum = (double)s->sum,
                      .min = (double)s->min,
                      .max = (double)s->max,
                      .mean = s->mean,
                      .stddev = s->stddev,
                      .p50 = (double)quantile_of(&w, 0.50),
                      .p90 = (double)quantile_of(&w, 0.90),
                      .p95 = (double)quantile_of(&w, 0.95),
                      .p99 = (double)quantile_of(&w, 0.99)};
}

/* ---- a counter's distribution: doubles of either sign ---- */

/* Magnitudes of keys: those of 2^-64 and just below 2^64. */
#define LOWEST ((1023u - 64) * PKI_OCTAVE_BUCKETS)
#define HIGHEST ((1023u + 64) * PKI_OCTAVE_BUCKETS - 1)

/* Buckets in order of value, over all banks: the negative octaves, zero's, the positive ones. */
#define ZERO (HIGHEST - LOWEST + 1)
#define POSITIVE (ZERO + PKI_OCTAVE_BUCKETS)
#define BUCKETS (PKI_VALUE_BANKS * PK_STATS_BUCKETS)

_Static_assert(POSITIVE + ZERO <= BUCKETS, "the banks hold all octaves");

static uint32_t value_bucket_of(double value)
{
    if (value == 0)
        return ZERO;
    uint32_t key = pki_key(fabs(value)) - PKI_KEY_SIGN;
    uint32_t above = PKI_MIN(PKI_MAX(key, LOWEST), HIGHEST) - LOWEST;
    return value > 0 ? POSITIVE + above : ZERO - 1 - above;
}

static uint32_t key_of(uint32_t bucket)
{
    if (bucket >= POSITIVE)
        return PKI_KEY_SIGN + LOWEST + (bucket - POSITIVE);
    return bucket == ZERO ? PKI_KEY_SIGN : PKI_KEY_SIGN - LOWEST - (ZERO - bucket);
}

/* Read by others meanwhile, who see the last value half entered at worst: the count, which says
 * whether there are any, is the last word to be stored and the first to be read. */
typedef uint64_t __attribute__((may_alias)) word;
#define WORDS (sizeof(pki_moments) / sizeof(word))
_Static_assert(offsetof(pki_moments, count) == (WORDS - 1) * sizeof(word), "the last word");

static void store_moments(pki_moments *to, const pki_moments *from)
{
    for (size_t i = 0; i < WORDS - 1; i++)
        pki_store((word *)to + i, ((const word *)from)[i]);
    pki_store_release(&to->count, from->count);
}

static pki_moments load_moments(const pki_moments *from)
{
    pki_moments m = {.count = pki_load_acquire(&from->count)}; /* pairs with store_moments */
    for (size_t i = 0; i < WORDS - 1; i++)
        ((word *)&m)[i] = pki_load((const word *)from + i);
    return m;
}

static void store_double(double *at, double value)
{
    __atomic_store(at, &value, __ATOMIC_RELAXED);
}

static double load_double(const double *at)
{
    double value;
    __atomic_load(at, &value, __ATOMIC_RELAXED);
    return value;
}

void pki_values_clear(pki_values *values, uint32_t id)
{
    memset(values, 0, sizeof *values);
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_slot_clear(&values->banks[i], i ? 0 : id);
    pki_values_seal(values);
}

void pki_values_seal(pki_values *values)
{
    values->min_since = INFINITY;
    values->max_since = -INFINITY;
}

void pki_values_add(pki_spans *spans, pki_pool *pool, pki_values *v, double value, uint64_t ticks)
{
    uint32_t bucket = value_bucket_of(value);
    pki_moments moments = v->moments;
    pki_moments_add(&moments, value, 1);
    store_double(&v->last, value);
    pki_store(&v->last_ticks, ticks);
    v->min_since = PKI_MIN(v->min_since, value);
    v->max_since = PKI_MAX(v->max_since, value);
    store_moments(&v->moments, &moments);
    pki_slot_count_bucket(spans, pool, &v->banks[bucket / PK_STATS_BUCKETS],
                          bucket % PK_STATS_BUCKETS);
}

static void pki_values_merge(pki_spans *spans, pki_pool *pool, pki_values *to,
                             const pki_values *from)
{
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_slot_merge(spans, pool, &to->banks[i], &from->banks[i]);
    pki_moments_merge(&to->moments, &from->moments);
    to->merged += from->moments.count;
    if (from->last_ticks >= to->last_ticks) {
        to->last = from->last;
        to->last_ticks = from->last_ticks;
    }
}

bool pki_value_stats_add(pki_value_stats *stats, const pki_values *v)
{
    bool fits = true;
    if (!pki_load(&v->moments.count))
        return true;
    /* The buckets first, as a value is entered there last (slot.h). */
    for (uint32_t i = 0; fits && i < BUCKETS; i++) {
        uint64_t n = pki_slot_bucket(&v->banks[i / PK_STATS_BUCKETS], i % PK_STATS_BUCKETS);
        fits = n == 0 || pki_tally_count(&stats->tally, key_of(i), n);
    }
    pki_moments moments = load_moments(&v->moments);
    pki_moments_merge(&stats->tally.moments, &moments);
    if (pki_load(&v->last_ticks) >= stats->last_ticks) {
        stats->last = load_double(&v->last);
        stats->last_ticks = pki_load(&v->last_ticks);
    }
    return fits;
}

/* ---- a table of distributions by name id ---- */

static bool grow(pki_spans *spans, pki_table *table, uint32_t id)
{
    uint32_t count = PKI_MAX(table->count, 128u);
    while (count <= id)
        count *= 2;
    if (count == table->count)
        return true;
    pki_slot **slots = pki_pool_claim(spans, &table->pool, count * sizeof *slots);
    if (!slots)
        return false;
    if (table->count)
        memcpy(slots, table->slots, table->count * sizeof *slots);
    table->slots = slots;
    table->count = count;
    return true;
}

static void clear(pki_slot *slot, uint32_t id, uint32_t kind)
{
    if (kind == PKI_KIND_COUNTER)
        pki_values_clear((pki_values *)slot, id);
    else
        pki_slot_clear(slot, id);
    slot->kind = kind;
}

pki_slot *pki_table_add(pki_spans *spans, pki_table *table, uint32_t id, uint32_t kind)
{
    pki_slot *slot = pki_table_slot(table, id);
    if (slot)
        return slot;
    if (!grow(spans, table, id))
        return NULL;
    size_t bytes = kind == PKI_KIND_COUNTER ? sizeof(pki_values) : sizeof *slot;
    slot = pki_pool_claim(spans, &table->pool, bytes);
    if (!slot)
        return NULL;
    clear(slot, id, kind);
    slot->next = table->first ? pki_link_to(slot, table->first) : 0;
    table->first = slot;
    table->slots[id] = slot;
    table->used++;
    return slot;
}

void pki_table_merge(pki_spans *spans, pki_table *to, const pki_table *from)
{
    for (const pki_slot *s = from->first; s; s = pki_table_next(s)) {
        pki_slot *slot = pki_table_add(spans, to, s->id, s->kind);
        if (slot && s->kind == PKI_KIND_COUNTER)
            pki_values_merge(spans, &to->pool, (pki_values *)slot, (const pki_values *)s);
        else if (slot)
            pki_slot_merge(spans, &to->pool, slot, s);
    }
}

void pki_table_reset(const pki_spans *spans, pki_table *table)
{
    table->slots = NULL;
    table->first = NULL;
    table->count = table->used = 0;
    pki_pool_reset(spans, &table->pool);
}
