#include "out/chrome/events.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "core/record.h"
#include "out/emit.h"

static char *pki_chrome_put_request(char *p, const pki_record *record, const pki_record *more);

/* ---- what an operation on a communicator says of itself in the trace ---- */

#define NAME_ROOM 384 /* of an escaped name */

static char *put_string(char *p, const char *key, const char *text, size_t n)
{
    p = pki_put_string(p, key);
    p = PKI_PUT(p, "\"");
    p += pki_json_escape(p, NAME_ROOM, text, n);
    return PKI_PUT(p, "\"");
}

static char *put_text(char *p, const char *key, const char *text)
{
    return put_string(p, key, text, strlen(text));
}

/* Perfetto shows integers beyond 63 bits as -1. */
static char *put_count(char *p, const char *key, uint64_t n)
{
    return pki_put_u64(pki_put_string(p, key), PKI_MIN(n, (uint64_t)INT64_MAX));
}

static char *put_rank(char *p, const char *key, int32_t n)
{
    return pki_put_i64(pki_put_string(p, key), n);
}

/* ---- the one list of arguments ---- */

/* Who the ranks are is known if they are all of the job, in its order as far as is known. */
static char *put_ranks(char *p, const pki_chrome *c, const pki_operation *o)
{
    if (!c->ranks_length || o->size != c->world_size || o->rank != c->rank)
        return p;
    p = pki_put(PKI_PUT(p, ",\"Process Group Ranks\":\""), c->ranks, c->ranks_length);
    return PKI_PUT(p, "\"");
}

static char *put_comm(char *p, const pki_chrome *c, const pki_operation *o)
{
    char id[17];
    p = put_count(p, ",\"Group size\":", (uint64_t)PKI_MAX(o->size, 1));
    p = put_string(p, ",\"Process Group Name\":", o->comm, o->comm_length);
    p = put_string(p, ",\"Process Group Description\":", o->library, o->library_length);
    p = put_ranks(p, c, o);
    p = put_rank(p, ",\"Rank\":", o->rank);
    if (!o->id)
        return p;
    snprintf(id, sizeof id, "%016" PRIx64, o->id);
    return put_text(p, ",\"Comms Id\":", id);
}

static const char *peer_key(uint32_t op)
{
    return op == PK_COMM_OP_SEND || op == PK_COMM_OP_SEND_RECV ? ",\"Dst Rank\":"
           : op == PK_COMM_OP_RECV                             ? ",\"Src Rank\":"
                                                               : ",\"Root\":";
}

static char *pki_chrome_put_operation(char *p, const pki_chrome *c, const pki_operation *o)
{
    uint64_t ranks = (uint64_t)PKI_MAX(o->size, 1);
    p = put_text(p, ",\"Collective name\":", pki_comm_op_name(o->op));
    p = put_text(p, ",\"dtype\":", pki_comm_type_name(o->type));
    p = put_count(p, ",\"In msg nelems\":", pki_comm_elements_in(o->op, o->count, ranks));
    p = put_count(p, ",\"Out msg nelems\":", pki_comm_elements_out(o->op, o->count, ranks));
    p = put_comm(p, c, o);
    p = put_count(p, ",\"Seq\":", o->sequence);
    if (o->peer >= 0 && pki_operation_has_peer(o->op))
        p = put_rank(p, peer_key(o->op), o->peer);
    if (o->tag & PKI_TAGGED)
        p = put_count(p, ",\"Tag\":", (uint32_t)o->tag);
    return o->in_flight > 1 ? put_count(p, ",\"in flight\":", o->in_flight) : p;
}

/* ---- of a record ---- */

/* In what a killed run has left, a name may be anybody's. */
static pki_operation operation_on(const pki_chrome *c, uint32_t name)
{
    pki_chrome_name n = c->names(c->user, name);
    const pk_comm *comm = pki_comm_of_name(name);
    bool known = n.kind == PKI_KIND_INTERNAL;
    return (pki_operation){.comm = n.name,
                           .comm_length = n.length,
                           .library = n.key,
                           .library_length = known ? n.key_length : 0,
                           .rank = known ? pki_comm_value_rank(n.value) : -1,
                           .size = known ? pki_comm_value_size(n.value) : 0,
                           .id = comm ? comm->id : 0};
}

/* As far as can be seen from the half of the sequence number that a record has. */
static uint64_t sequence_of(const pki_comm_fields *f)
{
    const pk_comm *comm = pki_comm_of_name(f->comm);
    return comm ? pki_comm_whole(comm, f->sequence) : f->sequence;
}

char *pki_chrome_put_recorded(char *p, const pki_chrome *c, const pki_record *more, uint64_t tag)
{
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    pki_operation o = operation_on(c, f.comm);
    o.op = f.op;
    o.type = f.type;
    o.count = more->start / pki_comm_type_bytes(f.type);
    o.sequence = sequence_of(&f);
    o.peer = f.peer;
    o.tag = tag;
    o.in_flight = f.in_flight;
    p = pki_chrome_put_operation(p, c, &o);
    if (!f.parent)
        return p;
    pki_chrome_name region = c->names(c->user, f.parent);
    return put_string(p, ",\"region\":", region.name, region.length);
}

static char *put_head(char *p, const pki_chrome *c, char phase, uint32_t tid, uint64_t ns,
                      const pki_comm_fields *f)
{
    pki_operation o = operation_on(c, f->comm);
    const char *op = pki_comm_op_name(f->op);
    p = PKI_PUT(p, ",\n{\"ph\":\"");
    *p++ = phase;
    p = PKI_PUT(p, "\",\"cat\":\"collective\",\"name\":\"");
    p += pki_json_escape(p, NAME_ROOM, o.library, o.library_length);
    p = pki_put_string(PKI_PUT(p, " "), op);
    p = put_count(p, "\",\"pid\":", c->pid);
    p = put_count(p, ",\"tid\":", tid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
    return put_count(
        p, ",\"id\":", c->id_base + ((uint64_t)(f->comm & 0xFFF) << 20 | (f->sequence & 0xFFFFF)));
}

size_t pki_chrome_operation(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                            const pki_record *r, const pki_record *more)
{
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    uint64_t start = pki_clock_ns(c->clock, r->start);
    uint64_t end = pki_clock_ns(c->clock, r->start + pki_not_negative(r->value));
    char *p = put_head(out, c, 'b', tid, start, &f);
    p = pki_put_u64(PKI_PUT(p, ",\"args\":{\"bytes\":"), more->start);
    p = pki_put_u64(PKI_PUT(p, ",\"exposed_ns\":"), r->extra);
    p = PKI_PUT(pki_chrome_put_recorded(p, c, more, more->value), "}}");
    p = PKI_PUT(put_head(p, c, 'e', tid, PKI_MAX(start, end), &f), "}");
    return (size_t)(p - out);
}

size_t pki_chrome_progress(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint64_t ns,
                           const pki_comms_entry *entry)
{
    pki_operation o = operation_on(c, entry->name);
    char *p = PKI_PUT(out, ",\n{\"ph\":\"i\",\"cat\":\"perfkit\",\"s\":\"p\",\"name\":\"");
    p = PKI_PUT(p, PKI_CHROME_PROGRESS);
    p = put_count(p, "\",\"pid\":", c->pid);
    p = put_count(p, ",\"tid\":", c->pid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
    p = put_count(p, ",\"args\":{\"enqueued\":", entry->enqueued);
    p = put_count(p, ",\"started\":", entry->started);
    p = put_count(p, ",\"completed\":", entry->completed);
    p = put_count(p, ",\"under way\":", entry->under_way);
    return (size_t)(PKI_PUT(put_comm(p, c, &o), "}}") - out);
}

/* ---- activity ---- */

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
                                                           [PKI_ACTIVITY_EVENT] = "cuda_event",
                                                           [PKI_ACTIVITY_STATE] = PKI_CHROME_STATE};

static char *put_escaped(char *p, size_t room, const char *s, size_t n)
{
    return p + pki_json_escape(p, room, s, n);
}

static char *put_signed(char *p, const char *key, int64_t value)
{
    p = pki_put_string(PKI_PUT(p, ",\""), key);
    return pki_put_i64(PKI_PUT(p, "\":"), value);
}

static char *activity_put_text(char *p, const char *key, const char *text, size_t n, size_t room)
{
    p = pki_put_string(PKI_PUT(p, ",\""), key);
    p = put_escaped(PKI_PUT(p, "\":\""), room, text, n);
    *p++ = '"';
    return p;
}

static char *put_three(char *p, const char *key, const uint32_t three[3])
{
    p = pki_put_string(PKI_PUT(p, ",\""), key);
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
        p = arg->text ? activity_put_text(p, arg->key, arg->text, strlen(arg->text), TEXT_BYTES)
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
    if (a->kind == PKI_ACTIVITY_GRAPH)
        p = pki_put_field(p, PKI_CHROME_WHOLE_GRAPH, 1);
    if (region)
        p = activity_put_text(p, "region", region, n, REGION_BYTES);
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
    char *p = pki_put_string(PKI_PUT(out, ",\n{\"ph\":\"X\",\"cat\":\""), categories[a->kind]);
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
    p = pki_put_string(p, on ? PKI_CHROME_MEASURES : PKI_CHROME_MEASURES_NOT);
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), pid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
    *p++ = '}';
    return (size_t)(p - out);
}

static char *put_meta(char *p, const pki_track *track, const char *what)
{
    p = pki_put_string(PKI_PUT(p, ",\n{\"ph\":\"M\",\"cat\":\"__metadata\",\"name\":\""), what);
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

/* ---- pk_spans as asynchronous events: b, n and e of the category "span" ---- */

#define SPAN_NAME_ROOM (6 * PKI_NAME_BYTES + 1) /* escaped */
#define EXACT ((uint64_t)1 << 53)               /* what every reader's numbers hold */

typedef struct head {
    char phase;
    uint32_t tid, name, serial;
    uint64_t ticks;
} head;

static char *put_name(char *p, const pki_chrome *c, uint32_t id)
{
    pki_chrome_name n = c->names(c->user, id);
    p += pki_json_escape(p, SPAN_NAME_ROOM, n.name, PKI_MIN(n.length, (uint16_t)PKI_NAME_BYTES));
    const char *colour = pki_chrome_colour(n.kind);
    if (!colour)
        return p;
    return pki_put_string(PKI_PUT(p, "\",\"cname\":\""), colour);
}

static char *span_put_head(char *p, const pki_chrome *c, const head *h)
{
    p = PKI_PUT(p, ",\n{\"ph\":\"");
    *p++ = h->phase;
    p = put_name(PKI_PUT(p, "\",\"cat\":\"" PKI_CHROME_SPAN "\",\"name\":\""), c, h->name);
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), c->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), h->tid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), pki_clock_ns(c->clock, h->ticks));
    return pki_put_u64(PKI_PUT(p, ",\"id\":"), c->id_base + h->serial);
}

/* As text where a double would not hold it. */
static char *put_id(char *p, uint64_t id)
{
    p = PKI_PUT(p, ",\"args\":{\"id\":");
    if (id <= EXACT)
        return pki_put_u64(p, id);
    return PKI_PUT(pki_put_u64(PKI_PUT(p, "\""), id), "\"");
}

static char *put_begin(char *p, const pki_chrome *c, uint32_t tid, const pki_chrome_open *s)
{
    p = span_put_head(p, c, &(head){'b', tid, s->name, s->serial, s->start});
    return PKI_PUT(put_id(p, s->id), "}}");
}

static char *put_end(char *p, const pki_chrome *c, uint32_t tid, const pki_record *r,
                     const pki_record *more)
{
    head h = {'e', tid, pki_what_id(r->what), (uint32_t)r->extra,
              r->start + pki_not_negative(r->value)};
    return PKI_PUT(put_id(span_put_head(p, c, &h), more->start), "}}");
}

static char *put_mark(char *p, const pki_chrome *c, uint32_t tid, const pki_record *r)
{
    uint64_t since = pki_clock_span_ns(c->clock, r->start - pki_not_negative(r->value),
                                       pki_not_negative(r->value));
    p = span_put_head(p, c, &(head){'n', tid, pki_what_id(r->what), (uint32_t)r->extra, r->start});
    return PKI_PUT(pki_put_u64(PKI_PUT(p, ",\"args\":{\"since_ns\":"), since), "}}");
}

size_t pki_chrome_span_begin(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                             const pki_chrome_open *span)
{
    return (size_t)(put_begin(out, c, tid, span) - out);
}

size_t pki_chrome_span_unfinished(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                                  const pki_chrome_open *span, uint64_t ticks)
{
    char *p = span_put_head(out, c, &(head){'e', tid, span->name, span->serial, ticks});
    return (size_t)(PKI_PUT(put_id(p, span->id), ",\"unfinished\":1}}") - out);
}

size_t pki_chrome_span(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                       const pki_record *r, const pki_record *more)
{
    char *p = out;
    pki_chrome_open span = {r->start, r->value, pki_what_id(r->what), (uint32_t)r->extra};
    switch (pki_what_type(r->what)) {
    case PKI_RECORD_SPAN_BEGIN:
        p = put_begin(p, c, tid, &span);
        break;
    case PKI_RECORD_SPAN_MARK:
        p = put_mark(p, c, tid, r);
        break;
    case PKI_RECORD_REQUEST:
        p = span_put_head(p, c, &(head){'n', tid, span.name, span.serial, r->start});
        p = pki_chrome_put_request(p, r, more);
        break;
    default:
        span.id = more->start;
        if (pki_what_flags(r->what) & PKI_FLAG_NO_BEGIN)
            p = put_begin(p, c, tid, &span);
        p = put_end(p, c, tid, r, more);
        break;
    }
    return (size_t)(p - out);
}

/* ---- the event of a request's end, on its track ---- */

/* The end of an event of a PKI_RECORD_REQUEST: what is known of it. */
static char *pki_chrome_put_request(char *p, const pki_record *r, const pki_record *more)
{
    static const char *const outcomes[] = {"finished", "cancelled", "failed", "failed"};
    pki_request_done d = pki_request_unpack(r, more);
    p = PKI_PUT(p, ",\"args\":{\"outcome\":\"");
    p = PKI_PUT(pki_put_string(p, outcomes[d.outcome & 3]), "\"");
    p = pki_put_field(p, "good", d.good);
    p = pki_put_field(p, "tokens", d.tokens);
    p = pki_put_field(p, "preemptions", d.preemptions);
    p = pki_put_field(p, "first_step", d.first_step);
    p = pki_put_field(p, "steps", d.steps);
    p = pki_put_field(p, "total_ns", d.total);
    p = pki_put_field(p, "ttft_ns", d.ttft);
    p = pki_put_field(p, "generated_ns", d.generated);
    p = pki_put_field(p, "queued_ns", d.queued);
    p = pki_put_field(p, "preempted_ns", d.preempted);
    p = pki_put_field(p, "reading_ns", d.reading);
    p = pki_put_field(p, "crowded_ns", d.crowded);
    p = pki_put_field(p, "behind_ns", d.behind);
    return PKI_PUT(p, "}}");
}
