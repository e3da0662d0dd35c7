#include "load/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure/window/merge.h"
#include "out/file.h"
#include "read/json.h"
#include "read/read_shape.h"

typedef struct search {
    pki_windows *all;
    uint64_t first, last; /* steps */
    bool by_steps;
    uint32_t pid; /* of the run */
    uint64_t start_unix;
    complaint *why;
} search;

/* ---- one line ---- */

static bool check(json_t *object, complaint *why)
{
    const char *format = json_string_value(json_object_get(object, "format"));
    json_int_t schema = json_integer_value(json_object_get(object, "schema"));
    if (!format || strcmp(format, PKI_WINDOW_FORMAT) != 0)
        return complaint_set(why, "is no window");
    if (schema < 1)
        return complaint_set(why, "is a window without its \"schema\" number");
    if (schema > PKI_WINDOW_SCHEMA)
        return complaint_set(
            why, "is a window of schema %lld, and this pk reads up to %d: a newer pk can",
            (long long)schema, PKI_WINDOW_SCHEMA);
    return true;
}

/* What a step's span says of itself stands one level above it in the file. */
static void place_steps(pki_window *w)
{
    w->steps.exact.span = (pki_steps_span){w->steps.of_all_kinds, w->steps.count, w->steps.first,
                                           w->steps.last,         w->start,       w->end};
    w->counts.size = sizeof w->counts;
}

bool load_window(line l, pki_window *window, complaint *why)
{
    bool too_large = false;
    json_reader j = {.why = why};
    *window = (pki_window){0};
    json_t *object = document_from_text(l.text, l.length, &too_large, why);
    if (!object)
        return false;
    bool loaded = check(object, why);
    if (loaded) {
        read_shape(&j, object, &pki_window_shape, window);
        loaded = !j.failed;
        place_steps(window);
    }
    json_decref(object);
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
    bool too_large = false, whole = document_is_object(l, &too_large) || too_large;
    return !whole && !lines_next(in, &l) && !in->failed;
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
        if (!load_window(l, &w, &why))
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
    if (!load_window(l, &first, s->why))
        return false;
    s->pid = first.run.pid;
    s->start_unix = first.run.start_unix;
    bool read = read_older(s, path);
    const char *wrong = read ? add(s, &first) : NULL;
    pki_window_finish(&first);
    return read && (wrong ? of_line(s, 1, wrong) : read_on(s, in));
}

bool load_windows(lines *in, const char *path, const char *steps, pki_summary *out, complaint *why)
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
