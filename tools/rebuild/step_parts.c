/* tools/rebuild/step_parts.c - what the stepping thread's time in each step went to.
 *
 * Slices arrive when they end. So when a step ends, the slices that ended in it are known; a slice
 * that straddles its end arrives later. Steps stay open for what still belongs to them until
 * REBUILD_WINDOW more have ended.
 */
#include "rebuild/state.h"

#include "base/compiler.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#define RECENT_MOST 65536

static void add_part(own *o, uint32_t region, uint64_t ns)
{
    memory_fit(&o->ns, &o->count, region + (size_t)1, sizeof *o->ns);
    o->ns[region] += ns;
}

/* How much of the part lies between start and end, if it is spread evenly. */
static uint64_t within(const own_span *part, uint64_t start, uint64_t end)
{
    uint64_t from = PKI_MAX(part->start, start), to = PKI_MIN(part->end, end);
    uint64_t length = part->end - part->start;
    if (to <= from)
        return 0;
    if (part->ns == length)
        return to - from;
    return (uint64_t)((double)part->ns * ((double)(to - from) / (double)length));
}

static void add_overlap(open_step *step, const own_span *part)
{
    uint64_t start = step->step.start;
    uint64_t ns = within(part, start, start + step->step.duration);
    if (ns)
        add_part(&step->parts, part->region, ns);
}

/* What of the part comes after this moment; ns 0 if nothing does. */
static own_span after(const own_span *part, uint64_t moment)
{
    uint64_t start = PKI_MAX(part->start, moment);
    return (own_span){start, part->end, within(part, start, part->end), part->region};
}

/* Very many slices since the last step: they will all lie in the next. */
static void fold_recent(rebuild *r)
{
    for (size_t i = 0; i < r->recent_count; i++)
        add_part(&r->folded, r->recent[i].region, r->recent[i].ns);
    r->recent_count = 0;
}

static void add_recent(rebuild *r, own_span part)
{
    if (!r->recent)
        r->recent = memory_zeroed(RECENT_MOST, sizeof *r->recent);
    if (r->recent_count == RECENT_MOST)
        fold_recent(r);
    r->recent[r->recent_count++] = part;
}

void rebuild_own(rebuild *r, own_span part)
{
    for (size_t i = 0; i < r->open_count; i++)
        add_overlap(&r->open[i], &part);
    part = after(&part, r->steps_end);
    if (part.ns)
        add_recent(r, part);
}

static void close_oldest(rebuild *r)
{
    open_step *oldest = &r->open[0];
    for (uint32_t i = 0; i < oldest->parts.count; i++)
        if (oldest->parts.ns[i])
            pki_steps_add_self(r->steps, i, rebuild_kind(r, i), oldest->parts.ns[i]);
    pki_steps_add(r->steps, &oldest->step);
    free(oldest->parts.ns);
    memmove(r->open, r->open + 1, --r->open_count * sizeof *r->open);
}

/* What was recent is in the step, as far as it overlaps with it. */
static void move_recent(rebuild *r, open_step *step, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->recent_count; i++) {
        own_span left = after(&r->recent[i], end);
        add_overlap(step, &r->recent[i]);
        if (left.ns)
            r->recent[kept++] = left;
    }
    r->recent_count = kept;
    for (uint32_t i = 0; i < r->folded.count; i++)
        if (r->folded.ns[i])
            add_part(&step->parts, i, r->folded.ns[i]);
    if (r->folded.count)
        memset(r->folded.ns, 0, r->folded.count * sizeof *r->folded.ns);
}

static const char *kind_of(const rebuild *r, const span *step)
{
    bool usual = !step->step_kind || step->step_kind == REBUILD_BETWEEN;
    return usual ? NULL : r->step_kinds.texts[step->step_kind - 1];
}

void rebuild_step(rebuild *r, const span *step)
{
    if (r->open_count == REBUILD_WINDOW)
        close_oldest(r);
    open_step *open = &r->open[r->open_count++];
    *open =
        (open_step){.step = {.index = step->flops,
                             .start = step->start,
                             .duration = step->end - step->start,
                             .items = step->bytes,
                             .work = pki_step_work_of(step->end - step->start, (double)step->model,
                                                      (double)step->hardware),
                             .kind = kind_of(r, step),
                             .between = step->step_kind == REBUILD_BETWEEN,
                             .broken_down = step->thread == r->stepper}};
    pki_device_step(r->device, &open->step);
    if (!open->step.between)
        pki_comm_figures_step(r->collectives, step->flops, step->start, step->end);
    move_recent(r, open, step->end);
    r->steps_end = PKI_MAX(r->steps_end, step->end);
}

void rebuild_close_steps(rebuild *r)
{
    while (r->open_count)
        close_oldest(r);
}

void rebuild_free_steps(rebuild *r)
{
    for (size_t i = 0; i < r->open_count; i++)
        free(r->open[i].parts.ns);
    free(r->recent);
    free(r->folded.ns);
    pki_steps_destroy(r->steps);
}
