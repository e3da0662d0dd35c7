/* lib/measure/fold/operation.c - operations on communicators, from records to figures. */
#include "comm/model/communicator.h"
#include "measure/fold/fold.h"

/* In a region that is one operation, all of it is waited for. */
static uint64_t exposed_of(const pki_record *r, uint64_t duration)
{
    return pki_what_type(r->what) == PKI_RECORD_OPERATION ? r->extra : duration;
}

void pki_fold_operation(pki_fold *fold, const pki_record *r, const pki_record *more)
{
    const pki_clock_map *clock = &fold->registry->arena->header->clock;
    pki_comm_fields f = pki_comm_unpack(more->what, more->extra);
    const pk_comm *comm = pki_is_operation(more->what) ? pki_comm_of_name(f.comm) : NULL;
    if (!comm)
        return;
    uint64_t start = pki_clock_ns(clock, r->start);
    uint64_t end = pki_clock_ns(clock, r->start + pki_not_negative(r->value));
    pki_comm_figures_add(
        fold->collectives,
        &(pki_timed_operation){.comm = comm->index,
                               .ranks = (uint32_t)PKI_MAX(comm->size, 0),
                               .op = f.op < PKI_COMM_OPS ? (pk_comm_op)f.op : PK_OP_OTHER,
                               .region = f.parent,
                               .bytes = more->start,
                               .sequence = f.sequence,
                               .start = start,
                               .end = end,
                               .exposed = exposed_of(r, end - start),
                               .in_flight = f.in_flight});
}
