#include "rebuild/event.h"

#include "measure/summary.h"
#include "out/chrome/activity.h"
#include "read/scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_PREFIX "ProfilerStep#"
#define STEP_TRACK 4294967294 /* perfkit's track for steps: not a thread (lib/out/chrome/chrome.c) */

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t count_of(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    json_int_t count = json_integer_value(value);
    double real = json_real_value(value); /* perfkit's integers from 2^63 on are */
    if (json_is_real(value))
        return real > 0 ? real < 0x1p64 ? (uint64_t)real : UINT64_MAX : 0;
    return count > 0 ? (uint64_t)count : 0;
}

/* The colours by which perfkit's traces tell kinds (lib/out/chrome/chrome.c). */
static uint32_t kind_of(json_t *value)
{
    static const char *const colours[PKI_KINDS] = {
        [PK_OTHER] = "",
        [PK_COMPUTE] = "thread_state_running",
        [PK_DATA] = "rail_load",
        [PK_COMM] = "rail_response",
        [PK_IO] = "thread_state_iowait",
        [PK_WAIT] = "thread_state_sleeping",
    };
    const char *colour = text_of(value, "cname");
    for (uint32_t k = 0; k < PKI_KINDS; k++)
        if (strcmp(colour, colours[k]) == 0)
            return k;
    return PK_OTHER;
}

static void put_part(char *out, size_t size, json_t *part)
{
    if (json_is_string(part))
        snprintf(out, size, "%.30s", json_string_value(part));
    else
        snprintf(out, size, "%lld", (long long)json_integer_value(part));
}

static void put_track(char *out, json_t *pid, json_t *tid)
{
    char process[34], thread[34];
    put_part(process, sizeof process, pid);
    put_part(thread, sizeof thread, tid);
    snprintf(out, EVENT_TRACK, "%s/%s", process, thread);
}

static bool read_time(json_t *value, const char *text, size_t length, const char *key, uint64_t *ns)
{
    if (text)
        return scan_member_us(text, length, key, ns);
    json_t *member = json_object_get(value, key);
    double us = json_number_value(member);
    if (!json_is_number(member) || !(us >= 0) || us * 1000 > (double)SCAN_MOST)
        return false;
    *ns = (uint64_t)llround(us * 1000);
    return true;
}

static bool read_span(event *e, json_t *value, const char *text, size_t length)
{
    uint64_t duration;
    if (!read_time(value, text, length, "ts", &e->start) ||
        !read_time(value, text, length, "dur", &duration))
        return false;
    e->end = e->start + duration;
    return true;
}

static bool read_step(event *e, json_t *value)
{
    const char *number = e->name + strlen(STEP_PREFIX);
    char *end;
    json_t *pid = json_object_get(value, "pid"), *tid = json_object_get(value, "tid");
    json_t *thread = json_object_get(e->args, "thread");
    if (*number < '0' || *number > '9')
        return false;
    e->index = strtoull(number, &end, 10);
    e->items = count_of(e->args, "items");
    if (!json_is_integer(thread))
        thread = json_integer_value(tid) == STEP_TRACK ? pid : tid;
    put_track(e->stepper, pid, thread);
    return *end == '\0';
}

static event_type read_operation(event *e, json_t *value)
{
    e->bytes = count_of(e->args, "bytes");
    event_read_comm(e, value);
    return e->comm.op ? EVENT_COMM : EVENT_OTHER;
}

static event_type type_of_slice(event *e, json_t *value)
{
    const char *cat = text_of(value, "cat");
    bool step = strncmp(e->name, STEP_PREFIX, strlen(STEP_PREFIX)) == 0;
    if (event_read_activity(e, value, cat))
        return EVENT_ACTIVITY;
    if (strcmp(cat, "collective") == 0)
        return read_operation(e, value);
    if (step && strcmp(cat, "user_annotation") == 0)
        return read_step(e, value) ? EVENT_STEP : EVENT_OTHER;
    e->kind = kind_of(value);
    e->bytes = count_of(e->args, "bytes");
    e->flops = count_of(e->args, "flops");
    e->unbalanced = count_of(e->args, "unbalanced") > 0;
    event_read_comm(e, value);
    return EVENT_REGION;
}

static event_type type_of_metadata(event *e)
{
    bool thread = strcmp(e->name, "thread_name") == 0;
    if (!thread && strcmp(e->name, "process_name") != 0)
        return EVENT_OTHER;
    e->name = text_of(e->args, "name");
    return thread ? EVENT_THREAD_NAME : EVENT_PROCESS_NAME;
}

static event_type type_of_mark(event *e, json_t *value, const char *text, size_t length)
{
    e->on = strcmp(e->name, PKI_CHROME_MEASURES) == 0;
    bool told = e->on || strcmp(e->name, PKI_CHROME_MEASURES_NOT) == 0;
    if (!told || strcmp(text_of(value, "cat"), "perfkit") != 0)
        return EVENT_MARK;
    return read_time(value, text, length, "ts", &e->start) ? EVENT_MEASURES : EVENT_OTHER;
}

static event_type type_of_pair(event *e, json_t *value, const char *text, size_t length, bool begin)
{
    if (strcmp(text_of(value, "cat"), "collective") != 0 ||
        !read_time(value, text, length, "ts", &e->start))
        return EVENT_OTHER;
    e->bytes = count_of(e->args, "bytes");
    event_read_comm(e, value);
    return begin ? EVENT_COMM_BEGIN : EVENT_COMM_END;
}

void event_read(event *e, json_t *value, const char *text, size_t length)
{
    json_t *tid = json_object_get(value, "tid"), *args = json_object_get(value, "args");
    json_int_t number = json_integer_value(tid);
    const char *phase = text_of(value, "ph");
    *e = (event){.name = text_of(value, "name"), .args = json_is_object(args) ? args : NULL};
    put_track(e->track, json_object_get(value, "pid"), tid);
    e->tid = number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
    if (strcmp(phase, "X") == 0)
        e->type = read_span(e, value, text, length) ? type_of_slice(e, value) : EVENT_OTHER;
    else if (strcmp(phase, "M") == 0)
        e->type = type_of_metadata(e);
    else if (strcmp(phase, "C") == 0 && e->args)
        e->type = read_time(value, text, length, "ts", &e->start) ? EVENT_COUNTER : EVENT_OTHER;
    else if (strcmp(phase, "b") == 0 || strcmp(phase, "e") == 0)
        e->type = type_of_pair(e, value, text, length, *phase == 'b');
    else if (strcmp(phase, "i") == 0 || strcmp(phase, "I") == 0)
        e->type = type_of_mark(e, value, text, length);
}
