#include "out/chrome/collective.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "comm/model/communicator.h"
#include "core/names.h"
#include "out/emit.h"

#define NAME_ROOM 400 /* of an escaped name */

static char *put_string(char *p, const char *key, const char *text, size_t n)
{
    p = pki_put(p, key, strlen(key));
    p = PKI_PUT(p, "\"");
    p += pki_json_escape(p, NAME_ROOM, text, n);
    return PKI_PUT(p, "\"");
}

static char *put_signed(char *p, const char *key, int64_t n)
{
    p = pki_put(p, key, strlen(key));
    if (n < 0)
        *p++ = '-';
    return pki_put_u64(p, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

static const char *peer_key(uint32_t op)
{
    return op == PK_OP_SEND ? ",\"Dst Rank\":" : op == PK_OP_RECV ? ",\"Src Rank\":" : ",\"Root\":";
}

/* The library's own number, the same on all ranks; of a killed run it is not known. */
static char *put_id(char *p, uint32_t name)
{
    const pk_comm *comm = pki_comm_of_name(name);
    char text[17];
    if (!comm || !comm->id)
        return p;
    snprintf(text, sizeof text, "%016" PRIx64, comm->id);
    return put_string(p, ",\"Comms Id\":", text, 16);
}

static char *put_parent(char *p, const pki_chrome *c, uint32_t id)
{
    pki_chrome_name region = c->names(c->user, id);
    return put_string(p, ",\"region\":", region.name, region.length);
}

/* Who it is, in the words of PyTorch's tools. */
static char *put_comm(char *p, const pki_chrome_name *comm)
{
    bool known = comm->kind == PKI_KIND_INTERNAL; /* in what a killed run has left, perhaps not */
    p = put_string(p, ",\"Process Group Name\":", comm->name, comm->length);
    p = put_string(p, ",\"Process Group Description\":", comm->key, known ? comm->key_length : 0);
    return put_signed(p, ",\"Rank\":", known ? pki_comm_value_rank(comm->value) : -1);
}

char *pki_chrome_put_collective(char *p, const pki_chrome *c, const pki_record *more, uint64_t tag)
{
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    pki_chrome_name comm = c->names(c->user, f.comm);
    const char *op = pki_comm_op_name(f.op), *type = pki_comm_type_name(f.type);
    bool known = comm.kind == PKI_KIND_INTERNAL; /* in what a killed run has left, perhaps not */
    uint64_t count = more->start / pki_comm_type_bytes(f.type);
    uint64_t ranks = known ? (uint64_t)PKI_MAX(pki_comm_value_size(comm.value), 1) : 1;
    p = put_string(p, ",\"Collective name\":", op, strlen(op));
    p = put_string(p, ",\"dtype\":", type, strlen(type));
    p = pki_put_u64(PKI_PUT(p, ",\"In msg nelems\":"), pki_comm_elements_in(f.op, count, ranks));
    p = pki_put_u64(PKI_PUT(p, ",\"Out msg nelems\":"), pki_comm_elements_out(f.op, count, ranks));
    p = pki_put_u64(PKI_PUT(p, ",\"Group size\":"), ranks);
    p = put_id(put_comm(p, &comm), f.comm);
    p = pki_put_u64(PKI_PUT(p, ",\"Seq\":"), f.sequence);
    if (f.peer >= 0)
        p = put_signed(p, peer_key(f.op), f.peer);
    if (tag & PKI_TAGGED)
        p = pki_put_u64(PKI_PUT(p, ",\"Tag\":"), (uint32_t)tag);
    if (f.in_flight > 1)
        p = pki_put_u64(PKI_PUT(p, ",\"in flight\":"), f.in_flight);
    return f.parent ? put_parent(p, c, f.parent) : p;
}

static char *put_head(char *p, const pki_chrome *c, char phase, uint32_t tid, uint64_t ns,
                      const pki_comm_fields *f)
{
    const char *op = pki_comm_op_name(f->op);
    pki_chrome_name comm = c->names(c->user, f->comm);
    p = PKI_PUT(p, ",\n{\"ph\":\"");
    *p++ = phase;
    p = PKI_PUT(p, "\",\"cat\":\"collective\",\"name\":\"");
    p += pki_json_escape(p, NAME_ROOM, comm.key,
                         comm.kind == PKI_KIND_INTERNAL ? comm.key_length : 0);
    p = pki_put(PKI_PUT(p, " "), op, strlen(op));
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), c->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), tid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
    p = PKI_PUT(p, ",\"id\":");
    return pki_put_u64(p,
                       c->id_base + ((uint64_t)(f->comm & 0xFFF) << 20 | (f->sequence & 0xFFFFF)));
}

size_t pki_chrome_collective(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint32_t tid,
                             const pki_record *r, const pki_record *more)
{
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    uint64_t start = pki_clock_ns(c->clock, r->start);
    uint64_t end = pki_clock_ns(c->clock, r->start + pki_not_negative(r->value));
    char *p = put_head(out, c, 'b', tid, start, &f);
    p = pki_put_u64(PKI_PUT(p, ",\"args\":{\"bytes\":"), more->start);
    p = pki_put_u64(PKI_PUT(p, ",\"exposed_ns\":"), r->extra);
    p = PKI_PUT(pki_chrome_put_collective(p, c, more, more->value), "}}");
    p = PKI_PUT(put_head(p, c, 'e', tid, PKI_MAX(start, end), &f), "}");
    return (size_t)(p - out);
}

size_t pki_chrome_progress(const pki_chrome *c, char out[PKI_EVENT_BYTES], uint64_t ns,
                           const pki_comms_entry *entry)
{
    pki_chrome_name comm = c->names(c->user, entry->name);
    bool known = comm.kind == PKI_KIND_INTERNAL;
    char *p = PKI_PUT(out, ",\n{\"ph\":\"i\",\"cat\":\"perfkit\",\"s\":\"p\",\"name\":\"");
    p = pki_put(p, PKI_CHROME_PROGRESS, strlen(PKI_CHROME_PROGRESS));
    p = pki_put_u64(PKI_PUT(p, "\",\"pid\":"), c->pid);
    p = pki_put_u64(PKI_PUT(p, ",\"tid\":"), c->pid);
    p = pki_put_us(PKI_PUT(p, ",\"ts\":"), ns);
    p = pki_put_u64(PKI_PUT(p, ",\"args\":{\"enqueued\":"), entry->enqueued);
    p = pki_put_u64(PKI_PUT(p, ",\"started\":"), entry->started);
    p = pki_put_u64(PKI_PUT(p, ",\"completed\":"), entry->completed);
    p = pki_put_u64(PKI_PUT(p, ",\"under way\":"), entry->under_way);
    p = pki_put_u64(PKI_PUT(p, ",\"Group size\":"),
                    known ? (uint64_t)PKI_MAX(pki_comm_value_size(comm.value), 1) : 1);
    return (size_t)(PKI_PUT(put_comm(p, &comm), "}}") - out);
}
