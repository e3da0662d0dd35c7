#include "load/load.h"

#include "load/parts.h"
#include "load/windows.h"
#include "rebuild/rebuild.h"
#include "trace/trace.h"

#include <string.h>

#define OTHERS_MOST 256 /* ranks of one file; more than anybody has put together */

/* What is looked for in the events of a trace. */
typedef struct search {
    trace *in;
    rebuild *to;                           /* NULL: whose steps there are */
    char stepper[EVENT_TRACK];             /* of the first step; "" if there is none */
    char others[OTHERS_MOST][EVENT_TRACK]; /* that step, too */
    size_t other_count;
    const load_options *options;
    const trace_parts *parts; /* NULL: it is one file */
} search;

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
static void expect_noted(search *s)
{
    if (s->stepper[0])
        rebuild_expect_steps(s->to, s->stepper);
    for (size_t i = 0; i < s->other_count; i++)
        rebuild_expect_steps(s->to, s->others[i]);
}

static void handle_event(void *user, const event *e)
{
    search *s = user;
    if (e->type == EVENT_STEP || e->type == EVENT_BETWEEN)
        note_stepper(s, e->stepper);
    if (s->to)
        rebuild_event(s->to, e);
}

/* Without a rebuild only the steps' thread is of interest. */
static bool wants_line(void *user, line l)
{
    static const char mark[] = "\"ProfilerStep#";
    const search *s = user;
    return s->to || (!s->stepper[0] && memmem(l.text, l.length, mark, sizeof mark - 1) != NULL);
}

static void begin_file(void *user)
{
    const search *s = user;
    if (s->to)
        rebuild_next_file(s->to);
}

static bool read_file(search *s)
{
    begin_file(s);
    return trace_read(s->in, &(trace_visitor){s, wants_line, handle_event});
}

static bool read_parts(search *s)
{
    trace_visitor to = {s, wants_line, handle_event};
    return !s->parts || parts_read(s->parts, begin_file, &to, s->in->why);
}

static bool read_events(search *s)
{
    return read_parts(s) && read_file(s);
}

/* ---- the ways to read it ---- */

typedef enum outcome { DONE, FAILED, UNSORTED } outcome;

static outcome load_report_of(search *s, pki_summary *out)
{
    return load_report(trace_report(s->in), out, s->in->why) ? DONE : FAILED;
}

static bool has_report(const search *s)
{
    return trace_report(s->in) && !(s->options->events && trace_has_events(s->in));
}

static outcome finish(search *s, pki_summary *out)
{
    if (has_report(s))
        return load_report_of(s, out);
    if (rebuild_needs_sorting(s->to))
        return UNSORTED;
    json_t *capture = trace_capture(s->in);
    rebuild_set_capture(s->to, capture);
    rebuild_finish(s->to, trace_head(s->in), trace_is_whole(s->in), out);
    load_capture(capture, &out->capture);
    return DONE;
}

static outcome rebuild_from(search *s, bool sort, pki_summary *out)
{
    s->to = rebuild_create(sort, s->options->per_thread);
    if (s->options->tree)
        rebuild_want_tree(s->to);
    expect_noted(s);
    outcome result = read_events(s) ? finish(s, out) : FAILED;
    rebuild_destroy(s->to);
    s->to = NULL;
    return result;
}

/* A first look finds the report, or else whose steps there are, without reading each event. */
static outcome load_in_two_passes(search *s, pki_summary *out)
{
    if (!has_report(s) && !read_file(s))
        return FAILED;
    if (has_report(s))
        return load_report_of(s, out);
    if (!read_parts(s))
        return FAILED;
    outcome result = rebuild_from(s, s->in->document != NULL, out);
    return result == UNSORTED ? rebuild_from(s, true, out) : result;
}

static bool load_all(trace *t, const trace_parts *parts, const load_options *options,
                     pki_summary *out)
{
    search s = {.in = t, .options = options, .parts = parts};
    bool again = trace_can_be_read_again(t);
    return (again ? load_in_two_passes(&s, out) : rebuild_from(&s, true, out)) == DONE;
}

bool load_trace(struct trace *t, const load_options *options, pki_summary *out)
{
    return load_all(t, NULL, options, out);
}

static bool load_with_parts(trace *t, const char *path, const load_options *options,
                            pki_summary *out)
{
    trace_parts parts;
    parts_find(&parts, path, trace_head(t));
    bool loaded = load_all(t, &parts, options, out);
    parts_forget(&parts);
    return loaded;
}

bool load_run(const char *path, const load_options *options, pki_summary *out, complaint *why)
{
    trace t;
    if (!trace_open_run(&t, path, options->progress, why))
        return false;
    bool loaded = t.windows ? load_windows(&t.in, path, options->steps, out, why)
                  : !options->steps
                      ? load_with_parts(&t, path, options, out)
                      : complaint_set(why, "is no file of windows: --steps is for those");
    trace_close(&t);
    return loaded;
}
