#include "measure/memory/growth.h"

#include "stats/series.h"

typedef struct floor {
    uint64_t seen, bytes, step; /* the step whose bytes they are */
} floor;

static void join(void *row, const void *next)
{
    floor *a = row;
    const floor *b = next;
    uint64_t seen = a->seen + b->seen;
    if (b->seen && (!a->seen || b->bytes < a->bytes))
        *a = *b;
    a->seen = seen;
}

static const pki_series_kind kind = {.row_bytes = sizeof(floor),
                                     .first_room = 16,
                                     .most = PKI_GROWTH_ROWS,
                                     .first_stride = 1,
                                     .join = join};

void pki_growth_finish(pki_growth_series *s)
{
    pki_series_finish(&s->floors);
}

void pki_growth_see(pki_growth_series *s, uint64_t step, uint64_t bytes)
{
    floor *row = pki_series_at(&s->floors, &kind, step);
    if (row)
        join(row, &(floor){1, bytes, step});
    s->last = step;
}

/* The rows with something seen, of the last three quarters of the steps; the last row may be of a
 * few steps only, which takes nothing from a floor. */
static size_t judged(const pki_growth_series *s, double *steps, double *values)
{
    const floor *rows = s->floors.rows;
    size_t used = s->floors.used, count = 0;
    for (size_t i = used / 4; i < used; i++) {
        if (!rows[i].seen)
            continue;
        steps[count] = (double)rows[i].step;
        values[count++] = (double)rows[i].bytes;
    }
    return count;
}

pki_growth pki_growth_of(const pki_growth_series *s, double least)
{
    double steps[PKI_GROWTH_ROWS], values[PKI_GROWTH_ROWS];
    pki_trend trend;
    size_t count = judged(s, steps, values);
    double span = count ? steps[count - 1] - steps[0] : 0;
    pki_growth g = {.steps = (uint64_t)span + (count > 0)};
    if (count < PKI_GROWTH_LEAST_ROWS ||
        !pki_trend_rises(steps, values, count, PKI_GROWTH_Z, &trend))
        return g;
    g.z = trend.z;
    double grown = trend.slope * span;
    if (trend.z >= PKI_GROWTH_Z && grown >= least && trend.fall <= grown * PKI_GROWTH_FALL &&
        trend.least >= trend.slope * PKI_GROWTH_THIRD)
        g.per_step = trend.slope;
    return g;
}
