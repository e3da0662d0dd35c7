/* tools/trace/event_device.c - what devices and libraries did, from a trace's events. */
#include "trace/event.h"

#include <string.h>

#include "base/compiler.h"

/* perfkit's tracks beside those of threads, and Linux gives out no such number
 * (session/activity.c). Others count their threads as they like: there a call is part of its
 * thread's time. */
#define BESIDE_FROM (1u << 29)
#define BESIDE_TO (1u << 31)

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

static bool is_beside(const event *e)
{
    return e->tid >= BESIDE_FROM && e->tid < BESIDE_TO;
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

bool event_read_activity(event *e, object o, const char *cat)
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
    if (a->kind == PKI_ACTIVITY_MEMCPY)
        a->copy = copy_of(e->name);
    return true;
}

const char *event_launcher(const event *e)
{
    return object_text(e->args, "region");
}
