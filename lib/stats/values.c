#include "stats/values.h"

#include <math.h>
#include <string.h>

#include <pk/counter.h>

#include "core/registry.h"

/* Octaves in order of value: -2^63 .. -2^-64, zero, 2^-64 .. 2^63. */
#define ZERO_OCTAVE PKI_VALUE_EXPONENTS

typedef struct place {
    uint32_t bank, bucket;
} place;

static place place_of(double value)
{
    int exponent;
    double mantissa = frexp(fabs(value), &exponent); /* 0.5 .. 1; value = mantissa * 2^exponent */
    int octave = ZERO_OCTAVE;
    uint32_t sub = 0;
    if (mantissa > 0) {
        int e = PKI_MIN(PKI_MAX(exponent - 1 + 64, 0), PKI_VALUE_EXPONENTS - 1);
        octave = value > 0 ? ZERO_OCTAVE + 1 + e : ZERO_OCTAVE - 1 - e;
        sub = (uint32_t)((mantissa - 0.5) * 128);
    }
    uint32_t chunk = (uint32_t)octave % PKI_CHUNKS;
    return (place){(uint32_t)octave / PKI_CHUNKS, chunk * PKI_CHUNK_BUCKETS + sub};
}

static double middle_of(uint32_t bank, uint32_t bucket)
{
    int octave = (int)(bank * PKI_CHUNKS + bucket / PKI_CHUNK_BUCKETS);
    double mantissa = 1 + ((double)(bucket % PKI_CHUNK_BUCKETS) + 0.5) / PKI_CHUNK_BUCKETS;
    if (octave == ZERO_OCTAVE)
        return 0;
    int e = octave > ZERO_OCTAVE ? octave - ZERO_OCTAVE - 1 : ZERO_OCTAVE - 1 - octave;
    return copysign(ldexp(mantissa, e - 64), octave - ZERO_OCTAVE);
}

/* Read by others meanwhile, who see the last value half entered at worst: the count, which says
 * whether there are any, is the last word to be stored and the first to be read. */
typedef uint64_t __attribute__((may_alias)) word;
#define WORDS (sizeof(pki_moments) / sizeof(word))

static void store_moments(pki_moments *to, const pki_moments *from)
{
    for (size_t i = 0; i < WORDS; i++)
        pki_store((word *)to + i, ((const word *)from)[i]);
}

static pki_moments load_moments(const pki_moments *from)
{
    pki_moments m;
    for (size_t i = WORDS; i-- > 0;)
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
}

void pki_values_add(pki_arena *arena, pki_table *table, pki_values *v, double value, uint64_t ticks)
{
    place p = place_of(value);
    pki_moments moments = v->moments;
    pki_moments_add(&moments, value, 1);
    store_double(&v->last, value);
    pki_store(&v->last_ticks, ticks);
    store_moments(&v->moments, &moments);
    pki_table_count_bucket(arena, table, &v->banks[p.bank], p.bucket);
}

static void lose(pki_thread *t, uint32_t id, double value, uint64_t ticks)
{
    pki_slot *slot = pki_lost_slot(t, id);
    if (slot->id == id)
        pki_values_add(t->registry->arena, &t->lost, (pki_values *)slot, value, ticks);
}

static void set(pk_counter *counter, double value)
{
    uint32_t id = pki_counter_id(counter);
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_point();
        return;
    }
    if (id == 0 || !isfinite(value)) {
        pki_bump(isfinite(value) ? &t->points_dropped : &t->not_finite, 1);
        return;
    }
    pki_record r = {pki_ticks(t->monotonic), 0, PKI_WHAT(id, PKI_RECORD_COUNTER, 0), 0};
    memcpy(&r.value, &value, sizeof value);
    if (!pki_push_point(t, &r, 1))
        lose(t, id, value, r.start);
}

void pk_counter_set_on_(pk_counter *counter, double value)
{
    if (!pki_enter()) {
        pki_registry_refuse_point();
        return;
    }
    set(counter, value);
    pki_leave();
}

void pki_values_merge(pki_arena *arena, pki_table *table, pki_values *to, const pki_values *from)
{
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_table_merge_slot(arena, table, &to->banks[i], &from->banks[i]);
    pki_moments_merge(&to->moments, &from->moments);
    if (from->last_ticks >= to->last_ticks) {
        to->last = from->last;
        to->last_ticks = from->last_ticks;
    }
}

static void add_buckets(pki_value_stats *stats, const pki_values *v)
{
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_slot_add_buckets(stats->buckets[i], &v->banks[i]);
}

void pki_value_stats_add(pki_value_stats *stats, const pki_values *v)
{
    pki_moments moments = load_moments(&v->moments);
    if (!moments.count)
        return;
    pki_moments_merge(&stats->moments, &moments);
    if (pki_load(&v->last_ticks) >= stats->last_ticks) {
        stats->last = load_double(&v->last);
        stats->last_ticks = pki_load(&v->last_ticks);
    }
    add_buckets(stats, v);
}

double pki_value_stats_quantile(const pki_value_stats *stats, double q)
{
    uint64_t seen = 0, count = stats->moments.count, rank = pki_rank(q, count);
    double min = stats->moments.min, max = stats->moments.max;
    if (rank <= 1 || rank >= count)
        return rank <= 1 ? min : max;
    for (uint32_t bank = 0; bank < PKI_VALUE_BANKS; bank++)
        for (uint32_t b = 0; b < PK_STATS_BUCKETS; b++) {
            /* Below zero the values fall as the buckets inside an octave rise. */
            int octave = (int)(bank * PKI_CHUNKS + b / PKI_CHUNK_BUCKETS);
            uint32_t i = octave < ZERO_OCTAVE ? b ^ (PKI_CHUNK_BUCKETS - 1) : b;
            seen += stats->buckets[bank][i];
            if (seen >= rank)
                return fmin(fmax(middle_of(bank, i), min), max);
        }
    return max;
}
