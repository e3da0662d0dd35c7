#include "merge/copy.h"

#include "base/compiler.h"
#include "base/text.h"
#include "command.h"
#include "memory.h"
#include "out/emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EDITS 5
#define DIGITS 24

/* What stands in the place of a field. */
typedef struct edit {
    size_t at, length; /* in the line */
    char text[DIGITS];
    size_t n;
} edit;

typedef struct edits {
    edit all[EDITS];
    size_t count;
} edits;

bool copy_put(merge_copy *c, const char *text, size_t n)
{
    const char *between = c->events++ ? ",\n" : "\n";
    return rewrite_put(c->out, between, strlen(between)) && rewrite_put(c->out, text, n);
}

/* ---- numbers ---- */

/* In the order of the line. */
static edit *edit_of(edits *e, field f)
{
    size_t i = e->count++;
    for (; i > 0 && e->all[i - 1].at > f.at; i--)
        e->all[i] = e->all[i - 1];
    e->all[i] = (edit){.at = f.at, .length = f.length};
    return &e->all[i];
}

static void put_number(edits *e, field f, uint64_t number)
{
    edit *it = edit_of(e, f);
    it->n = (size_t)(pki_put_u64(it->text, number) - it->text);
}

/* The digits behind the nanoseconds stay. */
static void put_time(edits *e, field f, uint64_t ns, size_t kept)
{
    f.length -= kept;
    edit *it = edit_of(e, f);
    it->n = (size_t)(pki_put_us(it->text, ns) - it->text);
}

static void put_times(edits *e, const merge_copy *c, const merge_source *s, const fields *f)
{
    uint64_t start = pki_clocks_axis(c->clocks, &s->when, f->start);
    put_time(e, f->ts, start, f->start_kept);
    if (f->dur.length && c->clocks->all[s->when.clock].count > 1)
        put_time(e, f->dur, pki_clocks_axis(c->clocks, &s->when, f->start + f->length) - start,
                 f->length_kept);
}

static uint64_t high_of(const merge_source *s, const merge_sources *all)
{
    int32_t most = all->count ? all->all[all->count - 1].rank : 0;
    return (uint64_t)(most < 0 ? 0 : most) + 1 + (uint64_t)(s - all->all);
}

uint64_t copy_free_ids(const merge_sources *s)
{
    return high_of(s->all + s->count, s) << 32;
}

/* perfkit's ids have their rank in them. Those of others, and of two that call themselves the same
 * rank, get one. */
static uint64_t id_of(const merge_copy *c, const merge_source *s, uint64_t id)
{
    return s->twin ? high_of(s, c->sources) << 32 | (id & UINT32_MAX) : id;
}

static void put_id(edits *e, const merge_copy *c, const merge_source *s, line l, field f)
{
    uint64_t id;
    if (!s->twin || f.length == 0)
        return;
    if (field_integer(l, f, &id)) {
        put_number(e, f, id_of(c, s, id));
    } else if (l.text[f.at] == '"' && f.length >= 2) { /* a name: longer by its file's number */
        edit *it = edit_of(e, (field){f.at + f.length - 1, 0});
        it->n = (size_t)snprintf(it->text, sizeof it->text, ".%zu", (size_t)(s - c->sources->all));
    }
}

static bool put_edited(merge_copy *c, line l, const edits *e)
{
    size_t at = 0;
    const char *between = c->events++ ? ",\n" : "\n";
    bool put = rewrite_put(c->out, between, strlen(between));
    for (size_t i = 0; put && i < e->count; i++) {
        const edit *it = &e->all[i];
        put = rewrite_put(c->out, l.text + at, it->at - at) && rewrite_put(c->out, it->text, it->n);
        at = it->at + it->length;
    }
    return put && rewrite_put(c->out, l.text + at, l.length - at);
}

/* ---- who the processes are ---- */

static size_t put_escaped(char *out, size_t room, const char *text)
{
    return pki_json_escape(out, room, text, strnlen(text, room / 6 - 1));
}

/* What it was called, if that says more: "GPU 0". With its quotes off. */
static field old_name(line l, const fields *f)
{
    const char *args = l.text + f->args.at, *name = NULL;
    if (f->args.length)
        name = memmem(args, f->args.length, "\"name\":\"", 8);
    if (!name)
        return (field){0, 0};
    name += 8;
    const char *end = name, *last = args + f->args.length;
    while (end < last && *end != '"')
        end += 1 + (*end == '\\');
    return end < last ? (field){(size_t)(name - l.text), (size_t)(end - name)} : (field){0, 0};
}

static bool put_process_name(merge_copy *c, const merge_source *s, line l, const fields *f,
                             const pid_entry *pid)
{
    char text[2048], *end = text + sizeof text, *p = text;
    field old = old_name(l, f);
    int length = old.length < 512 ? (int)old.length : 0;
    p += snprintf(p, (size_t)(end - p),
                  "{\"ph\":\"M\",%s\"name\":\"process_name\",\"pid\":%u,\"tid\":%u,\"ts\":0.000,"
                  "\"args\":{\"name\":\"",
                  c->events ? "\"cat\":\"__metadata\"," : "", pid->becomes, pid->becomes);
    if (s->rank >= 0)
        p += snprintf(p, (size_t)(end - p), "rank %d ", s->rank);
    if (*s->host)
        p += put_escaped(p, 6 * 65, s->host);
    if (pid->place > 0 || s->rank < 0)
        p += snprintf(p, (size_t)(end - p), "%s%.*s", *s->host ? " " : "", length, l.text + old.at);
    while (p[-1] == ' ')
        p--;
    p = PKI_PUT(p, "\"}}");
    return copy_put(c, text, (size_t)(p - text));
}

/* By rank; devices behind the process that they belong to. */
static bool put_sort_index(merge_copy *c, const merge_source *s, const pid_entry *pid)
{
    char text[256];
    int n = snprintf(text, sizeof text,
                     "{\"ph\":\"M\",%s\"name\":\"process_sort_index\",\"pid\":%u,\"tid\":%u,"
                     "\"ts\":0.000,\"args\":{\"sort_index\":%u}}",
                     c->events ? "\"cat\":\"__metadata\"," : "", pid->becomes, pid->becomes,
                     64 * s->process + PKI_MIN(pid->place, 63));
    return copy_put(c, text, (size_t)n);
}

/* ---- which events ---- */

static size_t slot_of(const uint64_t *table, size_t room, uint64_t id)
{
    size_t i = (size_t)(id * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (room - 1);
    while (table[i] && table[i] != id + 1)
        i = (i + 1) & (room - 1);
    return i;
}

static bool has_begun(const merge_copy *c, uint64_t id)
{
    return c->begun_room && c->begun[slot_of(c->begun, c->begun_room, id)];
}

static void note_begun(merge_copy *c, uint64_t id)
{
    if (2 * (c->begun_count + 1) > c->begun_room) {
        size_t room = c->begun_room ? 2 * c->begun_room : 1024;
        uint64_t *wider = memory_zeroed(room, sizeof *wider);
        for (size_t i = 0; i < c->begun_room; i++)
            if (c->begun[i])
                wider[slot_of(wider, room, c->begun[i] - 1)] = c->begun[i];
        free(c->begun);
        c->begun = wider;
        c->begun_room = room;
    }
    c->begun[slot_of(c->begun, c->begun_room, id)] = id + 1;
    c->begun_count++;
}

/* An end without its beginning is an error to some viewers. */
static bool is_inside(merge_copy *c, const merge_source *s, line l, const fields *f)
{
    uint64_t from = pki_clocks_axis(c->clocks, &s->when, f->start), id = 0;
    uint64_t to = f->length ? pki_clocks_axis(c->clocks, &s->when, f->start + f->length) : from;
    if (!c->window.limited)
        return true;
    bool inside = to >= c->window.from && from <= c->window.to;
    if (!f->id.length || !field_integer(l, f->id, &id))
        return inside;
    if (f->phase == 'f' || f->phase == 't' || f->phase == 'e')
        return (inside || f->phase == 'e') && has_begun(c, id);
    if (inside && (f->phase == 's' || f->phase == 'b'))
        note_begun(c, id);
    return inside;
}

/* Of most events the time alone changes. */
static bool has_other_time_alone(const merge_copy *c, const merge_source *s, const fields *f,
                                 const pid_entry *pid)
{
    return f->timed && pid->becomes == pid->pid && !(s->twin && f->id.length) &&
           !(f->dur.length && c->clocks->all[s->when.clock].count > 1);
}

static bool put_moved(merge_copy *c, line l, const fields *f, uint64_t ns)
{
    size_t behind = f->ts.at + f->ts.length - f->start_kept;
    char *p = rewrite_claim(c->out, l.length + DIGITS + 2);
    if (!p)
        return false;
    if (c->events++)
        *p++ = ',';
    *p++ = '\n';
    memcpy(p, l.text, f->ts.at);
    p = pki_put_us(p + f->ts.at, ns);
    memcpy(p, l.text + behind, l.length - behind);
    rewrite_commit(c->out, p + (l.length - behind));
    return true;
}

static bool put_event(merge_copy *c, const merge_source *s, line l, const fields *f,
                      const pid_entry *pid)
{
    edits e;
    e.count = 0;
    if (has_other_time_alone(c, s, f, pid) &&
        put_moved(c, l, f, pki_clocks_axis(c->clocks, &s->when, f->start)))
        return true;
    if (pid->becomes != pid->pid)
        put_number(&e, f->pid, pid->becomes);
    if (f->timed)
        put_times(&e, c, s, f);
    put_id(&e, c, s, l, f->id);
    return put_edited(c, l, &e);
}

static bool put_metadata(merge_copy *c, const merge_source *s, line l, const fields *f,
                         const pid_entry *pid)
{
    if (field_is(l, f->name, "\"process_name\""))
        return put_process_name(c, s, l, f, pid);
    if (field_is(l, f->name, "\"process_sort_index\""))
        return put_sort_index(c, s, pid);
    return put_event(c, s, l, f, pid);
}

static bool copy_event(void *user, const merge_source *s, line l, const fields *f)
{
    merge_copy *c = user;
    const pid_entry *pid = pids_of(&c->pids, s->process, f->process);
    if (f->phase == 'M')
        return put_metadata(c, s, l, f, pid);
    if (!f->timed) {
        c->without_time++;
        return true;
    }
    bool inside = is_inside(c, s, l, f);
    if (c->collector && f->phase == 'X')
        collector_note(c->collector, f);
    c->left_out += !inside;
    if (c->collector && collector_wants(c->collector, l, f) &&
        !collector_add(c->collector, (uint32_t)(s - c->sources->all), l, f, pid->becomes, inside,
                       c->why))
        return false;
    return !inside || put_event(c, s, l, f, pid);
}

static void forget_begun(merge_copy *c)
{
    free(c->begun);
    c->begun = NULL;
    c->begun_count = c->begun_room = 0;
}

/* A damaged file is merged up to where it is whole. */
bool copy_source(merge_copy *c, merge_source *s)
{
    complaint trouble = {""};
    bool lengths = c->window.limited || c->clocks->count > 1;
    forget_begun(c);
    if (c->collector)
        collector_new_file(c->collector);
    if (source_read_events(s, lengths, copy_event, c, &trouble))
        return true;
    if (c->why->text[0])
        return false;
    complain("%s: %s; merged is what stands before it", s->path, trouble.text);
    c->damaged++;
    return s->cut = true;
}

void copy_end(merge_copy *c)
{
    pids_free(&c->pids);
    forget_begun(c);
}
