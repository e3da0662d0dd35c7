#include "merge/prescan.h"

#include "memory.h"

#include <stdlib.h>

#define STEP "\"ProfilerStep#"

/* Of the wanted steps of one file, in its own time. */
typedef struct span {
    bool found;
    uint64_t from, to;
} span;

typedef struct look {
    const merge_sources *sources;
    const merge_steps *steps;
    span *spans; /* by source */
    collector *collector;
    complaint *why;
} look;

static void note_step(look *k, size_t place, line l, const fields *f)
{
    uint64_t number;
    field digits = {f->name.at + sizeof STEP - 1, f->name.length - sizeof STEP};
    if (!field_integer(l, digits, &number) || number < k->steps->first || number > k->steps->last)
        return;
    span *s = &k->spans[place];
    uint64_t to = f->start + f->length;
    s->from = s->found && s->from < f->start ? s->from : f->start;
    s->to = s->found && s->to > to ? s->to : to;
    s->found = true;
}

static bool scan_event(void *user, const merge_source *s, line l, const fields *f)
{
    look *k = user;
    size_t place = (size_t)(s - k->sources->all);
    if (!f->timed)
        return true;
    if (k->steps->limited && f->phase == 'X' && f->name.length > sizeof STEP &&
        field_begins(l, f->name, STEP))
        note_step(k, place, l, f);
    return !k->collector || !collector_wants(k->collector, l, f) ||
           collector_add(k->collector, (uint32_t)place, l, f, 0, false, k->why);
}

/* From the first rank's beginning of them to the last one's end. */
static bool find_window(const look *k, const merge_clocks *c, merge_window *w, complaint *why)
{
    bool any = false;
    for (size_t i = 0; i < k->sources->count; i++) {
        const merge_source *s = &k->sources->all[i];
        if (!k->spans[i].found)
            continue;
        uint64_t from = clocks_axis(c, s, k->spans[i].from), to = clocks_axis(c, s, k->spans[i].to);
        w->from = any && w->from < from ? w->from : from;
        w->to = any && w->to > to ? w->to : to;
        any = true;
    }
    w->limited = true;
    return any || complaint_set(why, "no rank has one of these steps");
}

static bool read_all(look *k, merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        complaint ignored = {""}; /* said when it is copied */
        if (!source_read_events(&s->all[i], true, scan_event, k, &ignored) && k->why->text[0])
            return false;
    }
    return true;
}

bool prescan(merge_sources *s, merge_clocks *c, const merge_steps *steps, merge_window *window,
             const char *beside, complaint *why)
{
    bool several = c->count > 1;
    if (!several && !steps->limited)
        return true;
    operations *found = several ? operations_create(beside) : NULL;
    collector from;
    collector_open(&from, found);
    look k = {s, steps, memory_zeroed(s->count, sizeof *k.spans), several ? &from : NULL, why};
    bool done = read_all(&k, s) && (!several || clocks_fit(c, s, found, why)) &&
                (!steps->limited || find_window(&k, c, window, why));
    collector_close(&from);
    operations_destroy(found);
    free(k.spans);
    return done;
}
