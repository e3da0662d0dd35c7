#include "out/chrome/operation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "out/emit.h"

#define NAME_ROOM 384 /* of an escaped name */

static char *put_string(char *p, const char *key, const char *text, size_t n)
{
    p = pki_put_text(p, key);
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
    return pki_put_u64(pki_put_text(p, key), PKI_MIN(n, (uint64_t)INT64_MAX));
}

static char *put_rank(char *p, const char *key, int32_t n)
{
    return pki_put_i64(pki_put_text(p, key), n);
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
    return op == PK_OP_SEND || op == PK_OP_SEND_RECV ? ",\"Dst Rank\":"
           : op == PK_OP_RECV                        ? ",\"Src Rank\":"
                                                     : ",\"Root\":";
}

char *pki_chrome_put_operation(char *p, const pki_chrome *c, const pki_operation *o)
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
    p = pki_put_text(PKI_PUT(p, " "), op);
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
