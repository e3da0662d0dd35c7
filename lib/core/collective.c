/* lib/core/collective.c - pk/comm.h: operations on communicators, from the thread that makes them.
 */
#include "core/comms.h"
#include "core/join.h"

static uint64_t bytes_of(pk_comm_type type, uint64_t count)
{
    return count * pki_comm_type_bytes((uint32_t)type);
}

/* A region is one operation: a second call in it replaces the first one, which is then over. */
void pk_comm_call_on_(pk_region *region, pk_comm *comm, pk_comm_op op, pk_comm_type type,
                      uint64_t count, int32_t peer)
{
    uint32_t parent;
    uint64_t sequence;
    pki_work *work = comm ? pki_region_work(region, &parent) : NULL;
    if (!work)
        return;
    if (pki_is_collective(work->payload_type))
        pki_comm_complete(work->payload_type, work->payload);
    pki_comm_words words = pki_comm_enqueue(comm, op, type, peer, parent, &sequence);
    pki_bump(&work->bytes, bytes_of(type, count));
    pki_store(&work->payload, words.extra);
    pki_store(&work->payload_type, words.what);
}

pk_comm_request pk_comm_start(pk_comm *comm, pk_comm_op op, pk_comm_type type, uint64_t count,
                              int32_t peer)
{
    pk_comm_request request = {0};
    pki_thread *t = comm && pki_load(&pk_gate_) ? pki_thread_join() : NULL;
    if (!t)
        return request;
    uint32_t parent = pki_open_region(t);
    pki_comm_words words = pki_comm_enqueue(comm, op, type, peer, parent, &request.sequence);
    request.comm = comm;
    request.start = pki_ticks(t->monotonic);
    request.bytes = bytes_of(type, count);
    request.what = words.what;
    request.extra = words.extra;
    return request;
}

void pk_comm_correct(pk_comm_request *request, uint64_t bytes, int32_t peer)
{
    if (!request || !request->comm)
        return;
    pki_comm_fields fields = pki_comm_unpack(request->what, request->extra);
    fields.peer = peer;
    request->bytes = bytes;
    request->what = pki_comm_pack(&fields).what;
}

/* What began in an earlier session is complete, but nobody's to record. */
static bool is_of_session(const pki_thread *t, const pk_comm_request *request)
{
    return (int64_t)(request->start - t->registry->arena->header->clock.first.ticks) >= 0;
}

void pk_comm_finish(pk_comm_request *request, uint64_t waited_ns)
{
    if (!request || !request->comm)
        return;
    pki_thread *t = pki_load(&pk_gate_) ? pki_thread_join() : NULL;
    pki_comm_complete(request->what, request->extra);
    if (t && is_of_session(t, request)) {
        uint32_t parent = pki_comm_unpack(request->what, request->extra).parent;
        uint64_t ticks = pki_not_negative(pki_ticks(t->monotonic) - request->start);
        pki_record records[2] = {
            {request->start, ticks, PKI_WHAT(parent, PKI_RECORD_COLLECTIVE, 0), waited_ns},
            {request->bytes, 0, request->what, request->extra}};
        pki_push_point(t, records, 2);
    }
    *request = (pk_comm_request){0};
}
