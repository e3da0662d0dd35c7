#include "load/load.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "measure/window/merge.h"
#include "measure/window/window.h"
#include "out/file.h"
#include "read/lines.h"
#include "read/scan.h"
#include "rebuild/rebuild.h"
#include "trace/trace.h"

/* ---- the other files of a trace that its run has cut into several (out/file.h) ---- */

/* Those beside it that are of the same run, the oldest first. */

typedef struct trace_parts {
    char folder[PATH_MAX], name[256]; /* of the one that was named */
    uint32_t *numbers;
    size_t count;
} trace_parts;

static bool path_of(const trace_parts *p, uint32_t number, char path[PATH_MAX])
{
    char whole[PATH_MAX];
    int n = snprintf(whole, sizeof whole, "%s%s", p->folder, p->name);
    return n > 0 && n < PATH_MAX && pki_part_name(whole, number, path);
}

/* run: when it began, which two runs do not share. */
static bool is_of_run(const trace_parts *p, uint32_t number, uint64_t run)
{
    char path[PATH_MAX];
    complaint why = {""};
    trace t;
    if (!path_of(p, number, path) || !trace_open(&t, path, false, &why))
        return false;
    bool same = trace_has_events(&t) && t.about.run.start_unix == run;
    trace_close(&t);
    return same;
}

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void scan_folder(trace_parts *p, DIR *folder, uint64_t run)
{
    size_t room = 0;
    for (const struct dirent *e; (e = readdir(folder));) {
        uint32_t number = pki_part_of(e->d_name, p->name);
        if (number && is_of_run(p, number, run) &&
            pki_array_fit(&p->numbers, &room, p->count + 1, sizeof *p->numbers))
            p->numbers[p->count++] = number;
    }
    if (p->count)
        qsort(p->numbers, p->count, sizeof *p->numbers, ascending);
}

/* None for the standard input, for what is itself a part, and without memory. run: as the file that
 * was named says it; 0: it does not. */
static void parts_find(trace_parts *p, const char *path, uint64_t run)
{
    const char *name = pki_base_name(path);
    size_t before = (size_t)(name - path);
    memset(p, 0, sizeof *p);
    if (strcmp(path, "-") == 0 || pki_part_is_one(path) || run == 0 || before >= sizeof p->folder ||
        strlen(name) >= sizeof p->name)
        return;
    memcpy(p->folder, path, before);
    memcpy(p->name, name, strlen(name) + 1);
    DIR *folder = opendir(before ? p->folder : ".");
    if (!folder)
        return;
    scan_folder(p, folder, run);
    closedir(folder);
}

static void parts_forget(trace_parts *p)
{
    free(p->numbers);
    memset(p, 0, sizeof *p);
}

static bool read_one(const char *path, const trace_visitor *to, complaint *why)
{
    complaint wrong = {""};
    trace t;
    if (!trace_open(&t, path, true, &wrong))
        return complaint_set(why, "has a part %s that %s", path, wrong.text);
    bool read = trace_read(&t, to) || complaint_set(why, "has a part %s that %s", path, wrong.text);
    trace_close(&t);
    return read;
}

/* All events of all of them; begins is called, with the visitor's user, before those of each file.
 * False, and why. */
static bool parts_read(const trace_parts *p, void (*begins)(void *user), const trace_visitor *to,
                       complaint *why)
{
    char path[PATH_MAX];
    bool read = true;
    for (size_t i = 0; read && i < p->count; i++) {
        begins(to->user);
        read = !path_of(p, p->numbers[i], path) || read_one(path, to, why);
    }
    return read;
}

/* ---- what a file of ours says first ---- */

/* Its "schema"; 0: it has none. */
static uint64_t schema_of(const char *text, size_t length)
{
    complaint ignored = {""};
    scan s = {.why = &ignored};
    if (!token_member(text, length, "schema", &s.at, &s.end))
        return 0;
    uint64_t schema = token_uint(&s);
    return s.failed ? 0 : schema;
}

static bool has_format(line l, const char *format)
{
    complaint ignored = {""};
    scan s = {.why = &ignored};
    const char *text;
    size_t length;
    return token_member(l.text, l.length, "format", &s.at, &s.end) &&
           token_raw(&s, &text, &length) && token_is(text, length, format);
}

/* ---- the summary of a run from its windows ---- */

/* PATH, and what has become PATH.1 to PATH.3 of the same run. */

typedef struct search {
    pki_windows *all;
    uint64_t first, last; /* steps */
    bool by_steps;
    uint32_t pid; /* of the run */
    uint64_t start_unix;
    complaint *why;
} search;

/* ---- one line ---- */

static bool check(line l, complaint *why)
{
    uint64_t schema = schema_of(l.text, l.length);
    if (schema < 1)
        return complaint_set(why, "is a window without its \"schema\" number");
    if (schema > PKI_WINDOW_SCHEMA)
        return complaint_set(
            why, "is a window of schema %llu, and this pk reads up to %d: a newer pk can",
            (unsigned long long)schema, PKI_WINDOW_SCHEMA);
    return true;
}

/* What a step's span says of itself stands one level above it in the file. */
static void place_steps(pki_window *w)
{
    w->steps.exact.span = (pki_steps_span){w->steps.of_all_kinds, w->steps.count, w->steps.first,
                                           w->steps.last,         w->start,       w->end};
    w->counts.size = sizeof w->counts;
}

/* One window from the text of a line. False, and why: it is finished then. */
bool load_window(const char *text, size_t length, pki_window *window, complaint *why)
{
    line l = {(char *)(uintptr_t)text, length};
    scan s = {.at = l.text, .end = l.text + l.length, .why = why};
    *window = (pki_window){0};
    if (!has_format(l, PKI_WINDOW_FORMAT))
        return complaint_set(why, "is no window");
    if (!check(l, why))
        return false;
    bool loaded =
        scan_object(&s, &pki_window_shape, window) && (token_ends(&s) || token_unexpected(&s));
    place_steps(window);
    if (!loaded)
        pki_window_finish(window);
    return loaded;
}

/* ---- which of them ---- */

static bool is_wanted(const search *s, const pki_window *w)
{
    if (w->run.pid != s->pid || w->run.start_unix != s->start_unix)
        return false;
    return !s->by_steps ||
           (w->steps.of_all_kinds && w->steps.last >= s->first && w->steps.first <= s->last);
}

/* NULL, or why not. */
static const char *add(search *s, pki_window *w)
{
    return is_wanted(s, w) ? pki_windows_add(s->all, w) : NULL;
}

/* The end of a file that somebody has not finished writing. */
static bool is_cut_off(lines *in, line l)
{
    return !token_is_object(l.text, l.length) && !lines_next(in, &l) && !in->failed;
}

static bool of_line(const search *s, uint64_t number, const char *what)
{
    return complaint_set(s->why, "line %llu %s", (unsigned long long)number, what);
}

/* From the next line on. */
static bool read_on(search *s, lines *in)
{
    line l;
    while (lines_next(in, &l)) {
        pki_window w;
        complaint why = {""};
        uint64_t number = in->number;
        if (!load_window(l.text, l.length, &w, &why))
            return is_cut_off(in, l) || of_line(s, number, why.text);
        const char *wrong = add(s, &w);
        pki_window_finish(&w);
        if (wrong)
            return of_line(s, number, wrong);
    }
    return !in->failed;
}

static bool read_part(search *s, const char *path)
{
    lines in;
    complaint why = {""};
    if (!lines_open(&in, path, LINES_LONGEST, &why))
        return complaint_set(s->why, "has a part %s that %s", path, why.text);
    bool read = read_on(s, &in);
    lines_close(&in);
    return read;
}

static bool read_older(search *s, const char *path)
{
    char name[PATH_MAX];
    bool read = true;
    if (strcmp(path, "-") == 0)
        return true;
    for (unsigned part = PKI_ROLLING_PARTS - 1; read && part > 0; part--)
        if (pki_rolling_part(path, part, name) && access(name, F_OK) == 0)
            read = read_part(s, name);
    return read;
}

static bool parse_steps(search *s, const char *text)
{
    char *end = NULL;
    if (!text)
        return true;
    errno = 0;
    s->by_steps = true;
    s->first = s->last = strtoull(text, &end, 10);
    if (end != text && *end == '-' && end[1] >= '0' && end[1] <= '9')
        s->last = strtoull(end + 1, &end, 10);
    bool valid = *text >= '0' && *text <= '9' && !*end && !errno && s->first <= s->last;
    return valid || complaint_set(s->why, "--steps %s: no range of steps such as 100-200", text);
}

/* Whose run it is says the file's first window. */
static bool read_all(search *s, lines *in, const char *path)
{
    line l;
    pki_window first;
    if (!lines_next(in, &l))
        return in->failed ? false : complaint_set(s->why, "is empty");
    if (!load_window(l.text, l.length, &first, s->why))
        return false;
    s->pid = first.run.pid;
    s->start_unix = first.run.start_unix;
    bool read = read_older(s, path);
    const char *wrong = read ? add(s, &first) : NULL;
    pki_window_finish(&first);
    return read && (wrong ? of_line(s, 1, wrong) : read_on(s, in));
}

/* `in` is PATH, opened and not yet read; "-" has no other parts. steps: NULL, "A" or "A-B". A line
 * that is cut off at the end, of a run that was killed or still goes on, counts as not there.
 * False, and why. */
static bool load_windows(lines *in, const char *path, const char *steps, pki_summary *out,
                         complaint *why)
{
    search s = {.why = why};
    pki_summary_init(out);
    if (!parse_steps(&s, steps))
        return false;
    s.all = pki_windows_create(false);
    bool read = s.all ? read_all(&s, in, path) : complaint_set(why, "out of memory");
    if (read && pki_windows_count(s.all) == 0)
        read = complaint_set(why, "has no window with any of these steps");
    if (read && !pki_windows_summary(s.all, out))
        read = complaint_set(why, "out of memory");
    pki_windows_destroy(s.all);
    return read;
}

/* ---- the report file of docs/internals/report-format.md as a summary ---- */

static bool check_schema(const char *text, size_t length, complaint *why)
{
    uint64_t schema = schema_of(text, length);
    if (schema == 0)
        return complaint_set(why, "is a report without its \"schema\" number");
    if (schema > PKI_REPORT_SCHEMA)
        return complaint_set(
            why, "is a report of schema %llu, and this pk reads up to %d: a newer pk can",
            (unsigned long long)schema, PKI_REPORT_SCHEMA);
    return true;
}

/* Rows of a communicator that the file does not have would lead nowhere. */
static bool check_comms(const pki_comm_summary *c, complaint *why)
{
    bool known = true;
    for (size_t i = 0; i < c->collective_count; i++)
        known &= c->collectives[i].comm < c->comm_count;
    for (size_t i = 0; i < c->region_count; i++)
        known &= c->regions[i].comm < c->comm_count;
    for (size_t i = 0; i < c->slowest_count; i++)
        known &= c->slowest[i].comm < c->comm_count;
    return known || complaint_set(why, "has operations on a communicator that is not in it");
}

bool load_report(const char *text, size_t length, pki_summary *out, complaint *why)
{
    scan s = {.at = text, .end = text + length, .why = why};
    pki_summary_init(out);
    if (!check_schema(text, length, why))
        return false;
    bool loaded = scan_object(&s, &pki_summary_shape, out) &&
                  (token_ends(&s) || token_unexpected(&s)) && check_comms(&out->comm, why);
    out->counts.size = sizeof out->counts;
    if (!loaded)
        pki_summary_finish(out);
    return loaded;
}

/* ---- the summary of a run from a file ---- */

#define OTHERS_MOST 256 /* ranks of one file; more than anybody has put together */

/* What is looked for in the events of a trace. */
typedef struct load_search {
    trace *in;
    rebuild *to;                           /* NULL: whose steps there are */
    char stepper[EVENT_TRACK];             /* of the first step; "" if there is none */
    char others[OTHERS_MOST][EVENT_TRACK]; /* that step, too */
    size_t other_count;
    const load_options *options;
    const trace_parts *parts; /* NULL: it is one file */
} load_search;

static void note_stepper(load_search *s, const char *track)
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
static void expect_noted(load_search *s)
{
    if (s->stepper[0])
        rebuild_expect_steps(s->to, s->stepper);
    for (size_t i = 0; i < s->other_count; i++)
        rebuild_expect_steps(s->to, s->others[i]);
}

static void handle_event(void *user, const event *e)
{
    load_search *s = user;
    if (e->type == EVENT_STEP || e->type == EVENT_BETWEEN)
        note_stepper(s, e->stepper);
    if (s->to)
        rebuild_event(s->to, e);
}

/* Without a rebuild only the steps' thread is of interest. */
static bool wants_line(void *user, line l)
{
    static const char mark[] = "\"ProfilerStep#";
    const load_search *s = user;
    return s->to || (!s->stepper[0] && memmem(l.text, l.length, mark, sizeof mark - 1) != NULL);
}

static void begin_file(void *user)
{
    const load_search *s = user;
    if (s->to)
        rebuild_next_file(s->to);
}

static bool read_file(load_search *s)
{
    begin_file(s);
    return trace_read(s->in, &(trace_visitor){s, wants_line, handle_event});
}

static bool read_parts(load_search *s)
{
    trace_visitor to = {s, wants_line, handle_event};
    return !s->parts || parts_read(s->parts, begin_file, &to, s->in->why);
}

static bool read_events(load_search *s)
{
    return read_parts(s) && read_file(s);
}

/* ---- the ways to read it ---- */

typedef enum outcome { DONE, FAILED, UNSORTED } outcome;

static outcome load_report_of(load_search *s, pki_summary *out)
{
    return load_report(s->in->report.text, s->in->report.length, out, s->in->why) ? DONE : FAILED;
}

static bool has_report(const load_search *s)
{
    return s->in->report.text && !(s->options->events && trace_has_events(s->in));
}

static outcome finish(load_search *s, pki_summary *out)
{
    if (has_report(s))
        return load_report_of(s, out);
    if (rebuild_needs_sorting(s->to))
        return UNSORTED;
    pki_capture capture = {0};
    pki_environment environment = {0};
    if (trace_captured(s->in, &capture, &environment))
        rebuild_set_capture(s->to, &environment);
    rebuild_finish(s->to, &s->in->about, s->in->whole, out);
    out->capture = capture;
    return DONE;
}

static outcome rebuild_from(load_search *s, bool sort, pki_summary *out)
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
static outcome load_in_two_passes(load_search *s, pki_summary *out)
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
    load_search s = {.in = t, .options = options, .parts = parts};
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
    parts_find(&parts, path, t->about.run.start_unix);
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
