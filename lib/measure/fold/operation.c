/* lib/measure/fold/operation.c - operations on communicators, from records to figures. */
#include "comm/model/communicator.h"
#include "measure/fold/fold.h"

/* In a region that is one operation, all of it is waited for. */
static uint64_t exposed_of(const pki_record *r, uint64_t duration)
{
    return pki_what_type(r->what) == PKI_RECORD_OPERATION ? r->extra : duration;
}

/* Beside calls that were lost it is not known. */
static uint64_t tag_of(const pki_record *r, const pki_record *more)
{
    if (pki_what_type(r->what) == PKI_RECORD_OPERATION)
        return (uint64_t)more->value;
    return pki_what_flags(r->what) & PKI_FLAG_LOST ? 0 : r->extra & PKI_THINNED_REST;
}

static uint32_t plus_one(int32_t rank)
{
    return rank >= 0 ? (uint32_t)rank + 1 : 0;
}

void pki_fold_operation(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    const pki_arena_header *h = fold->registry->arena->header;
    const pki_clock_map *clock = &h->clock;
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    const pk_comm *comm = pki_is_operation(more->what) ? pki_comm_of_name(f.comm) : NULL;
    if (!comm)
        return;
    uint64_t start = pki_clock_ns(clock, r->start);
    uint64_t end = pki_clock_ns(clock, r->start + pki_not_negative(r->value));
    pki_comm_figures_add(
        fold->collectives,
        &(pki_timed_operation){
            .comm = comm->index,
            .ranks = (uint32_t)PKI_MAX(comm->size, 0),
            .op = f.op < PKI_COMM_OPS ? (pk_comm_op)f.op : PK_OP_OTHER,
            .region = f.parent,
            .bytes = more->start,
            .sequence = f.sequence,
            .start = start,
            .end = end,
            .exposed = exposed_of(r, end - start),
            .comm_id = comm->id,
            .tag = tag_of(r, more),
            .self = h->world_size > 0 ? plus_one(h->rank) : 0,
            .partner = plus_one(pki_comm_job_rank(comm, f.peer, h->rank, h->world_size)),
            .in_flight = f.in_flight});
}
