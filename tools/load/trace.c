/* tools/load/trace.c - traces: the report at their end, or one made from their events. */
#include "load/load.h"

#include "trace/walk.h"
#include "rebuild/rebuild.h"

#include <stdlib.h>
#include <string.h>

#define OTHERS_MOST 256 /* ranks of one file; more than anybody has put together */

/* What is looked for in the lines of a trace. */
typedef struct search {
    walk w;
    rebuild *to;                           /* NULL: the report, and whose steps there are */
    char stepper[EVENT_TRACK];             /* of the first step; "" if there is none */
    char others[OTHERS_MOST][EVENT_TRACK]; /* that step, too */
    size_t other_count;
    const load_options *options;
} search;

static bool out_of_memory(complaint *why)
{
    return complaint_set(why, "out of memory");
}

static void note_stepper(search *s, const char *track)
{
    if (!s->stepper[0])
        memcpy(s->stepper, track, sizeof s->stepper);
    if (strcmp(s->stepper, track) == 0 || s->other_count == OTHERS_MOST)
        return;
    for (size_t i = 0; i < s->other_count; i++)
        if (strcmp(s->others[i], track) == 0)
            return;
    memcpy(s->others[s->other_count++], track, sizeof s->others[0]);
}

/* In the order of their first steps: the report is of the first one. */
static bool expect_noted(search *s)
{
    bool fits = !s->stepper[0] || rebuild_expect_steps(s->to, s->stepper);
    for (size_t i = 0; fits && i < s->other_count; i++)
        fits = rebuild_expect_steps(s->to, s->others[i]);
    return fits;
}

static bool take_event(void *user, const event *e)
{
    search *s = user;
    if (e->type == EVENT_STEP)
        note_stepper(s, e->stepper);
    return !s->to || rebuild_event(s->to, e);
}

/* Without a rebuild only the steps' thread is of interest. */
static bool wants_line(void *user, line l)
{
    static const char mark[] = "\"ProfilerStep#";
    const search *s = user;
    return s->to || (!s->stepper[0] && memmem(l.text, l.length, mark, sizeof mark - 1) != NULL);
}

/* ---- the ways to read it ---- */

static bool back_to_events(lines *in, complaint *why)
{
    json_t *head;
    line read;
    if (!lines_rewind(in))
        return complaint_set(why, "cannot be read a second time");
    bool there = load_head(in, &head, &read, why);
    json_decref(head);
    free(read.text);
    return there;
}

typedef enum outcome { DONE, FAILED, UNSORTED } outcome;

static json_t *report_in(const search *s)
{
    json_t *report = s->options->events ? NULL : json_object_get(s->w.tail, "perfkitReport");
    return json_is_object(report) ? report : NULL;
}

static outcome finish(search *s, json_t *head, pki_summary *out)
{
    json_t *report = report_in(s);
    if (report)
        return load_report(report, out, s->w.why) ? DONE : FAILED;
    if (rebuild_needs_sorting(s->to))
        return UNSORTED;
    if (rebuild_finish(s->to, head, s->w.tail != NULL, out))
        return DONE;
    out_of_memory(s->w.why);
    return FAILED;
}

static outcome rebuild_from(search *s, json_t *head, bool sort, pki_summary *out)
{
    outcome result = FAILED;
    walk_again(&s->w);
    s->to = rebuild_create(sort, s->options->per_thread);
    if (!s->to || !expect_noted(s)) {
        out_of_memory(s->w.why);
        rebuild_destroy(s->to);
        return FAILED;
    }
    if (walk_lines(&s->w))
        result = finish(s, head, out);
    rebuild_destroy(s->to);
    s->to = NULL;
    return result;
}

/* A first walk finds the report, or else whose steps there are, without looking at each event. */
static outcome walk_twice(search *s, json_t *head, pki_summary *out)
{
    walk *w = &s->w;
    if (!walk_lines(w))
        return FAILED;
    json_t *report = report_in(s);
    if (report)
        return load_report(report, out, w->why) ? DONE : FAILED;
    if (!back_to_events(w->in, w->why))
        return FAILED;
    outcome result = rebuild_from(s, head, false, out);
    if (result != UNSORTED)
        return result;
    return back_to_events(w->in, w->why) ? rebuild_from(s, head, true, out) : FAILED;
}

bool load_trace_lines(lines *in, json_t *head, const load_options *options, progress *telling,
                      pki_summary *out, complaint *why)
{
    search s = {.w = {.in = in, .why = why, .telling = telling, .array = json_is_array(head)},
                .options = options};
    s.w.user = &s;
    s.w.wants = wants_line;
    s.w.take = take_event;
    bool again = source_is_rewindable(in->from);
    if (!walk_open(&s.w))
        return false;
    outcome result = again ? walk_twice(&s, head, out) : rebuild_from(&s, head, true, out);
    walk_close(&s.w);
    return result == DONE;
}

/* ---- in memory ---- */

/* Whose steps there are has to be known before the first slice. */
static bool expect_steps(rebuild *r, json_t *events)
{
    static const char mark[] = "ProfilerStep#";
    bool fits = true;
    for (size_t i = 0; fits && i < json_array_size(events); i++) {
        json_t *one = json_array_get(events, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        event e;
        if (!name || strncmp(name, mark, sizeof mark - 1) != 0)
            continue;
        event_read(&e, (object){.tree = one}, NULL, 0);
        fits = e.type != EVENT_STEP || rebuild_expect_steps(r, e.stepper);
    }
    return fits;
}

bool load_trace_whole(json_t *trace, const load_options *options, pki_summary *out, complaint *why)
{
    json_t *events = json_is_array(trace) ? trace : json_object_get(trace, "traceEvents");
    rebuild *r = rebuild_create(true, options->per_thread);
    bool fits = r && expect_steps(r, events);
    for (size_t i = 0; fits && i < json_array_size(events); i++) {
        event e;
        event_read(&e, (object){.tree = json_array_get(events, i)}, NULL, 0);
        fits = rebuild_event(r, &e);
    }
    fits = fits && rebuild_finish(r, trace, true, out);
    rebuild_destroy(r);
    return fits || out_of_memory(why);
}
