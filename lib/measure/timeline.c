#include "measure/timeline.h"

#include "base/compiler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 16

void pki_timeline_finish(pki_timeline *timeline)
{
    free(timeline->parts);
    *timeline = (pki_timeline){0};
}

static void join(pki_timeline_part *into, const pki_timeline_part *from)
{
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

static void halve(pki_timeline *t)
{
    for (size_t i = 0; i < t->room / 2; i++) {
        pki_timeline_part both = t->parts[2 * i];
        join(&both, &t->parts[2 * i + 1]);
        t->parts[i] = both;
    }
    memset(t->parts + t->room / 2, 0, (t->room - t->room / 2) * sizeof *t->parts);
    t->shift++;
}

static bool grow(pki_timeline *t)
{
    size_t room = t->room ? 2 * t->room : ROOM_FIRST;
    pki_timeline_part *parts = realloc(t->parts, room * sizeof *parts);
    if (!parts)
        return false;
    memset(parts + t->room, 0, (room - t->room) * sizeof *parts);
    t->parts = parts;
    t->room = room;
    return true;
}

bool pki_timeline_add(pki_timeline *t, uint64_t ns, double value)
{
    if (!isfinite(value))
        return false;
    if (t->room == 0)
        t->shift = PKI_TIMELINE_SHIFT;
    while (ns >> t->shift >= t->room) {
        if (t->room < PKI_TIMELINE_MOST && grow(t))
            continue;
        if (t->room == 0)
            return false;
        halve(t); /* full, or no memory to be had */
    }
    join(&t->parts[ns >> t->shift],
         &(pki_timeline_part){.first = ns, .samples = 1, .min = value, .max = value, .sum = value});
    return true;
}

bool pki_timeline_fill(const pki_timeline *t, pki_counter_row *row)
{
    size_t count = 0;
    for (size_t i = 0; i < t->room; i++)
        count += t->parts[i].samples > 0;
    if (count == 0)
        return true;
    row->points = calloc(count, sizeof *row->points);
    if (!row->points)
        return false;
    for (size_t i = 0; i < t->room; i++) {
        const pki_timeline_part *p = &t->parts[i];
        if (p->samples)
            row->points[row->point_count++] = (pki_counter_point){.start = p->first,
                                                                  .samples = p->samples,
                                                                  .min = p->min,
                                                                  .mean = p->sum / (double)p->samples,
                                                                  .max = p->max};
    }
    return true;
}
