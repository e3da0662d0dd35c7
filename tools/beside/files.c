#include "beside/files.h"

#include "base/compare.h"
#include "base/compiler.h"
#include "beside/beside.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

/* ns, between a reading and the end of its step: what corrections of the clock leave. */
#define NEAR 1000u
#define VALUE_MOST 0x1p62

/* What a step has done more than usual ones is said of it from here on. */
#define BYTES_TELLING 1e6
#define BYTES_RATIO 1.5
#define CALLS_TELLING 1000
#define CALLS_RATIO 2

enum { CALLS = 4, STEPS = 5 };
static const char *const names[FILES_COUNTERS] = {
    "io.read", "io.written", "io.device_read", "io.device_written", "io.operations", "io.steps"};

/* The step that ends there; NULL: none does, or it is not wanted. */
static const step_seen *ended_at(const slices *s, uint64_t at)
{
    size_t low = 0, high = s->step_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->steps[middle].end > at + NEAR)
            high = middle;
        else
            low = middle + 1;
    }
    const step_seen *last = low ? &s->steps[low - 1] : NULL;
    return last && last->wanted && last->end + NEAR >= at ? last : NULL;
}

static void add(slices *s, const files_reading *r)
{
    const step_seen *step = ended_at(s, r->at);
    if (!step || r->values[STEPS] < 1 || r->values[STEPS] > (double)step->index + 1)
        return;
    memory_fit(&s->readings, &s->reading_room, s->reading_count + 1, sizeof *s->readings);
    s->readings[s->reading_count] = *r;
    s->readings[s->reading_count++].step = step->index;
}

void files_add(slices *s, const event *e)
{
    object_cursor at = {0};
    const char *unit;
    double value;
    int which = 0;
    while (which < FILES_COUNTERS && strcmp(e->name, names[which]) != 0)
        which++;
    if (which == FILES_COUNTERS || !event_next_sample(e, &at, &unit, &value) || value < 0 ||
        value > VALUE_MOST)
        return;
    if (which == 0 || s->reading.at != e->start)
        s->reading = (files_reading){.at = e->start};
    s->reading.values[which] = value;
    s->reading.has |= 1u << which;
    if (which == STEPS && s->reading.has == (1u << FILES_COUNTERS) - 1)
        add(s, &s->reading);
}

static bool has(const files_reading *r, uint64_t step)
{
    return step <= r->step && (double)(r->step - step) < r->values[STEPS];
}

/* Of one step of those that the step's own reading does not have; false: there is none. */
static bool usual_of(const slices *s, const files_reading *own, int which, double *usual)
{
    double all[BESIDE_USUAL_MOST];
    size_t n = 0;
    for (size_t i = 0; i < s->reading_count && n < PKI_COUNT_OF(all); i++)
        if (!has(&s->readings[i], own->step) && !has(own, s->readings[i].step))
            all[n++] = s->readings[i].values[which] / s->readings[i].values[STEPS];
    if (n)
        qsort(all, n, sizeof *all, pki_compare_double);
    *usual = n ? (all[(n - 1) / 2] + all[n / 2]) / 2 : 0;
    return n > 0;
}

static bool is_notable(const pki_io_beside *r, bool calls)
{
    double value = (double)r->value, usual = r->usual * (double)r->steps;
    return value - usual >= (calls ? CALLS_TELLING : BYTES_TELLING) &&
           value >= usual * (calls ? CALLS_RATIO : BYTES_RATIO);
}

void files_fill(const slices *s, pki_beside *out)
{
    const files_reading *own = NULL;
    double usual;
    for (size_t i = 0; i < s->reading_count && !own; i++)
        own = s->readings[i].step == out->step ? &s->readings[i] : NULL;
    if (!own || !usual_of(s, own, STEPS, &usual))
        return;
    out->io = memory_zeroed(STEPS, sizeof *out->io);
    for (int i = 0; i < STEPS; i++) {
        pki_io_beside *r = &out->io[out->io_count++];
        usual_of(s, own, i, &usual);
        *r = (pki_io_beside){.name = memory_copy(names[i]),
                             .value = (uint64_t)own->values[i],
                             .steps = (uint64_t)own->values[STEPS],
                             .usual = usual};
        r->telling = is_notable(r, i == CALLS);
    }
}
