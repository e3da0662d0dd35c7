#include "trace/event.h"

#include "measure/summary.h"
#include "out/chrome/activity.h"
#include "out/chrome/operation.h"
#include "out/chrome/span.h"
#include "out/emit.h"
#include "trace/scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static event_type type_of_slice(event *e, object o)
{
    const char *cat = object_text(o, "cat");
    bool step = strncmp(e->name, STEP_PREFIX, strlen(STEP_PREFIX)) == 0;
    bool annotation = strcmp(cat, "user_annotation") == 0;
    if (strcmp(cat, "collective") == 0)
        return read_operation(e, o);
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
