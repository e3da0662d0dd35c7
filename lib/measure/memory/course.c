#include "measure/memory/course.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

void pki_memory_course_finish(pki_memory_course *c)
{
    for (size_t i = 0; i < c->region_room; i++)
        pki_growth_finish(&c->regions[i]);
    free(c->regions);
    pki_growth_finish(&c->growth);
    pki_series_finish(&c->line.parts);
    pki_tally_finish(&c->resident);
    pki_tally_finish(&c->minor);
    pki_tally_finish(&c->major);
    *c = (pki_memory_course){0};
}

/* Two looks of which the later one has twice the steps, at least, of the earlier: whenever the run
 * ends, one of them lies in its first half, and not before a quarter. */
static bool is_early(pki_memory_course *c, const pki_memory_look *look)
{
    if (c->looks && look->steps < 2 * PKI_MAX(c->next_early.steps, 4u))
        return false;
    c->early = c->next_early;
    c->next_early = *look;
    return true;
}

static void add_steps(pki_memory_course *c, const pki_memory_look *look)
{
    uint64_t steps = look->steps - c->last.steps;
    pki_tally_add(&c->resident, (double)look->resident, steps);
    pki_tally_add(&c->minor, (double)(look->minor - c->last.minor) / (double)steps, steps);
    pki_tally_add(&c->major, (double)(look->major - c->last.major) / (double)steps, steps);
    pki_growth_see(&c->growth, look->steps - 1, look->private_bytes);
}

bool pki_memory_course_see(pki_memory_course *c, const pki_memory_look *look)
{
    bool early = is_early(c, look);
    (void)pki_timeline_add(&c->line, look->ns, (double)look->resident); /* or it is not in it */
    c->end = *look;
    c->most_private = PKI_MAX(c->most_private, look->private_bytes);
    if (c->looks++ == 0)
        c->first = *look;
    else if (look->steps > c->last.steps)
        add_steps(c, look);
    else
        return early; /* what has been found since the last step is the next one's */
    c->last = *look;
    return early;
}

void pki_memory_course_see_region(pki_memory_course *c, uint32_t region, uint64_t bytes)
{
    if (region >= PKI_MEMORY_REGIONS || c->last.steps == 0)
        return;
    if (region >= c->region_room) {
        size_t room = PKI_MIN(PKI_MAX(2u * region, 64u), PKI_MEMORY_REGIONS);
        pki_growth_series *more = realloc(c->regions, room * sizeof *more);
        if (!more)
            return;
        memset(more + c->region_room, 0, (room - c->region_room) * sizeof *more);
        c->regions = more;
        c->region_room = room;
    }
    pki_growth_see(&c->regions[region], c->last.steps - 1, bytes);
}

static double each(uint64_t now, uint64_t before, uint64_t steps)
{
    return steps ? (double)(now - before) / (double)steps : 0;
}

static bool fill_series(const pki_memory_course *c, pki_memory_summary *out)
{
    pki_counter_row row = {0};
    bool filled = pki_timeline_fill(&c->line, &row);
    out->series = row.points;
    out->series_count = row.point_count;
    return filled;
}

bool pki_memory_course_fill(const pki_memory_course *c, pki_memory_summary *out)
{
    uint64_t steady = c->last.steps - c->early.steps;
    out->looks = c->looks;
    out->resident = c->end.resident;
    out->most_private = c->most_private;
    out->minor_faults = c->end.minor - c->first.minor;
    out->major_faults = c->end.major - c->first.major;
    out->step_resident = pki_tally_dist(&c->resident);
    out->step_minor = pki_tally_dist(&c->minor);
    out->step_major = pki_tally_dist(&c->major);
    out->growth = pki_growth_of(&c->growth, PKI_MEMORY_RESIDENT_LEAST);
    out->steady_steps = c->early.steps ? steady : 0;
    out->steady_minor = each(c->last.minor, c->early.minor, out->steady_steps);
    out->steady_major = each(c->last.major, c->early.major, out->steady_steps);
    return fill_series(c, out);
}

pki_memory_sum pki_memory_course_sum(const pki_memory_course *c)
{
    return (pki_memory_sum){.looks = c->looks,
                            .resident = c->end.resident,
                            .most_resident = c->end.resident,
                            .most_private = c->most_private,
                            .minor_faults = c->end.minor - c->first.minor,
                            .major_faults = c->end.major - c->first.major};
}

pki_growth pki_memory_course_region(const pki_memory_course *c, uint32_t region)
{
    if (region >= c->region_room)
        return (pki_growth){0};
    return pki_growth_of(&c->regions[region], PKI_MEMORY_GROWTH_LEAST);
}

int pki_memory_by_peak(const void *a, const void *b)
{
    const pki_memory_region *x = a, *y = b;
    if (x->at_peak != y->at_peak)
        return x->at_peak < y->at_peak ? 1 : -1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return strcmp(x->name, y->name);
}
