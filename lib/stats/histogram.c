#include "stats/histogram.h"

#include "stats/buckets.h"

#include <math.h>
#include <stdlib.h>

/* Buckets by key, in order; where a key's bucket begins, and the unit of that. */
typedef struct source {
    const pki_tally *tally;
    const pk_stats *stats; /* NULL: the tally */
    size_t count;
} source;

static uint32_t key_at(const source *s, size_t i)
{
    return s->stats ? (uint32_t)i : s->tally->buckets[i].key;
}

static uint64_t count_at(const source *s, size_t i)
{
    return s->stats ? s->stats->buckets[i] : s->tally->buckets[i].count;
}

static double begin_of(const source *s, uint32_t key)
{
    double value = s->stats ? pki_bucket_begin(key) * s->stats->unit_ns : pki_key_begin(key);
    return fabs(value) >= 1000 ? round(value) : round(value * 1000) / 1000;
}

/* How many buckets it makes, if the keys' last `shift` bits are dropped. */
static size_t used(const source *s, unsigned shift)
{
    size_t count = 0;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t key = key_at(s, i) >> shift;
        if (!count_at(s, i) || key == last)
            continue;
        last = key;
        count++;
    }
    return count;
}

static void fill(const source *s, unsigned shift, pki_histogram *out)
{
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < s->count; i++) {
        uint32_t key = key_at(s, i) >> shift;
        if (!count_at(s, i))
            continue;
        if (key != last)
            out->buckets[out->count++] = (pki_histogram_bucket){
                .from = begin_of(s, key << shift), .to = begin_of(s, (key + 1) << shift)};
        out->buckets[out->count - 1].count += count_at(s, i);
        last = key;
    }
}

static bool make(const source *s, pki_histogram *out)
{
    unsigned shift = 0;
    size_t count;
    *out = (pki_histogram){0};
    while ((count = used(s, shift)) > PKI_HISTOGRAM_MOST)
        shift++;
    if (count == 0)
        return true;
    out->buckets = calloc(count, sizeof *out->buckets);
    if (!out->buckets)
        return false;
    fill(s, shift, out);
    return true;
}

void pki_histogram_finish(pki_histogram *histogram)
{
    free(histogram->buckets);
    *histogram = (pki_histogram){0};
}

bool pki_histogram_of_stats(const pk_stats *stats, pki_histogram *out)
{
    source s = {.stats = stats, .count = PK_STATS_BUCKETS};
    return make(&s, out);
}

bool pki_histogram_of_tally(const pki_tally *tally, pki_histogram *out)
{
    source s = {.tally = tally, .count = tally->used};
    return make(&s, out);
}
