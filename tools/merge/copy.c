/* tools/merge/copy.c - the events of one trace after the other, into the merged one */

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/model/communicator.h"
#include "memory.h"
#include "merge/merge.h"
#include "out/emit.h"

static bool copy_put(merge_copy *c, const char *text, size_t n);
static uint64_t copy_free_ids(const merge_sources *s);

/* ---- processes of a merged trace have numbers of their own ---- */

#define FIRST_NEW                                                                                  \
    1000000000 /* no kernel gives such numbers; below 2^31, where perfkit's devices begin */

static bool is_pid(const void *all, uint32_t number, const void *sought)
{
    const pid_entry *there = (const pid_entry *)all + number, *e = sought;
    return there->process == e->process && there->pid == e->pid;
}

/* Rare: once for each process. */
static bool is_used(const pids *p, uint64_t number)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->all[i].becomes == number)
            return true;
    return false;
}

static uint32_t number_for(pids *p, uint64_t pid)
{
    if (pid > 0 && pid <= UINT32_MAX && !is_used(p, pid))
        return (uint32_t)pid;
    p->next = p->next ? p->next : FIRST_NEW;
    while (is_used(p, p->next))
        p->next++;
    return p->next++;
}

static uint32_t ordinal_of(const pids *p, uint32_t process)
{
    uint32_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += p->all[i].process == process;
    return n;
}

/* What this process's number becomes: itself if nobody else had it before. Good until the next
 * call. */
static const pid_entry *pids_of(pids *p, uint32_t process, uint64_t pid)
{
    pid_entry e = {.process = process, .pid = pid};
    if (p->count && is_pid(p->all, (uint32_t)p->last, &e))
        return &p->all[p->last];
    uint32_t hash = pki_map_hash(pid, process),
             at = pki_map_find(&p->map, hash, is_pid, p->all, &e);
    if (at == PKI_MAP_NONE) {
        at = (uint32_t)p->count;
        memory_needed(pki_array_fit(&p->all, &p->room, p->count + 1, sizeof e) &&
                      pki_map_put(&p->map, hash, at));
        e.place = ordinal_of(p, process);
        e.becomes = number_for(p, pid);
        p->all[p->count++] = e;
    }
    p->last = at;
    return &p->all[at];
}

static void pids_free(pids *p)
{
    free(p->all);
    pki_map_finish(&p->map);
}

/* ---- what stands before the events of a merged trace ---- */

#define OPENS ",\n\"traceEvents\":["

/* "bounds", "real time", ...: how a clock was put on the axis. */
static const char *clock_method_name(const pki_clock *c)
{
    static const char *const names[] = {[PKI_CLOCK_SAME] = "same clock",
                                        [PKI_CLOCK_BOUNDED] = "messages and collectives",
                                        [PKI_CLOCK_REAL_TIME] = "real time"};
    return names[c->method];
}

static void set(json_t *to, const char *key, json_t *value)
{
    memory_needed(json_object_set_new(to, key, value) == 0);
}

static json_t *clock_as_json(const pki_clock *c)
{
    json_t *o = json_object();
    int64_t doubt = pki_clock_doubt(c);
    memory_needed(o != NULL);
    set(o, "host", json_string(c->host));
    set(o, "clock", json_string(c->name));
    set(o, "method", json_string(clock_method_name(c)));
    set(o, "offset_ns", json_integer(c->knots[0].offset));
    set(o, "uncertainty_ns", doubt < 0 ? json_null() : json_integer(doubt));
    double drift_doubt = pki_clock_drift_doubt(c);
    set(o, "drift_ppm", json_real(pki_clock_drift(c)));
    set(o, "drift_uncertainty_ppm", isfinite(drift_doubt) ? json_real(drift_doubt) : json_null());
    set(o, "bounds", json_integer((json_int_t)c->bounds));
    set(o, "broken", json_boolean(c->broken));
    return o;
}

static json_t *metadata(const merge_sources *s, const pki_clocks *c)
{
    json_t *o = json_object(), *clocks = json_array();
    memory_needed(o && clocks);
    for (size_t i = 0; i < c->count; i++)
        memory_needed(json_array_append_new(clocks, clock_as_json(&c->all[i])) == 0);
    set(o, "perfkit", json_string(pk_version()));
    set(o, "merged", json_integer((json_int_t)s->count));
    set(o, "clocks", clocks);
    return o;
}

char *merged_head(const merge_sources *s, const pki_clocks *c, size_t *length)
{
    json_t *o = json_object();
    memory_needed(o != NULL);
    set(o, "schemaVersion", json_integer(1));
    set(o, "displayTimeUnit", json_string("ns"));
    set(o, "baseTimeNanoseconds", json_integer((json_int_t)c->origin_unix));
    set(o, "metadata", metadata(s, c));
    char *text = json_dumps(o, JSON_COMPACT);
    memory_needed(text != NULL);
    json_decref(o);
    size_t n = strlen(text) - 1; /* it goes on */
    text = memory_resized(text, n + sizeof OPENS);
    memcpy(text + n, OPENS, sizeof OPENS);
    *length = n + sizeof OPENS - 1;
    return text;
}

/* ---- from who was waited for to who waited ---- */

#define ARROWS_MOST 64 /* of one collective: to those that waited longest */

/* Times of the axis instead of the file's. */
static void move_to_axis(const arrows *a, pki_joint *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const merge_source *s = &a->to->sources->all[all[i].source];
        all[i].start = pki_clocks_axis(a->to->clocks, &s->when, all[i].start);
        all[i].end = pki_clocks_axis(a->to->clocks, &s->when, all[i].end);
    }
}

/* Viewers find the two ends by category, name and id. */
static const char *name_of(const pki_joint *o)
{
    return o->kind >= PKI_JOINT_SEND ? "message" : pki_comm_op_name(o->op);
}

static bool put_end(arrows *a, const pki_joint *o, const char *phase, uint64_t at, uint64_t id)
{
    char text[256], *p = pki_put_string(text, phase);
    p = pki_put_string(PKI_PUT(p, ",\"cat\":\"ranks\",\"name\":\""), name_of(o));
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), o->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), o->tid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), at);
    p = pki_put_u64(PKI_PUT(p, ",\"id\":"), id);
    *p++ = '}';
    return copy_put(a->to, text, (size_t)(p - text));
}

static bool is_backwards(arrows *a, const pki_joint *from, const pki_joint *to)
{
    if (to->end >= from->start)
        return false;
    a->backwards++;
    a->worst_ns = PKI_MAX(from->start - to->end, a->worst_ns);
    return true;
}

/* From the beginning of the one to just before the end of the other: both lie in their slices. */
static void draw(arrows *a, const pki_joint *from, const pki_joint *to)
{
    if (is_backwards(a, from, to) || !from->written || !to->written || a->failed)
        return;
    uint64_t id = a->next_id++, end = to->end - (to->end > from->start);
    a->failed = !put_end(a, from, "{\"ph\":\"s\"", from->start, id) ||
                !put_end(a, to, "{\"ph\":\"f\",\"bp\":\"e\"", end, id);
    a->drawn++;
}

/* ---- messages ---- */

/* If one side has more, it is not known where the other begins, but in a run that was cut. */
static bool can_be_paired(const arrows *a, const pki_joint *all, size_t sends, size_t count)
{
    const merge_source *s = a->to->sources->all;
    return 2 * sends == count ||
           (sends && sends < count && (s[all[0].source].cut || s[all[sends].source].cut));
}

static void draw_messages(arrows *a, const pki_joint *all, size_t count)
{
    size_t sends = pki_joints_receives(all, count), receives = count - sends;
    size_t pairs = can_be_paired(a, all, sends, count) ? sends < receives ? sends : receives : 0;
    for (size_t i = 0; i < pairs; i++)
        draw(a, &all[i], &all[sends + i]);
    a->messages += pairs;
    a->alone += count - 2 * pairs;
}

/* ---- collectives ---- */

static int by_start(const void *x, const void *y)
{
    const pki_joint *one = x, *other = y;
    return one->start < other->start ? -1 : one->start > other->start;
}

static pki_joint last_of(const pki_joint *all, size_t count)
{
    const pki_joint *last = all;
    for (size_t i = 1; i < count; i++)
        last = all[i].start > last->start ? &all[i] : last;
    return *last;
}

/* All arrows of thousands of ranks would be too much for viewers. */
static void draw_or_check(arrows *a, const pki_joint *from, const pki_joint *to, size_t *drawn)
{
    if (from->rank == to->rank)
        return;
    if ((*drawn)++ < ARROWS_MOST)
        draw(a, from, to);
    else
        is_backwards(a, from, to);
}

/* Nobody could go on before the last one came. */
static void draw_all_to_all(arrows *a, pki_joint *all, size_t count)
{
    size_t drawn = 0;
    if (count > ARROWS_MOST)
        qsort(all, count, sizeof *all, by_start);
    const pki_joint last = last_of(all, count);
    for (size_t i = 0; i < count; i++)
        draw_or_check(a, &last, &all[i], &drawn);
}

static void draw_rooted(arrows *a, const pki_joint *all, size_t count)
{
    size_t drawn = 0;
    const pki_joint *root = NULL;
    for (size_t i = 0; i < count; i++)
        root = all[i].rank == all[i].peer ? &all[i] : root;
    for (size_t i = 0; root && i < count; i++) {
        bool gives = root->kind == PKI_JOINT_FROM;
        draw_or_check(a, gives ? root : &all[i], gives ? &all[i] : root, &drawn);
    }
}

static void draw_collective(arrows *a, pki_joint *all, size_t count)
{
    if (!pki_joints_are_one(all, count)) {
        a->ambiguous++;
        return;
    }
    if (count < 2) {
        a->alone++;
        return;
    }
    a->collectives++;
    if (all[0].kind == PKI_JOINT_ALL)
        draw_all_to_all(a, all, count);
    else if (all[0].kind != PKI_JOINT_LOOSE)
        draw_rooted(a, all, count);
}

static void draw_group(void *user, pki_joint *all, size_t count)
{
    arrows *a = user;
    move_to_axis(a, all, count);
    if (all[0].kind >= PKI_JOINT_SEND)
        draw_messages(a, all, count);
    else
        draw_collective(a, all, count);
}

bool arrows_put(arrows *a, pki_joints *o, complaint *why)
{
    a->next_id = copy_free_ids(a->to->sources);
    return joints_stored(pki_joints_each(o, draw_group, a), why) && !a->failed;
}

/* ---- the events of one trace after the other, into the merged one ---- */

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

/* One more event, without what stands before it. */
static bool copy_put(merge_copy *c, const char *text, size_t n)
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

/* Ids of events from this one on are nobody's. */
static uint64_t copy_free_ids(const merge_sources *s)
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

static bool is_arrow(const void *begun, uint32_t number, const void *sought)
{
    return ((const uint64_t *)begun)[number] == *(const uint64_t *)sought;
}

static bool has_begun(const merge_copy *c, uint64_t id)
{
    return pki_map_find(&c->begun_map, pki_map_hash(id, 0), is_arrow, c->begun, &id) !=
           PKI_MAP_NONE;
}

static void note_begun(merge_copy *c, uint64_t id)
{
    memory_needed(pki_array_fit(&c->begun, &c->begun_room, c->begun_count + 1, sizeof *c->begun) &&
                  pki_map_put(&c->begun_map, pki_map_hash(id, 0), (uint32_t)c->begun_count));
    c->begun[c->begun_count++] = id;
}

/* An end without its beginning is an error to some viewers. */
static bool is_inside(merge_copy *c, const merge_source *s, line l, const fields *f)
{
    uint64_t from = pki_clocks_axis(c->clocks, &s->when, f->start), id = 0;
    uint64_t to = f->length ? pki_clocks_axis(c->clocks, &s->when, f->start + f->length) : from;
    if (!c->range.limited)
        return true;
    bool inside = to >= c->range.from && from <= c->range.to;
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
    pki_map_finish(&c->begun_map);
    free(c->begun);
    c->begun = NULL;
    c->begun_count = c->begun_room = 0;
}

/* A damaged file is merged up to where it is whole. */
bool copy_source(merge_copy *c, merge_source *s)
{
    complaint trouble = {""};
    bool lengths = c->range.limited || c->clocks->count > 1;
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
