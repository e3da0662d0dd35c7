/* tools/trace/event.c - one event of a Chrome trace, as far as a report needs it */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "comm/model/communicator.h"
#include "out/chrome/events.h"
#include "out/emit.h"
#include "trace/trace.h"

static bool event_read_activity(event *e, object o, const char *cat);
static void event_read_comm(event *e, object o);
static void event_read_progress(event *e);

/* ---- the members of a JSON object, whoever read it ---- */

member object_of_tree(json_t *json)
{
    member v = {.type = json ? VALUE_OTHER : VALUE_NONE};
    if (json_is_string(json)) {
        v.type = VALUE_TEXT;
        v.text = json_string_value(json);
    } else if (json_is_integer(json)) {
        v.type = VALUE_INTEGER;
        v.integer = json_integer_value(json);
    } else if (json_is_real(json)) {
        v.type = VALUE_REAL;
        v.real = json_real_value(json);
    }
    return v;
}

member object_of_flat(const flat_member *m)
{
    member v = {.type = m->type, .integer = m->integer, .length = m->length};
    if (m->type == VALUE_TEXT)
        v.text = m->text;
    else if (m->type != VALUE_OTHER)
        v.digits = m->text;
    return v;
}

object object_args(object o)
{
    if (o.members)
        return (object){.members = o.args};
    json_t *args = json_object_get(o.tree, "args");
    return (object){.tree = json_is_object(args) ? args : NULL};
}

static bool next_of_tree(json_t *tree, object_cursor *at, const char **key, member *v)
{
    at->member = at->begun ? json_object_iter_next(tree, at->member) : json_object_iter(tree);
    at->begun = true;
    if (!at->member)
        return false;
    *key = json_object_iter_key(at->member);
    *v = object_of_tree(json_object_iter_value(at->member));
    return true;
}

bool object_next(object o, object_cursor *at, const char **key, member *v)
{
    if (!o.members)
        return o.tree && next_of_tree(o.tree, at, key, v);
    if (at->next >= o.members->count)
        return false;
    *key = o.members->members[at->next].key;
    *v = object_of_flat(&o.members->members[at->next++]);
    return true;
}

/* What stands behind the digits ends the number. */
double value_number(const member *v)
{
    if (v->type == VALUE_INTEGER)
        return (double)v->integer;
    return v->type == VALUE_REAL ? v->digits ? strtod(v->digits, NULL) : v->real : 0;
}

/* ---- one event of a Chrome trace, as far as a report needs it ---- */

#define STEP_PREFIX "ProfilerStep#"
#define BETWEEN_STEPS "between steps"
#define STEP_TRACK 4294967294 /* perfkit's for steps: no thread (lib/out/chrome/chrome.c) */

static uint64_t count_of(object o, const char *key)
{
    member v = object_get(o, key);
    if (v.type != VALUE_REAL)
        return v.integer > 0 ? (uint64_t)v.integer : 0;
    double real = value_number(&v); /* perfkit's integers from 2^63 on are */
    return real > 0 ? real < 0x1p64 ? (uint64_t)real : UINT64_MAX : 0;
}

/* Of a trace anything may be said. */
static double number_of(object o, const char *key)
{
    member v = object_get(o, key);
    double number = value_is_number(&v) ? value_number(&v) : 0;
    return number > 0 && number <= 1e38 ? number : 0;
}

/* The colours of kinds in perfkit's traces (lib/out/chrome/chrome.c). */
static uint32_t kind_of(object o)
{
    static const char *const colours[PKI_KINDS] = {
        [PK_OTHER] = "",
        [PK_COMPUTE] = "thread_state_running",
        [PK_DATA] = "rail_load",
        [PK_COMM] = "rail_response",
        [PK_IO] = "thread_state_iowait",
        [PK_WAIT] = "thread_state_sleeping",
    };
    const char *colour = object_text(o, "cname");
    for (uint32_t k = 0; k < PKI_KINDS; k++)
        if (strcmp(colour, colours[k]) == 0)
            return k;
    return PK_OTHER;
}

static char *put_part(char *p, const member *part)
{
    if (part->type == VALUE_TEXT)
        return p + snprintf(p, 31, "%.30s", part->text);
    return pki_put_i64(p, part->integer);
}

static void put_track(char *p, const member *pid, const member *tid)
{
    p = put_part(p, pid);
    *p++ = '/';
    *put_part(p, tid) = '\0';
}

/* ps: see scan_ps. */
static bool read_exactly(object o, const char *text, size_t length, const char *key, uint64_t *ns,
                         uint32_t *ps)
{
    member v = object_get(o, key);
    *ps = v.digits ? scan_ps(v.digits, v.length) : 0;
    if (v.digits)
        return scan_us(v.digits, v.length, ns);
    if (text && o.tree)
        return scan_member_us(text, length, key, ns, ps);
    double us = value_number(&v);
    if (!value_is_number(&v) || !(us >= 0) || us * 1000 > (double)SCAN_MOST)
        return false;
    *ns = (uint64_t)llround(us * 1000);
    return true;
}

static bool read_time(object o, const char *text, size_t length, const char *key, uint64_t *ns)
{
    uint32_t ps;
    return read_exactly(o, text, length, key, ns, &ps);
}

static bool read_span(event *e, object o, const char *text, size_t length)
{
    uint64_t duration;
    uint32_t start_ps, duration_ps;
    if (!read_exactly(o, text, length, "ts", &e->start, &start_ps) ||
        !read_exactly(o, text, length, "dur", &duration, &duration_ps))
        return false;
    e->end = e->start + duration;
    e->lacks = PKI_MIN(scan_lack(start_ps, duration_ps), e->start);
    return true;
}

static bool read_step(event *e, object o)
{
    const char *number = e->name + strlen(STEP_PREFIX);
    char *end;
    member pid = object_get(o, "pid"), tid = object_get(o, "tid");
    member thread = object_get(e->args, "thread");
    if (*number < '0' || *number > '9')
        return false;
    e->index = strtoull(number, &end, 10);
    e->items = count_of(e->args, "items");
    e->model = number_of(e->args, "model_flops");
    e->hardware = number_of(e->args, "hardware_flops");
    e->step_kind = object_text(e->args, "kind");
    if (thread.type != VALUE_INTEGER)
        thread = tid.integer == STEP_TRACK ? pid : tid;
    put_track(e->stepper, &pid, &thread);
    return *end == '\0';
}

/* Anybody's region may have this name; on that track it is perfkit's. */
static bool is_between_steps(event *e, object o)
{
    member pid = object_get(o, "pid"), tid = object_get(o, "tid");
    member thread = object_get(e->args, "thread");
    if (strcmp(e->name, BETWEEN_STEPS) != 0 || tid.type != VALUE_INTEGER ||
        tid.integer != STEP_TRACK || thread.type != VALUE_INTEGER)
        return false;
    put_track(e->stepper, &pid, &thread);
    return true;
}

static event_type read_operation(event *e, object o)
{
    e->bytes = count_of(e->args, "bytes");
    event_read_activity(e, o, "collective");
    event_read_comm(e, o);
    return e->comm.op ? EVENT_COMM : EVENT_OTHER;
}

/* perfkit's tracks beside those of threads, and Linux gives out no such number
 * (session/backend.c). Others count their threads as they like: there a call is part of its
 * thread's time. */
#define BESIDE_FROM (1u << 29)
#define BESIDE_TO (1u << 31)

static bool is_beside(const event *e)
{
    return e->tid >= BESIDE_FROM && e->tid < BESIDE_TO;
}

static event_type type_of_slice(event *e, object o)
{
    const char *cat = object_text(o, "cat");
    bool step = strncmp(e->name, STEP_PREFIX, strlen(STEP_PREFIX)) == 0;
    bool annotation = strcmp(cat, "user_annotation") == 0;
    if (strcmp(cat, "collective") == 0)
        return read_operation(e, o);
    if (strcmp(cat, PKI_CHROME_STATE) == 0 && is_beside(e))
        return EVENT_STATE;
    if (event_read_activity(e, o, cat))
        return EVENT_ACTIVITY;
    if (annotation && is_between_steps(e, o))
        return EVENT_BETWEEN;
    if (annotation && step)
        return read_step(e, o) ? EVENT_STEP : EVENT_OTHER;
    e->kind = kind_of(o);
    e->bytes = count_of(e->args, "bytes");
    e->flops = count_of(e->args, "flops");
    e->unbalanced = count_of(e->args, "unbalanced") > 0;
    e->cut_off = count_of(e->args, "cut_off") > 0;
    event_read_comm(e, o);
    return EVENT_REGION;
}

static event_type type_of_metadata(event *e)
{
    bool thread = strcmp(e->name, "thread_name") == 0;
    if (!thread && strcmp(e->name, "process_name") != 0)
        return EVENT_OTHER;
    e->name = object_text(e->args, "name");
    return thread ? EVENT_THREAD_NAME : EVENT_PROCESS_NAME;
}

static event_type type_of_mark(event *e, object o, const char *text, size_t length)
{
    bool ours = strcmp(object_text(o, "cat"), "perfkit") == 0;
    if (ours && strcmp(e->name, PKI_CHROME_PROGRESS) == 0) {
        event_read_progress(e);
        return EVENT_PROGRESS;
    }
    bool timed = read_time(o, text, length, "ts", &e->start);
    e->on = strcmp(e->name, PKI_CHROME_MEASURES) == 0;
    bool told = e->on || strcmp(e->name, PKI_CHROME_MEASURES_NOT) == 0;
    if (!told || !ours)
        return EVENT_MARK;
    return timed ? EVENT_MEASURES : EVENT_OTHER;
}

static event_type type_of_span(event *e, object o, char phase)
{
    e->kind = kind_of(o);
    e->span = count_of(o, "id");
    e->since = count_of(e->args, "since_ns");
    if (phase == 'n' && object_text(e->args, "outcome")[0])
        return EVENT_REQUEST;
    if (phase == 'e' && count_of(e->args, "unfinished"))
        return EVENT_OTHER; /* for viewers: it is still open */
    return phase == 'b' ? EVENT_SPAN_BEGIN : phase == 'e' ? EVENT_SPAN_END : EVENT_SPAN_MARK;
}

static event_type type_of_pair(event *e, object o, const char *text, size_t length, char phase)
{
    if (strcmp(object_text(o, "cat"), PKI_CHROME_SPAN) == 0)
        return read_time(o, text, length, "ts", &e->start) ? type_of_span(e, o, phase)
                                                           : EVENT_OTHER;
    if (phase == 'n' || strcmp(object_text(o, "cat"), "collective") != 0 ||
        !read_time(o, text, length, "ts", &e->start))
        return EVENT_OTHER;
    e->bytes = count_of(e->args, "bytes");
    event_read_comm(e, o);
    return phase == 'b' ? EVENT_COMM_BEGIN : EVENT_COMM_END;
}

void event_read(event *e, object o, const char *text, size_t length)
{
    const char *phase = object_text(o, "ph");
    e->type = EVENT_OTHER;
    e->line = 0;
    if (!phase[0] || phase[1] || !strchr("XMCbneiI", phase[0])) /* arrows: a third of all */
        return;
    member pid = object_get(o, "pid"), tid = object_get(o, "tid");
    *e = (event){.name = object_text(o, "name"), .args = object_args(o)};
    put_track(e->track, &pid, &tid);
    e->tid = tid.integer > 0 && tid.integer <= UINT32_MAX ? (uint32_t)tid.integer : 0;
    if (strcmp(phase, "X") == 0)
        e->type = read_span(e, o, text, length) ? type_of_slice(e, o) : EVENT_OTHER;
    else if (strcmp(phase, "M") == 0)
        e->type = type_of_metadata(e);
    else if (strcmp(phase, "C") == 0)
        e->type = read_time(o, text, length, "ts", &e->start) ? EVENT_COUNTER : EVENT_OTHER;
    else if (strchr("bne", *phase))
        e->type = type_of_pair(e, o, text, length, *phase);
    else if (strcmp(phase, "i") == 0 || strcmp(phase, "I") == 0)
        e->type = type_of_mark(e, o, text, length);
}

uint64_t event_count(const event *e, const char *key)
{
    return count_of(e->args, key);
}

bool event_next_sample(const event *e, object_cursor *at, const char **unit, double *value)
{
    member v;
    while (object_next(e->args, at, unit, &v)) {
        *value = value_number(&v);
        if (value_is_number(&v) && isfinite(*value))
            return true;
    }
    return false;
}

/* ---- operations on communicators, from a trace's events ---- */

static uint64_t number(object o, const char *key)
{
    int64_t n = object_integer(o, key);
    return n > 0 ? (uint64_t)n : 0;
}

static uint32_t at_most_32(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

#define SHARERS_MOST 65536 /* of a file that may say anything */

static uint32_t sharers(object args, const char *key)
{
    uint32_t n = at_most_32(number(args, key));
    return n == 0 ? 1 : n < SHARERS_MOST ? n : SHARERS_MOST;
}

/* A rank or a tag. */
static int32_t number_or_none(object args, const char *key)
{
    member v = object_get(args, key);
    bool fits = v.type == VALUE_INTEGER && v.integer >= 0 && v.integer <= INT32_MAX;
    return fits ? (int32_t)v.integer : -1;
}

static int32_t read_peer(object args)
{
    static const char *const keys[] = {"Dst Rank", "Src Rank", "Root"};
    int32_t peer = -1;
    for (size_t i = 0; peer < 0 && i < sizeof keys / sizeof *keys; i++)
        peer = number_or_none(args, keys[i]);
    return peer;
}

static void read_who(event *e)
{
    event_comm *c = &e->comm;
    member rank = object_get(e->args, "Rank");
    c->name = object_text(e->args, "Process Group Name");
    c->library = object_text(e->args, "Process Group Description");
    c->ranks = at_most_32(number(e->args, "Group size"));
    c->rank = rank.type == VALUE_INTEGER ? (int32_t)rank.integer : -1;
}

static void event_read_progress(event *e)
{
    read_who(e);
    e->comm.enqueued = number(e->args, "enqueued");
    e->comm.started = number(e->args, "started");
    e->comm.completed = number(e->args, "completed");
    e->comm.under_way = number(e->args, "under way");
}

/* Fills in comm, if there is one. */
static void event_read_comm(event *e, object o)
{
    event_comm *c = &e->comm;
    c->id = number(o, "id");
    c->op = object_get(e->args, "Collective name").text;
    if (!c->op)
        return;
    read_who(e);
    c->peer = read_peer(e->args);
    c->tag = number_or_none(e->args, "Tag");
    c->sequence = number(e->args, "Seq");
    c->exposed = number(e->args, "exposed_ns");
    c->in_flight = at_most_32(number(e->args, "in flight"));
    c->in_flight += c->in_flight == 0;
    c->calls = sharers(e->args, PKI_COMM_CALLS);
    c->sharers = sharers(e->args, PKI_COMM_SHARERS);
    const char *timed = object_text(e->args, PKI_COMM_TIMED);
    c->on_stream = strcmp(timed, PKI_COMM_BY_STREAM) == 0;
    c->unrated = *timed && !c->on_stream && strcmp(timed, PKI_COMM_BY_KERNEL) != 0;
    c->algorithm = object_text(e->args, "algorithm");
    c->protocol = object_text(e->args, "protocol");
    c->channels = at_most_32(number(e->args, "channels"));
    c->unfinished = number(e->args, "unfinished") > 0;
}

/* ---- what devices and libraries did, from a trace's events ---- */

#define DEVICES_MOST 4096 /* a pid up to that may be one */

static const struct {
    const char *cat;
    pki_activity_kind kind;
    bool beside; /* only on such a track */
} kinds[] = {
    {"kernel", PKI_ACTIVITY_KERNEL, false},
    {"gpu_memcpy", PKI_ACTIVITY_MEMCPY, false},
    {"gpu_memset", PKI_ACTIVITY_MEMSET, false},
    {"gpu_user_annotation", PKI_ACTIVITY_SPAN, false},
    {"cuda_sync", PKI_ACTIVITY_SYNC, false},
    {"cuda_event", PKI_ACTIVITY_EVENT, false},
    {"overhead", PKI_ACTIVITY_OVERHEAD, false},
    {"cuda_runtime", PKI_ACTIVITY_RUNTIME, true},
    {"cuda_driver", PKI_ACTIVITY_DRIVER, true},
    {"user_annotation", PKI_ACTIVITY_RANGE, true},
    {"collective", PKI_ACTIVITY_OPERATION, false},
};

/* PyTorch's profiler and perfkit name copies alike: "Memcpy HtoD (Pinned -> Device)". */
static pki_copy copy_of(const char *name)
{
    static const struct {
        const char *way;
        pki_copy copy;
    } ways[] = {{"HtoD", PKI_COPY_HTOD}, {"HtoA", PKI_COPY_HTOD}, {"DtoH", PKI_COPY_DTOH},
                {"AtoH", PKI_COPY_DTOH}, {"DtoD", PKI_COPY_DTOD}, {"AtoA", PKI_COPY_DTOD},
                {"AtoD", PKI_COPY_DTOD}, {"DtoA", PKI_COPY_DTOD}, {"HtoH", PKI_COPY_HTOH},
                {"PtoP", PKI_COPY_PTOP}};
    for (size_t i = 0; i < PKI_COUNT_OF(ways); i++)
        if (strstr(name, ways[i].way))
            return ways[i].copy;
    return PKI_COPY_UNKNOWN;
}

static bool small(object o, const char *key, int64_t below, uint32_t *out)
{
    member v = object_get(o, key);
    if (v.type != VALUE_INTEGER || v.integer < 0 || v.integer >= below)
        return false;
    *out = (uint32_t)v.integer;
    return true;
}

/* In PyTorch's traces annotations of a device have no argument that says which: it is the pid. */
static uint32_t device_of(const event *e, object o)
{
    uint32_t device;
    if (small(e->args, "device", PKI_NO_DEVICE, &device))
        return device;
    bool told = e->activity.kind == PKI_ACTIVITY_SYNC || e->activity.kind == PKI_ACTIVITY_OPERATION;
    return !told && small(o, "pid", DEVICES_MOST, &device) ? device : PKI_NO_DEVICE;
}

static bool find_kind(event *e, const char *cat)
{
    for (size_t i = 0; i < PKI_COUNT_OF(kinds); i++)
        if (strcmp(cat, kinds[i].cat) == 0 && (is_beside(e) || !kinds[i].beside)) {
            e->activity.kind = kinds[i].kind;
            return true;
        }
    return false;
}

/* The slice, which has been read so far, as an activity; false if it is none, but a
 * thread's own time. */
static bool event_read_activity(event *e, object o, const char *cat)
{
    pki_activity *a = &e->activity;
    if (!find_kind(e, cat))
        return false;
    a->name = e->name;
    a->name_length = strlen(e->name);
    a->start = e->start;
    a->end = e->end;
    a->device = device_of(e, o);
    int64_t bytes = object_integer(e->args, "bytes");
    a->bytes = bytes > 0 ? (uint64_t)bytes : 0;
    if (!small(e->args, "context", UINT32_MAX, &a->context))
        a->context = 0;
    if (!small(e->args, "stream", UINT32_MAX, &a->stream) &&
        !small(e->args, "on_stream", UINT32_MAX, &a->stream))
        a->stream = 0;
    if (a->kind == PKI_ACTIVITY_KERNEL && object_integer(e->args, PKI_CHROME_WHOLE_GRAPH) == 1)
        a->kind = PKI_ACTIVITY_GRAPH;
    if (a->kind == PKI_ACTIVITY_MEMCPY)
        a->copy = copy_of(e->name);
    return true;
}

const char *event_launcher(const event *e)
{
    return object_text(e->args, "region");
}
