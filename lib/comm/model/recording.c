/* lib/comm/model/recording.c - pk/comm.h: operations on communicators, from the thread that makes
 * them.
 */
#include <pk/private.h>

#include "comm/model/communicator.h"
#include "core/join.h"
#include "core/thin.h"

static uint64_t bytes_of(pk_comm_type type, uint64_t count)
{
    return count * pki_comm_type_bytes((uint32_t)type);
}

/* In a request with a tag it stands where the low half of the sequence number, which the request
 * has whole, is without. */
#define TAGGED 1u
_Static_assert((PKI_PAYLOAD_OPERATION & TAGGED) == 0, "a bit of the payload's type is free");

static uint64_t with_half(uint64_t extra, uint32_t half)
{
    return (extra & ~(uint64_t)UINT32_MAX) | half;
}

/* Makes the request's payload one of a record; PKI_TAGGED and its tag, or 0. */
static uint64_t remove_tag(pk_comm_request *request)
{
    uint64_t tag = request->what & TAGGED ? PKI_TAGGED | (uint32_t)request->extra : 0;
    if (tag)
        request->extra = with_half(request->extra, (uint32_t)request->sequence);
    request->what &= ~(uint64_t)TAGGED;
    return tag;
}

static void set_tag(pk_comm_request *request, uint64_t tag)
{
    if (!(tag & PKI_TAGGED))
        return;
    request->extra = with_half(request->extra, (uint32_t)tag);
    request->what |= TAGGED;
}

/* A region is one operation: a second call in it replaces the first one, which is then over. */
void pk_comm_call_on_(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                      uint64_t count, int32_t peer)
{
    uint32_t parent;
    uint64_t sequence;
    pki_work *work = comm ? pki_region_work(region, &parent) : NULL;
    pki_thin_never(region);
    if (!work)
        return;
    if (pki_is_operation(work->payload_type))
        pki_comm_complete(work->payload_type, work->payload);
    pki_comm_payload payload = pki_comm_enqueue(comm, op, type, peer, parent, &sequence);
    pki_bump(&work->bytes, bytes_of(type, count));
    pki_store(&work->payload, payload.extra);
    pki_store(&work->payload_type, payload.what);
    pki_store(&work->tag, (uint64_t)0);
}

void pk_comm_border_on_(int to_wait)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_joined();
    if (t)
        pki_ready_border(&t->registry->ready, t, to_wait);
    pki_leave();
}

void pk_comm_set_tag_on_(pk_region *region, int32_t tag)
{
    uint32_t parent;
    pki_work *work = tag >= 0 ? pki_region_work(region, &parent) : NULL;
    if (work && pki_is_operation(pki_load(&work->payload_type)))
        pki_store(&work->tag, PKI_TAGGED | (uint32_t)tag);
}

static void begin_request(pk_comm_request *request, const pki_thread *t, pk_comm *comm,
                          pk_comm_op op, pk_comm_type type, int32_t peer)
{
    uint32_t parent = pki_open_region(t);
    pki_comm_payload payload = pki_comm_enqueue(comm, op, type, peer, parent, &request->sequence);
    request->comm = comm;
    request->start = pki_ticks(t->monotonic);
    request->what = payload.what;
    request->extra = payload.extra;
}

pk_comm_request pk_comm_start_on_(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                                  int32_t peer)
{
    pk_comm_request request = {0};
    if (!comm)
        return request;
    if (!pki_enter()) {
        pki_registry_refuse_point();
        return request;
    }
    pki_thread *t = pki_thread_join();
    if (t) {
        begin_request(&request, t, comm, op, type, peer);
        request.bytes = bytes_of(type, count);
    }
    pki_leave();
    return request;
}

void pk_comm_correct_on_(pk_comm_request *request, uint64_t bytes, int32_t peer)
{
    uint64_t tag = remove_tag(request);
    pki_comm_fields fields = pki_comm_unpack(request->what, request->extra);
    fields.peer = peer;
    request->bytes = bytes;
    request->what = pki_comm_pack(&fields).what;
    set_tag(request, tag);
}

void pk_comm_set_request_tag_on_(pk_comm_request *request, int32_t tag)
{
    if (tag < 0)
        return;
    remove_tag(request);
    set_tag(request, PKI_TAGGED | (uint32_t)tag);
}

/* What began in an earlier session is complete, but nobody's to record. */
static bool is_of_session(const pki_thread *t, const pk_comm_request *request)
{
    return (int64_t)(request->start - t->registry->arena->header->clock.first.ticks) >= 0;
}

static void record(const pk_comm_request *request, uint64_t tag, uint64_t waited_ns)
{
    pki_thread *t = pki_thread_join();
    if (!t || !is_of_session(t, request))
        return;
    uint32_t parent = pki_comm_unpack(request->what, request->extra).parent;
    uint64_t ticks = pki_not_negative(pki_ticks(t->monotonic) - request->start);
    pki_record records[2] = {
        {request->start, ticks, PKI_WHAT(parent, PKI_RECORD_OPERATION, 0), waited_ns},
        {request->bytes, tag, request->what, request->extra}};
    pki_push_point(t, records, 2);
}

void pk_comm_finish_on_(pk_comm_request *request, uint64_t waited_ns)
{
    uint64_t tag = remove_tag(request);
    pki_comm_complete(request->what, request->extra);
    if (!pki_load(&pk_gate_)) {
        /* nobody's to record */
    } else if (pki_enter()) {
        record(request, tag, waited_ns);
        pki_leave();
    } else {
        pki_registry_refuse_point();
    }
    *request = (pk_comm_request){0};
}
