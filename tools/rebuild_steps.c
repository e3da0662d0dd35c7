/* tools/rebuild_steps.c - what the stepping thread's time in each step went to.
 *
 * Slices arrive when they end. So when a step ends, the slices that ended in it are known; a slice
 * that straddles its end arrives later. Steps stay open for what still belongs to them until
 * REBUILD_WINDOW more have ended.
 */
#include "rebuild_state.h"

#include "base/compiler.h"

#include <stdlib.h>
#include <string.h>

#define RECENT_MOST 65536

static bool add_part(own *o, uint32_t region, uint64_t ns)
{
    if (!rebuild_grow(&o->ns, &o->count, region, sizeof *o->ns))
        return false;
    o->ns[region] += ns;
    return true;
}

static uint64_t overlap(uint64_t a_start, uint64_t a_end, uint64_t b_start, uint64_t b_end)
{
    uint64_t start = PKI_MAX(a_start, b_start), end = PKI_MIN(a_end, b_end);
    return end > start ? end - start : 0;
}

static bool add_overlap(open_step *step, uint32_t region, uint64_t start, uint64_t end)
{
    uint64_t from = step->step.start, to = from + step->step.duration;
    uint64_t ns = overlap(start, end, from, to);
    return ns == 0 || add_part(&step->parts, region, ns);
}

/* Very many slices since the last step: they will all lie in the next. */
static bool fold_recent(rebuild *r)
{
    for (size_t i = 0; i < r->recent_count; i++)
        if (!add_part(&r->folded, r->recent[i].region, r->recent[i].end - r->recent[i].start))
            return false;
    r->recent_count = 0;
    return true;
}

static bool keep_recent(rebuild *r, own_span piece)
{
    if (!r->recent)
        r->recent = malloc(RECENT_MOST * sizeof *r->recent);
    if (!r->recent || (r->recent_count == RECENT_MOST && !fold_recent(r)))
        return false;
    r->recent[r->recent_count++] = piece;
    return true;
}

bool rebuild_own(rebuild *r, uint32_t region, uint64_t start, uint64_t end)
{
    if (end <= start)
        return true;
    for (size_t i = 0; i < r->open_count; i++)
        if (!add_overlap(&r->open[i], region, start, end))
            return false;
    start = PKI_MAX(start, r->steps_end);
    return end <= start || keep_recent(r, (own_span){start, end, region});
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
static bool take_recent(rebuild *r, open_step *step, uint64_t end)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->recent_count; i++) {
        own_span s = r->recent[i];
        if (!add_overlap(step, s.region, s.start, s.end))
            return false;
        s.start = PKI_MAX(s.start, end);
        if (s.start < s.end)
            r->recent[kept++] = s;
    }
    r->recent_count = kept;
    for (uint32_t i = 0; i < r->folded.count; i++)
        if (r->folded.ns[i] && !add_part(&step->parts, i, r->folded.ns[i]))
            return false;
    if (r->folded.count)
        memset(r->folded.ns, 0, r->folded.count * sizeof *r->folded.ns);
    return true;
}

bool rebuild_step(rebuild *r, const span *step)
{
    if (r->open_count == REBUILD_WINDOW)
        close_oldest(r);
    open_step *open = &r->open[r->open_count++];
    *open = (open_step){.step = {.index = step->flops,
                                 .start = step->start,
                                 .duration = step->end - step->start,
                                 .items = step->bytes,
                                 .broken_down = step->thread == r->stepper}};
    bool taken = take_recent(r, open, step->end);
    r->steps_end = PKI_MAX(r->steps_end, step->end);
    return taken;
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
