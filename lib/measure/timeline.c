#include "measure/timeline.h"

#include "base/compiler.h"

#include <math.h>
#include <stdlib.h>

typedef struct part {
    uint64_t first, samples; /* start of the first one */
    double min, max, sum;
} part;

static void join(void *row, const void *next)
{
    part *into = row;
    const part *from = next;
    if (from->samples == 0)
        return;
    if (into->samples == 0) {
        *into = *from;
        return;
    }
    into->first = PKI_MIN(into->first, from->first);
    into->min = PKI_MIN(into->min, from->min);
    into->max = PKI_MAX(into->max, from->max);
    into->sum += from->sum;
    into->samples += from->samples;
}

/* Parts of a microsecond, at first. */
static const pki_series_kind parts = {.row_bytes = sizeof(part),
                                      .first_room = 16,
                                      .most = PKI_TIMELINE_MOST,
                                      .first_stride = 1024,
                                      .join = join};

bool pki_timeline_reserve(pki_timeline *t)
{
    return pki_series_reserve(&t->parts, &parts);
}

bool pki_timeline_add(pki_timeline *t, uint64_t ns, double value)
{
    part *at = isfinite(value) ? pki_series_at(&t->parts, &parts, ns) : NULL;
    if (at)
        join(at, &(part){.first = ns, .samples = 1, .min = value, .max = value, .sum = value});
    return at != NULL;
}

bool pki_timeline_fill(const pki_timeline *t, pki_counter_row *row)
{
    const part *rows = t->parts.rows;
    size_t count = 0;
    for (size_t i = 0; i < t->parts.used; i++)
        count += rows[i].samples > 0;
    if (count == 0)
        return true;
    row->points = calloc(count, sizeof *row->points);
    if (!row->points)
        return false;
    for (const part *p = rows; p < rows + t->parts.used; p++)
        if (p->samples)
            row->points[row->point_count++] =
                (pki_counter_point){.start = p->first,
                                    .samples = p->samples,
                                    .min = p->min,
                                    .mean = p->sum / (double)p->samples,
                                    .max = p->max};
    return true;
}
