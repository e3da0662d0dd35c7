#include "out/chrome/activity.h"

#include <string.h>

#include "base/text.h"
#include "out/chrome/operation.h"
#include "out/emit.h"

/* The room of an event: every variable part has its share, fixed ones need less than the rest. */
#define NAME_BYTES 1536
#define REGION_BYTES 512
#define TEXT_BYTES 384

static const char *const categories[PKI_ACTIVITY_KINDS] = {[PKI_ACTIVITY_SPAN] =
                                                               "gpu_user_annotation",
                                                           [PKI_ACTIVITY_KERNEL] = "kernel",
                                                           [PKI_ACTIVITY_GRAPH] = "kernel",
                                                           [PKI_ACTIVITY_MEMCPY] = "gpu_memcpy",
                                                           [PKI_ACTIVITY_MEMSET] = "gpu_memset",
                                                           [PKI_ACTIVITY_RUNTIME] = "cuda_runtime",
                                                           [PKI_ACTIVITY_DRIVER] = "cuda_driver",
                                                           [PKI_ACTIVITY_SYNC] = "cuda_sync",
                                                           [PKI_ACTIVITY_OVERHEAD] = "overhead",
                                                           [PKI_ACTIVITY_OPERATION] = "collective",
                                                           [PKI_ACTIVITY_RANGE] = "user_annotation",
                                                           [PKI_ACTIVITY_EVENT] = "cuda_event"};

static char *put_escaped(char *p, size_t room, const char *s, size_t n)
{
    return p + pki_json_escape(p, room, s, n);
}

static char *put_signed(char *p, const char *key, int64_t value)
{
    p = pki_put_text(PKI_PUT(p, ",\""), key);
    return pki_put_i64(PKI_PUT(p, "\":"), value);
}

static char *put_text(char *p, const char *key, const char *text, size_t n, size_t room)
{
    p = pki_put_text(PKI_PUT(p, ",\""), key);
    p = put_escaped(PKI_PUT(p, "\":\""), room, text, n);
    *p++ = '"';
    return p;
}

static char *put_three(char *p, const char *key, const uint32_t three[3])
{
    p = pki_put_text(PKI_PUT(p, ",\""), key);
    p = PKI_PUT(p, "\":[");
    for (int i = 0; i < 3; i++) {
        p = pki_put_u64(p, three[i]);
        *p++ = i < 2 ? ',' : ']';
    }
    return p;
}

static char *put_where(char *p, const pki_track *track, uint64_t ns)
{
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), track->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), track->tid);
    return pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
}

static bool runs_on_device(const pki_activity *a)
{
    return a->kind == PKI_ACTIVITY_KERNEL || a->kind == PKI_ACTIVITY_GRAPH ||
           a->kind == PKI_ACTIVITY_MEMCPY || a->kind == PKI_ACTIVITY_MEMSET;
}

/* What has a "stream" is a kernel to PyTorch's tools. */
static bool shows_stream_aside(const pki_activity *a)
{
    return a->kind == PKI_ACTIVITY_SPAN || a->kind == PKI_ACTIVITY_OPERATION ||
           a->kind == PKI_ACTIVITY_SYNC;
}

static char *put_device(char *p, const pki_activity *a)
{
    if (a->device != PKI_NO_DEVICE)
        p = pki_put_field(p, "device", a->device);
    if (a->context)
        p = pki_put_field(p, "context", a->context);
    if (a->stream && !a->stream_hidden)
        p = pki_put_field(p, "stream", a->stream);
    else if (a->stream && shows_stream_aside(a))
        p = pki_put_field(p, "on_stream", a->stream);
    return p;
}

static char *put_kernel(char *p, const pki_activity *a)
{
    p = pki_put_field(p, "queued", a->queued);
    p = pki_put_field(p, "registers per thread", a->registers);
    p = pki_put_field(p, "shared memory", a->shared_bytes);
    p = put_three(p, "grid", a->grid);
    return put_three(p, "block", a->block);
}

/* Bytes, and what moves them how fast. */
static char *put_bytes(char *p, const pki_activity *a)
{
    p = pki_put_field(p, "bytes", a->bytes);
    if (a->end <= a->start || !runs_on_device(a))
        return p;
    p = PKI_PUT(p, ",\"memory bandwidth (GB/s)\":");
    return pki_put_double(p, (double)a->bytes / (double)(a->end - a->start));
}

static char *put_more(char *p, const char *end, const pki_activity *a)
{
    for (size_t i = 0; i < a->arg_count; i++) {
        const pki_activity_arg *arg = &a->args[i];
        size_t key = strlen(arg->key);
        if ((size_t)(end - p) < key + TEXT_BYTES + 8)
            break;
        p = arg->text ? put_text(p, arg->key, arg->text, strlen(arg->text), TEXT_BYTES)
                      : put_signed(p, arg->key, arg->number);
    }
    return p;
}

/* Nothing at all if there are none: speedscope shows empty ones as part of the name. */
static char *put_args(char *out, const char *end, const pki_chrome *c, const pki_activity *a,
                      const char *region, size_t n)
{
    char *p, *start = PKI_PUT(out, ",\"args\":{");
    p = put_device(start, a);
    if (a->correlation)
        p = pki_put_field(p, "correlation", a->correlation);
    if (a->external)
        p = pki_put_field(p, "External id", a->external);
    if (a->kind == PKI_ACTIVITY_KERNEL)
        p = put_kernel(p, a);
    if (a->bytes || a->kind == PKI_ACTIVITY_MEMCPY || a->kind == PKI_ACTIVITY_MEMSET)
        p = put_bytes(p, a);
    if (a->graph)
        p = pki_put_field(p, "graph id", a->graph);
    if (a->graph_node)
        p = pki_put_field(p, "graph node id", a->graph_node);
    if (region)
        p = put_text(p, "region", region, n, REGION_BYTES);
    if (a->operation && end - p > PKI_OPERATION_BYTES)
        p = pki_chrome_put_operation(p, c, a->operation);
    p = put_more(p, end, a);
    if (p == start)
        return out;
    memmove(start, start + 1, (size_t)(p - start - 1)); /* the first has no comma */
    p[-1] = '}';
    return p;
}

static char *put_duration(char *p, const pki_activity *a)
{
    uint64_t duration = pki_saturating_sub(a->end, a->start);
    p = PKI_PUT(p, ",\"dur\":");
    return a->level ? pki_chrome_put_early(p, duration, a->level - 1, 0) : pki_put_us(p, duration);
}

/* The arrow starts at the launch and binds to what encloses its end: the kernel. */
static char *put_arrow(char *p, const pki_track *track, const pki_activity *a, uint64_t id)
{
    p = runs_on_device(a)
            ? PKI_PUT(p, ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g")
            : PKI_PUT(p, ",\n{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g");
    p = put_where(p, track, a->start);
    p = pki_put_u64(PKI_PUT(p, ",\"id\":"), id);
    *p++ = '}';
    return p;
}

size_t pki_chrome_activity(const pki_chrome *c, char out[PKI_EVENT_BYTES], const pki_track *track,
                           const pki_activity *a, const char *region, size_t n)
{
    const char *end = out + PKI_EVENT_BYTES - 256; /* an arrow's room */
    char *p = pki_put_text(PKI_PUT(out, ",\n{\"ph\":\"X\",\"cat\":\""), categories[a->kind]);
    p = put_escaped(PKI_PUT(p, "\",\"name\":\""), NAME_BYTES, a->name, a->name_length);
    p = put_where(p, track, a->start);
    p = put_duration(p, a);
    p = put_args(p, end, c, a, region, n);
    *p++ = '}';
    if (a->flow && a->correlation)
        p = put_arrow(p, track, a, c->id_base + a->correlation);
    return (size_t)(p - out);
}

size_t pki_chrome_measures(char out[PKI_EVENT_BYTES], uint32_t pid, uint64_t ns, bool on)
{
    char *p = PKI_PUT(out, ",\n{\"ph\":\"i\",\"cat\":\"perfkit\",\"s\":\"p\",\"name\":\"");
    p = pki_put_text(p, on ? PKI_CHROME_MEASURES : PKI_CHROME_MEASURES_NOT);
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), pid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
    *p++ = '}';
    return (size_t)(p - out);
}

static char *put_meta(char *p, const pki_track *track, const char *what)
{
    p = pki_put_text(PKI_PUT(p, ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\""), what);
    return PKI_PUT(put_where(p, track, 0), ",\"args\":{");
}

static char *put_meta_name(char *p, const pki_track *track, const char *what, const char *name)
{
    p = PKI_PUT(put_meta(p, track, what), "\"name\":\"");
    p = put_escaped(p, TEXT_BYTES, name, strlen(name));
    return PKI_PUT(p, "\"}}");
}

static char *put_meta_sort(char *p, const pki_track *track, const char *what, uint32_t sort)
{
    p = pki_put_u64(PKI_PUT(put_meta(p, track, what), "\"sort_index\":"), sort);
    return PKI_PUT(p, "}}");
}

size_t pki_chrome_track(char out[PKI_EVENT_BYTES], const pki_track *track)
{
    char *p = out;
    if (track->process) {
        p = put_meta_name(p, track, "process_name", track->process);
        p = put_meta_sort(p, track, "process_sort_index", track->pid);
    }
    p = put_meta_name(p, track, "thread_name", track->thread);
    return (size_t)(put_meta_sort(p, track, "thread_sort_index", track->sort) - out);
}
