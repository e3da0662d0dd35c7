/* tools/beside/choose.c - which step, and beside which. */
#include "base/compare.h"
#include "beside/beside.h"

#include "memory.h"

#include <stdlib.h>

static uint64_t duration_of(const step_seen *s)
{
    return s->end - s->start;
}

static step_seen *find_step(slices *s, uint64_t index)
{
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].index == index)
            return &s->steps[i];
    return NULL;
}

/* Of a run the first steps are slow for reasons of their own. */
static step_seen *longest(slices *s, uint64_t warmup)
{
    step_seen *found = NULL;
    uint64_t first = s->step_count ? s->steps[0].index : 0;
    for (size_t i = 0; i < s->step_count; i++) {
        step_seen *at = &s->steps[i];
        bool counts = at->kind == 0 && at->index - first >= warmup;
        if (counts && (!found || duration_of(at) > duration_of(found)))
            found = at;
    }
    return found;
}

static step_seen *the_step(slices *s, const pki_summary *in)
{
    const pki_capture *c = &in->capture;
    step_seen *found = c->captured && c->slow ? find_step(s, c->slow_step) : NULL;
    if (!found)
        found = longest(s, c->captured ? 0 : in->steps.warmup);
    return found || !s->step_count ? found : &s->steps[s->step_count - 1];
}

/* ---- the usual ones ---- */

static double median_of(uint64_t *all, size_t count)
{
    if (count == 0)
        return 0;
    qsort(all, count, sizeof *all, pki_compare_u64);
    return ((double)all[(count - 1) / 2] + (double)all[count / 2]) / 2;
}

static bool is_like(const step_seen *a, const step_seen *b, bool same_kind)
{
    return a != b && (!same_kind || a->kind == b->kind);
}

/* The median of the steps like it: a capture was given it, of more steps than it has. */
static double like_it(const slices *s, const step_seen *step, const pki_capture *c, bool same_kind)
{
    if (c->captured && c->median && same_kind && step->index == c->slow_step)
        return (double)c->median;
    uint64_t *took = memory_zeroed(s->step_count, sizeof *took);
    size_t count = 0;
    for (size_t i = 0; i < s->step_count; i++)
        if (is_like(&s->steps[i], step, same_kind))
            took[count++] = duration_of(&s->steps[i]);
    double median = median_of(took, count);
    free(took);
    return median;
}

/* Outwards from the step, so those next to it come first. */
static size_t mark_usual(slices *s, const step_seen *step, double median, bool same_kind)
{
    size_t at = (size_t)(step - s->steps), count = 0;
    double below = (median + (double)duration_of(step)) / 2;
    for (size_t far = 1; far <= s->step_count && count < BESIDE_USUAL_MOST; far++)
        for (int side = 0; side < 2; side++) {
            size_t i = side ? at + far : at - far;
            if ((side ? i >= s->step_count : far > at) || count == BESIDE_USUAL_MOST ||
                !is_like(&s->steps[i], step, same_kind) ||
                (double)duration_of(&s->steps[i]) > below)
                continue;
            s->steps[i].wanted = true;
            count++;
        }
    return count;
}

static void describe(const slices *s, const step_seen *step, pki_beside *out)
{
    uint64_t took[BESIDE_USUAL_MOST];
    size_t count = 0;
    double nearest = 0;
    for (size_t i = 0; i < s->step_count; i++)
        if (s->steps[i].wanted && &s->steps[i] != step)
            took[count++] = duration_of(&s->steps[i]);
    out->usual_count = count;
    out->usual = median_of(took, count);
    for (size_t i = 0, seen = 0; i < s->step_count; i++) {
        if (!s->steps[i].wanted || &s->steps[i] == step)
            continue;
        double off = (double)duration_of(&s->steps[i]) - out->usual;
        off = off < 0 ? -off : off;
        if (seen++ == 0 || off < nearest) {
            nearest = off;
            out->usual_step = s->steps[i].index;
        }
    }
}

step_seen *beside_choose(slices *s, const pki_summary *in, pki_beside *out)
{
    step_seen *step = the_step(s, in);
    if (!step)
        return NULL;
    out->same_kind = true;
    size_t usual = mark_usual(s, step, like_it(s, step, &in->capture, true), true);
    if (usual == 0) {
        out->same_kind = false;
        mark_usual(s, step, like_it(s, step, &in->capture, false), false);
    }
    step->wanted = true;
    out->step = step->index;
    out->took = duration_of(step);
    describe(s, step, out);
    return step;
}
