/* tools/merge/inputs.c - which files are merged, and what is known of them beforehand */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "memory.h"
#include "merge/merge.h"

/* ---- a trace that is merged with others: whose it is, and its events ---- */

typedef struct reading_state {
    merge_source *source;
    source_visit *visit;
    void *user;
    fields_known *known;
    bool lengths;
} reading_state;

static bool visit_event(const reading_state *r, line l, fields *f)
{
    merge_source *s = r->source;
    fields_read_times(f, l, r->lengths);
    if (f->timed && f->start + f->length > s->when.last_ns)
        s->when.last_ns = f->start + f->length;
    return r->visit(r->user, s, l, f);
}

/* A line that is no whole event is where the file was cut, if nothing good follows. */
static bool read_line(const reading_state *r, trace *t, line l)
{
    fields f;
    if (!fields_find(&f, r->known, l)) {
        if (!t->damaged)
            t->damaged = t->in.number;
        return true;
    }
    if (t->damaged)
        return complaint_set(t->why, "is damaged: line %llu is not an event",
                             (unsigned long long)t->damaged);
    return visit_event(r, l, &f);
}

static bool read_lines(const reading_state *r, trace *t)
{
    line l;
    r->source->cut = true;
    while (lines_next(&t->in, &l)) {
        l = line_trim(l);
        if (l.length == 0)
            continue;
        if (l.text[0] == ']') {
            r->source->cut = t->damaged != 0;
            return true;
        }
        if (!read_line(r, t, l))
            return false;
    }
    return !t->in.failed;
}

/* Traces that are laid out for people. */
static bool read_document(const reading_state *r, trace *t)
{
    json_t *events =
        json_is_array(t->document) ? t->document : json_object_get(t->document, "traceEvents");
    bool going_on = true;
    for (size_t i = 0; going_on && i < json_array_size(events); i++) {
        char *text = json_dumps(json_array_get(events, i), JSON_COMPACT);
        memory_needed(text != NULL);
        line l = {text, strlen(text)};
        fields f;
        going_on = !fields_find(&f, r->known, l) || visit_event(r, l, &f);
        free(text);
    }
    return going_on;
}

bool source_read_events(merge_source *s, bool lengths, source_visit *visit, void *user,
                        complaint *why)
{
    trace t;
    if (!trace_open(&t, s->path, true, why))
        return false;
    reading_state r = {s, visit, user, memory_zeroed(1, sizeof *r.known), lengths};
    bool read = t.document ? read_document(&r, &t) : read_lines(&r, &t);
    trace_close(&t);
    free(r.known);
    return read;
}

/* ---- what has to be known of all files before the first event is written ---- */

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
static bool find_range(const look *k, const pki_clocks *c, merge_range *w, complaint *why)
{
    bool any = false;
    for (size_t i = 0; i < k->sources->count; i++) {
        const merge_source *s = &k->sources->all[i];
        if (!k->spans[i].found)
            continue;
        uint64_t from = pki_clocks_axis(c, &s->when, k->spans[i].from),
                 to = pki_clocks_axis(c, &s->when, k->spans[i].to);
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

bool prescan(merge_sources *s, pki_clocks *c, const merge_steps *steps, merge_range *range,
             const char *beside, complaint *why)
{
    bool several = c->count > 1;
    if (!several && !steps->limited)
        return true;
    pki_joints *found = several ? pki_joints_create(beside) : NULL;
    memory_needed(found || !several);
    collector from;
    collector_open(&from, found);
    look k = {s, steps, memory_zeroed(s->count, sizeof *k.spans), several ? &from : NULL, why};
    bool done = read_all(&k, s) && (!several || joints_stored(pki_clocks_fit(c, found), why)) &&
                (!steps->limited || find_range(&k, c, range, why));
    collector_close(&from);
    pki_joints_destroy(found);
    free(k.spans);
    return done;
}

/* ---- what `pk merge` is asked for ---- */

/* "7" or "4-7", up to the end or a comma. NULL: it is neither. */
static const char *read_range(const char *s, uint64_t *first, uint64_t *last)
{
    char *end;
    if (*s < '0' || *s > '9')
        return NULL;
    *first = *last = strtoull(s, &end, 10);
    if (*end == '-') {
        s = end + 1;
        if (*s < '0' || *s > '9')
            return NULL;
        *last = strtoull(s, &end, 10);
    }
    return *last >= *first && (*end == '\0' || *end == ',') ? end : NULL;
}

bool parse_ranks(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    const char *s = given->text;
    if (!option_has_value(given))
        return false;
    for (bool more = true; more; s++) {
        rank_range range;
        s = read_range(s, &range.first, &range.last);
        if (!s)
            return option_refuse(given, "ranks, such as 0,4,8-15");
        memory_fit(&w->ranks, &w->rank_room, w->rank_count + 1, sizeof *w->ranks);
        w->ranks[w->rank_count++] = range;
        more = *s == ',';
    }
    return true;
}

bool parse_steps(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    if (!option_has_value(given))
        return false;
    const char *end = read_range(given->text, &w->steps.first, &w->steps.last);
    w->steps.limited = true;
    return (end && *end == '\0') || option_refuse(given, "a step or a range of them: 100-120");
}

/* Seconds, with a point in any locale. */
static bool parse_seconds(merge_wish *w, const option_given *given, uint64_t *ns)
{
    if (!option_has_value(given))
        return false;
    const char *s = given->text;
    uint64_t whole = 0, part = 0, unit = 1000000000;
    bool any = false;
    for (; *s >= '0' && *s <= '9' && whole < 1000000000; s++, any = true)
        whole = 10 * whole + (uint64_t)(*s - '0');
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, any = true)
            if (unit > 1)
                part += (uint64_t)(*s - '0') * (unit /= 10);
    if (!any || *s)
        return option_refuse(given, "seconds since the beginning: 1.5");
    *ns = whole * 1000000000 + part;
    w->range.limited = true;
    return true;
}

bool parse_from(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    return parse_seconds(w, given, &w->range.from);
}

bool parse_to(void *wish, const option_given *given)
{
    merge_wish *w = wish;
    return parse_seconds(w, given, &w->range.to);
}

static bool is_wanted(const merge_wish *w, int32_t rank)
{
    for (size_t i = 0; i < w->rank_count; i++)
        if (rank >= 0 && (uint64_t)rank >= w->ranks[i].first && (uint64_t)rank <= w->ranks[i].last)
            return true;
    return w->rank_count == 0;
}

static void source_free(merge_source *s)
{
    free(s->path);
    free(s->host);
    free(s->program);
    free(s->clock_name);
}

void wish_select_ranks(const merge_wish *w, merge_sources *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (is_wanted(w, s->all[i].rank)) {
            merge_source swapped = s->all[kept];
            s->all[kept++] = s->all[i];
            s->all[i] = swapped;
        }
    }
    for (size_t i = kept; i < s->count; i++)
        source_free(&s->all[i]);
    s->count = kept;
}

void wish_free(merge_wish *w)
{
    free(w->ranks);
}

/* ---- which files are merged, and what their heads say ---- */

static char *print_copy(const char *format, const char *a, const char *b)
{
    size_t n = strlen(format) + strlen(a) + strlen(b) + 1;
    char *text = memory_zeroed(1, n);
    snprintf(text, n, format, a, b);
    return text;
}

/* ---- the head ---- */

/* Files of one machine, from its start on, have one clock. What does not say which start that was
 * goes by the host's name; what has real time alone shares that. */
static char *clock_of(const merge_source *s, const char *boot)
{
    if (*boot)
        return memory_copy(boot);
    return s->when.base_ns && *s->host ? print_copy("%s%s", "host ", s->host)
                                       : memory_copy("real time");
}

/* perfkit's own says -1 where no rank is known. */
static void take_head(merge_source *s, const trace_about *a)
{
    s->ours = *a->run.version != '\0';
    s->host = memory_copy(a->run.host);
    s->program = memory_copy(a->run.program);
    s->pid = a->run.pid;
    s->rank = a->has_rank && a->run.rank >= 0 ? a->run.rank : -1;
    s->ranks = PKI_MAX(a->run.world_size, 0);
    s->when.unix_ns = a->base_unix;
    s->when.base_ns = a->base_monotonic;
    s->clock_name = clock_of(s, a->clock_id);
    s->when.name = s->clock_name;
    s->when.host = s->host;
    if (strcmp(s->clock_name, "real time") == 0)
        s->when.base_ns = s->when.unix_ns;
}

/* ---- files ---- */

static void note_arena(merge_source *s)
{
    char *beside = print_copy("%s%s", s->path, ".arena");
    s->arena = access(beside, F_OK) == 0;
    free(beside);
}

typedef enum found { FOUND_TRACE, FOUND_ANOTHER, FOUND_NOTHING } found;

/* Anything but a trace is FOUND_ANOTHER: a report, windows, a trace that was merged already. */
static found add_file(merge_sources *all, const char *path, complaint *why)
{
    trace t;
    if (!trace_open_run(&t, path, false, why))
        return FOUND_NOTHING;
    bool fits = !t.windows && trace_has_events(&t) && !t.about.merged;
    if (fits) {
        memory_fit(&all->all, &all->room, all->count + 1, sizeof *all->all);
        merge_source *s = &all->all[all->count++];
        *s = (merge_source){.path = memory_copy(path)};
        take_head(s, &t.about);
        note_arena(s);
    }
    trace_close(&t);
    return fits ? FOUND_TRACE : FOUND_ANOTHER;
}

static bool is_candidate(const char *name)
{
    return *name != '.' && (pki_ends_with(name, ".json") || pki_ends_with(name, ".json.gz"));
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat one, other;
    return b && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

static bool add_folder(merge_sources *all, const char *path, const char *out, complaint *why);

static bool add_entry(merge_sources *all, const char *path, const char *name, const char *out)
{
    struct stat is;
    complaint ignored = {""};
    if (*name == '.' || stat(path, &is) != 0)
        return true;
    if (S_ISDIR(is.st_mode))
        return add_folder(all, path, out, &ignored);
    if (!S_ISREG(is.st_mode) || !is_candidate(name) || is_same_file(path, out))
        return true;
    found what = add_file(all, path, &ignored);
    all->passed_over += what == FOUND_ANOTHER;
    all->unreadable += what == FOUND_NOTHING;
    return true;
}

static bool add_folder(merge_sources *all, const char *path, const char *out, complaint *why)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        return complaint_set(why, "cannot be read");
    for (int i = 0; i < n; i++) {
        char *inside = print_copy("%s/%s", path, entries[i]->d_name);
        add_entry(all, inside, entries[i]->d_name, out);
        free(inside);
        free(entries[i]);
    }
    free(entries);
    return true;
}

bool sources_add(merge_sources *all, const char *path, const char *out, complaint *why)
{
    struct stat is;
    if (stat(path, &is) == 0 && S_ISDIR(is.st_mode))
        return add_folder(all, path, out, why);
    if (is_same_file(path, out))
        return complaint_set(why, "is the output, too");
    found what = add_file(all, path, why);
    return what == FOUND_TRACE ||
           (what == FOUND_ANOTHER && complaint_set(why, "is no trace of one process"));
}

/* ---- in order ---- */

static int by_rank(const void *a, const void *b)
{
    const merge_source *one = a, *other = b;
    if (one->rank != other->rank)
        return one->rank < other->rank ? -1 : 1;
    return strcmp(one->path, other->path);
}

static bool are_one_process(const merge_source *a, const merge_source *b)
{
    return a->ours && b->ours && a->rank == b->rank && a->pid == b->pid &&
           strcmp(a->host, b->host) == 0 && strcmp(a->clock_name, b->clock_name) == 0;
}

static void find_twins(merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        merge_source *it = &s->all[i];
        it->process = (uint32_t)i;
        it->twin = !it->ours;
        for (size_t j = i; j-- > 0 && s->all[j].rank == it->rank;) {
            if (are_one_process(&s->all[j], it)) {
                it->process = s->all[j].process;
                it->twin = s->all[j].twin;
                break;
            }
            it->twin = true;
        }
    }
}

void sources_sort(merge_sources *s)
{
    if (s->count)
        qsort(s->all, s->count, sizeof *s->all, by_rank);
    find_twins(s);
}

void sources_free(merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        source_free(&s->all[i]);
    free(s->all);
}
