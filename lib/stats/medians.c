#include "stats/medians.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

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
