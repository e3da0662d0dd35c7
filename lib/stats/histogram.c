#include "stats/histogram.h"

#include "stats/buckets.h"

#include <math.h>
#include <stdlib.h>

/* Buckets by key, in order, and where a key's bucket begins. */
typedef struct source {
    const pki_tally *tally;
    double (*begin)(uint32_t key);
} source;

static double begin_of(const source *s, uint32_t key)
{
    double value = s->begin(key);
    return fabs(value) >= 1000 ? round(value) : round(value * 1000) / 1000;
}

/* How many buckets it makes, if the keys' last `shift` bits are dropped. */
static size_t used(const pki_tally *tally, unsigned shift)
{
    size_t count = 0;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < tally->used; i++) {
        uint32_t key = tally->buckets[i].key >> shift;
        count += tally->buckets[i].count && key != last;
        last = tally->buckets[i].count ? key : last;
    }
    return count;
}

static void fill(const source *s, unsigned shift, pki_histogram *out)
{
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < s->tally->used; i++) {
        const pki_tally_bucket *b = &s->tally->buckets[i];
        uint32_t key = b->key >> shift;
        if (!b->count)
            continue;
        if (key != last)
            out->buckets[out->count++] = (pki_histogram_bucket){
                .from = begin_of(s, key << shift), .to = begin_of(s, (key + 1) << shift)};
        out->buckets[out->count - 1].count += b->count;
        last = key;
    }
}

static bool make(const source *s, pki_histogram *out)
{
    unsigned shift = 0;
    size_t count;
    *out = (pki_histogram){0};
    while ((count = used(s->tally, shift)) > PKI_HISTOGRAM_MOST)
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

bool pki_histogram_of_times(const pki_tally *times, pki_histogram *out)
{
    source s = {times, pki_bucket_begin};
    return make(&s, out);
}

bool pki_histogram_of_tally(const pki_tally *tally, pki_histogram *out)
{
    source s = {tally, pki_key_begin};
    return make(&s, out);
}
