#include "core/values.h"

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
    values->min = INFINITY;
    values->max = -INFINITY;
}

void pki_values_add(pki_arena *arena, pki_table *table, pki_values *v, double value, uint64_t ticks)
{
    place p = place_of(value);
    pki_bump(&v->banks[0].count, 1);
    store_double(&v->sum, v->sum + value);
    store_double(&v->squares, v->squares + value * value);
    store_double(&v->min, fmin(v->min, value));
    store_double(&v->max, fmax(v->max, value));
    store_double(&v->last, value);
    pki_store(&v->last_ticks, ticks);
    pki_table_count_bucket(arena, table, &v->banks[p.bank], p.bucket);
}

static void lose(pki_thread *t, uint32_t id, double value, uint64_t ticks)
{
    pki_slot *slot = pki_lost_slot(t, id);
    if (slot->id == id)
        pki_values_add(t->registry->arena, &t->lost, (pki_values *)slot, value, ticks);
}

void pk_counter_set_on_(pk_counter *counter, double value)
{
    uint32_t id = pki_counter_id(counter);
    pki_thread *t = pki_thread_join();
    if (!t) {
        pki_registry_refuse_point();
        return;
    }
    if (id == 0 || !isfinite(value)) {
        pki_bump(&t->points_dropped, 1);
        return;
    }
    pki_record r = {pki_ticks(t->monotonic), 0, PKI_WHAT(id, PKI_RECORD_COUNTER, 0), 0};
    memcpy(&r.value, &value, sizeof value);
    if (!pki_push_point(t, &r, 1))
        lose(t, id, value, r.start);
}

void pki_values_merge(pki_arena *arena, pki_table *table, pki_values *to, const pki_values *from)
{
    for (unsigned i = 0; i < PKI_VALUE_BANKS; i++)
        pki_table_merge_slot(arena, table, &to->banks[i], &from->banks[i]);
    to->sum += from->sum;
    to->squares += from->squares;
    to->min = fmin(to->min, from->min);
    to->max = fmax(to->max, from->max);
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
    uint64_t count = pki_load(&v->banks[0].count);
    if (!count)
        return;
    stats->min = stats->count ? fmin(stats->min, load_double(&v->min)) : load_double(&v->min);
    stats->max = stats->count ? fmax(stats->max, load_double(&v->max)) : load_double(&v->max);
    stats->count += count;
    stats->sum += load_double(&v->sum);
    stats->squares += load_double(&v->squares);
    if (pki_load(&v->last_ticks) >= stats->last_ticks) {
        stats->last = load_double(&v->last);
        stats->last_ticks = pki_load(&v->last_ticks);
    }
    add_buckets(stats, v);
}

double pki_value_stats_quantile(const pki_value_stats *stats, double q)
{
    uint64_t seen = 0, rank = pki_rank(q, stats->count);
    if (rank <= 1 || rank >= stats->count)
        return rank <= 1 ? stats->min : stats->max;
    for (uint32_t bank = 0; bank < PKI_VALUE_BANKS; bank++)
        for (uint32_t b = 0; b < PK_STATS_BUCKETS; b++) {
            /* Below zero the values fall as the buckets inside an octave rise. */
            int octave = (int)(bank * PKI_CHUNKS + b / PKI_CHUNK_BUCKETS);
            uint32_t i = octave < ZERO_OCTAVE ? b ^ (PKI_CHUNK_BUCKETS - 1) : b;
            seen += stats->buckets[bank][i];
            if (seen >= rank)
                return fmin(fmax(middle_of(bank, i), stats->min), stats->max);
        }
    return stats->max;
}
