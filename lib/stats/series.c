#include "stats/series.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/compare.h"
#include "base/compiler.h"
#include "stats/buckets.h"

/* ---- the shape of a distribution, in few buckets ---- */

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

/* ---- the k-th smallest of many, without putting all of them in order ---- */

static void swap(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Hoare's selection, the pivot the median of three: sorted or equal samples cost no more. */
void pki_select(double *samples, size_t n, size_t wanted)
{
    size_t first = 0, last = n - 1;
    while (first < last) {
        size_t middle = first + (last - first) / 2, i = first, j = last;
        if (samples[middle] < samples[first])
            swap(&samples[middle], &samples[first]);
        if (samples[last] < samples[middle])
            swap(&samples[last], &samples[middle]);
        if (samples[middle] < samples[first])
            swap(&samples[middle], &samples[first]);
        double pivot = samples[middle];
        while (i <= j) {
            while (samples[i] < pivot)
                i++;
            while (pivot < samples[j])
                j--;
            if (i > j)
                break;
            swap(&samples[i], &samples[j]);
            i++;
            if (j == 0)
                break;
            j--;
        }
        if (wanted <= j)
            last = j;
        else if (wanted >= i)
            first = i;
        else
            return;
    }
}

/* ---- with weights ---- */

typedef struct parts {
    size_t equal, larger; /* where they begin */
    double below, same;   /* weights of those before `equal`, and of those from there to `larger` */
} parts;

static void swap_weighted(pki_weighted *a, pki_weighted *b)
{
    pki_weighted kept = *a;
    *a = *b;
    *b = kept;
}

static double middle_of(double a, double b, double c)
{
    return fmax(fmin(a, b), fmin(fmax(a, b), c));
}

/* Those from first to last, of which there is one at least, by the median of three of them. */
static parts part(pki_weighted *all, size_t first, size_t last)
{
    double pivot =
        middle_of(all[first].value, all[first + (last - first) / 2].value, all[last - 1].value);
    parts out = {.equal = first, .larger = last};
    for (size_t i = first; i < out.larger;) {
        if (all[i].value < pivot) {
            out.below += all[i].weight;
            swap_weighted(&all[i++], &all[out.equal++]);
        } else if (pivot < all[i].value) {
            swap_weighted(&all[i], &all[--out.larger]);
        } else {
            out.same += all[i++].weight;
        }
    }
    return out;
}

static double least_from(const pki_weighted *all, size_t first, size_t n, double otherwise)
{
    double least = first < n ? all[first].value : otherwise;
    for (size_t i = first; i < n; i++)
        least = fmin(least, all[i].value);
    return least;
}

/* The half is where the part before said that it is, even if rounding says otherwise (larger ==
 * last). */
double pki_select_weighted_median(pki_weighted *all, size_t n)
{
    double half = 0, before = 0;
    for (size_t i = 0; i < n; i++)
        half += all[i].weight / 2;
    for (size_t first = 0, last = n; first < last;) {
        parts p = part(all, first, last);
        double value = all[p.equal].value, up_to = before + p.below + p.same;
        if (before + p.below >= half * (1 - 1e-9) && p.equal > first) {
            last = p.equal;
        } else if (up_to >= half * (1 - 1e-9) || p.larger == last) {
            bool between = up_to <= half * (1 + 1e-9);
            return between ? (value + least_from(all, p.larger, n, value)) / 2 : value;
        } else {
            before = up_to;
            first = p.larger;
        }
    }
    return NAN;
}

/* ---- the median of a growing number of steps, in little room ---- */

typedef struct weighted {
    uint64_t value, weight;
} weighted;

static int by_value(const void *a, const void *b)
{
    const weighted *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

static void put_in_order(uint64_t *values, size_t count, uint64_t value)
{
    size_t place = count;
    for (; place && values[place - 1] > value; place--)
        values[place] = values[place - 1];
    values[place] = value;
}

/* As good as thrown, and the same for the same values. */
static size_t coin(const uint64_t *values, size_t count)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ values[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return hash >> 63;
}

pki_some pki_some_join(const pki_some *a, const pki_some *b, uint64_t steps)
{
    size_t each = (size_t)PKI_MIN(steps, (uint64_t)PKI_SOME);
    uint64_t all[2 * PKI_SOME];
    pki_some joined = {{0}};
    for (size_t i = 0; i < 2 * each; i++)
        put_in_order(all, i, i < each ? a->of[i] : b->of[i - each]);
    size_t stride = 2 * each > PKI_SOME ? 2 : 1;
    size_t second = stride == 2 ? coin(all, 2 * each) : 0;
    for (size_t i = 0; i < 2 * each / stride; i++)
        joined.of[i] = all[stride * i + second];
    return joined;
}

/* The mean of the two in the middle, without overflow. */
static uint64_t between(uint64_t low, uint64_t high)
{
    return low + (high - low) / 2;
}

uint64_t pki_some_median(const pki_some *some, uint64_t steps)
{
    size_t count = (size_t)PKI_MIN(steps, (uint64_t)PKI_SOME);
    if (count == 0)
        return 0;
    return between(some->of[(count - 1) / 2], some->of[count / 2]);
}

static void push_eight(pki_medians *m)
{
    pki_some eight;
    size_t level = 0;
    memcpy(eight.of, m->loose, sizeof eight.of);
    m->loose_count = 0;
    for (; level + 1 < PKI_SOME_LEVELS && (m->full >> level & 1); level++) {
        eight = pki_some_join(&m->levels[level], &eight, PKI_SOME);
        m->full &= ~(UINT64_C(1) << level);
    }
    m->levels[level] = eight;
    m->full |= UINT64_C(1) << level;
}

void pki_medians_add(pki_medians *m, uint64_t value)
{
    put_in_order(m->loose, m->loose_count++, value);
    if (m->loose_count == PKI_SOME)
        push_eight(m);
}

pki_some pki_medians_some(const pki_medians *m, uint64_t steps)
{
    pki_some some = {{0}};
    if (m->full)
        return m->levels[PKI_MIN(63 - __builtin_clzll(m->full), PKI_SOME_LEVELS - 1)];
    memcpy(some.of, m->loose, (size_t)PKI_MIN(steps, (uint64_t)PKI_SOME) * sizeof *some.of);
    return some;
}

uint64_t pki_medians_median(const pki_medians *m)
{
    weighted all[PKI_SOME * (PKI_SOME_LEVELS + 1)];
    size_t count = 0;
    uint64_t total = 0, seen = 0, low = 0;
    for (size_t i = 0; i < m->loose_count; i++)
        all[count++] = (weighted){m->loose[i], 1};
    for (size_t level = 0; level < PKI_SOME_LEVELS; level++)
        for (size_t i = 0; (m->full >> level & 1) && i < PKI_SOME; i++)
            all[count++] = (weighted){m->levels[level].of[i], UINT64_C(1) << level};
    qsort(all, count, sizeof *all, by_value);
    for (size_t i = 0; i < count; i++)
        total += all[i].weight;
    for (size_t i = 0; i < count; i++) {
        if (seen < (total + 1) / 2)
            low = all[i].value;
        seen += all[i].weight;
        if (seen > total / 2)
            return between(low, all[i].value);
    }
    return 0;
}

/* ---- how something went over the run, in bounded room: it grows, then halves ---- */

void pki_series_finish(pki_series *series)
{
    free(series->rows);
    *series = (pki_series){0};
}

static char *row_at(const pki_series *series, const pki_series_kind *kind, size_t i)
{
    return (char *)series->rows + i * kind->row_bytes;
}

static bool grow(pki_series *s, const pki_series_kind *kind)
{
    size_t room = s->room ? 2 * s->room : kind->first_room;
    void *rows = room <= kind->most ? realloc(s->rows, room * kind->row_bytes) : NULL;
    if (!rows)
        return false;
    s->rows = rows;
    memset(row_at(s, kind, s->room), 0, (room - s->room) * kind->row_bytes);
    s->room = room;
    return true;
}

bool pki_series_reserve(pki_series *s, const pki_series_kind *kind)
{
    while (s->room < kind->most)
        if (!grow(s, kind))
            return false;
    return true;
}

static void halve(pki_series *s, const pki_series_kind *kind)
{
    size_t left = s->room / 2;
    for (size_t i = 0; i < left; i++) {
        char *both = row_at(s, kind, 2 * i);
        kind->join(both, row_at(s, kind, 2 * i + 1));
        memmove(row_at(s, kind, i), both, kind->row_bytes);
    }
    memset(row_at(s, kind, left), 0, (s->room - left) * kind->row_bytes);
    s->used = (s->used + 1) / 2;
    s->stride *= 2;
}

void *pki_series_at(pki_series *s, const pki_series_kind *kind, uint64_t position)
{
    s->stride = PKI_MAX(s->stride, kind->first_stride);
    while (position / s->stride >= s->room) {
        if (grow(s, kind))
            continue;
        if (s->room == 0)
            return NULL;
        halve(s, kind); /* full, or no memory to be had */
    }
    size_t i = (size_t)(position / s->stride);
    s->used = PKI_MAX(s->used, i + 1);
    return row_at(s, kind, i);
}

void *pki_series_next(pki_series *s, const pki_series_kind *kind)
{
    void *row = pki_series_at(s, kind, s->count);
    s->count += row != NULL;
    return row;
}

/* ---- does a series rise throughout, noise and single jumps aside? ---- */

#define PKI_TREND_MOST 256

/* What ties take off the variance. */
static double tied(const double *values, size_t n)
{
    double sorted[PKI_TREND_MOST], off = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof *sorted, pki_compare_double);
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && !(sorted[next] > sorted[i]); next++)
            ;
        double t = (double)(next - i);
        off += t * (t - 1) * (2 * t + 5);
    }
    return off;
}

static double kendall_z(const double *values, size_t n)
{
    double s = 0, count = (double)n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            s += (values[j] > values[i]) - (values[j] < values[i]);
    double variance = (count * (count - 1) * (2 * count + 5) - tied(values, n)) / 18;
    return s > 0 && variance > 0 ? (s - 1) / sqrt(variance) : 0;
}

static double slope_of(const double *at, const double *values, size_t n, double *slopes)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            slopes[count++] = (values[j] - values[i]) / (at[j] - at[i]);
    pki_select(slopes, count, count / 2);
    return slopes[count / 2];
}

/* Ranks around 0, of what is left without the slope; equal values have a rank in common. */
static void rank_rest(const double *at, const double *values, size_t n, double slope, double *ranks)
{
    for (size_t i = 0; i < n; i++) {
        double rank = 0, rest = values[i] - slope * at[i];
        for (size_t j = 0; j < n; j++) {
            double other = values[j] - slope * at[j];
            rank += (rest > other) - (rest < other);
        }
        ranks[i] = rank;
    }
}

static double product(const double *ranks, size_t n, size_t lag)
{
    double sum = 0;
    for (size_t i = 0; i + lag < n; i++)
        sum += ranks[i] * ranks[i + lag];
    return sum;
}

/* How much larger the variance is for the dependence of neighbours; not smaller. */
static double enlarged(const double *at, const double *values, size_t n, double slope)
{
    double ranks[PKI_TREND_MOST], count = (double)n, sum = 0;
    rank_rest(at, values, n, slope, ranks);
    double all = product(ranks, n, 0);
    for (size_t lag = 1; lag + 2 < n && all > 0; lag++) {
        double r = product(ranks, n, lag) / all, left = (double)(n - lag);
        if (fabs(r) > 1.96 / sqrt(count))
            sum += left * (left - 1) * (left - 2) * r;
    }
    double factor = 1 + 2 * sum / (count * (count - 1) * (count - 2));
    return factor > 1 ? factor : 1;
}

/* Of floors of three: a single value that is high is no height to fall from. */
static double fall_of(const double *values, size_t n)
{
    double highest = values[0], fall = 0;
    for (size_t i = 0; i + 2 < n; i++) {
        double floor = PKI_MIN(values[i], PKI_MIN(values[i + 1], values[i + 2]));
        highest = i ? PKI_MAX(highest, floor) : floor;
        fall = PKI_MAX(fall, highest - floor);
    }
    return fall;
}

bool pki_trend_rises(const double *at, const double *values, size_t count, double least_z,
                     pki_trend *trend)
{
    *trend = (pki_trend){0};
    if (count < 12 || count > PKI_TREND_MOST)
        return false;
    double z = kendall_z(values, count);
    double *slopes = z >= least_z ? malloc(count * (count - 1) / 2 * sizeof *slopes) : NULL;
    if (!slopes)
        return false;
    size_t third = count / 3, last = count - third;
    trend->slope = slope_of(at, values, count, slopes);
    trend->z = z / sqrt(enlarged(at, values, count, trend->slope));
    trend->least = slope_of(at, values, third, slopes);
    trend->least = PKI_MIN(trend->least, slope_of(at + third, values + third, third, slopes));
    trend->least = PKI_MIN(trend->least, slope_of(at + last, values + last, third, slopes));
    trend->fall = fall_of(values, count);
    free(slopes);
    return true;
}
