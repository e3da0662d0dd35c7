/* lib/comm/mpi/sends.h - the ways in which MPI sends, all with the same parameters; message.c and
 * imessage.c and persistent.c make the functions.
 *
 * X(returns when the buffer is free, returns at once, to be started later)
 */
#pragma once

#include "comm/mpi/request.h"

#define PKI_MPI_SENDS(X)                                                                           \
    X(Send, Isend, Send_init)                                                                      \
    X(Bsend, Ibsend, Bsend_init)                                                                   \
    X(Ssend, Issend, Ssend_init)                                                                   \
    X(Rsend, Irsend, Rsend_init)

#define PKI_MPI_SEND_PARAMS                                                                        \
    const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm
#define PKI_MPI_RECV_PARAMS                                                                        \
    void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm

/* A message to or from peer; to nobody (MPI_PROC_NULL) there is none, from anybody is from -1, and
 * so is what has any tag. */
static inline pki_mpi_operation pki_mpi_message(pk_comm_op op, int count, MPI_Datatype type,
                                                int peer, int tag, MPI_Comm comm)
{
    const pki_mpi_comm *at = peer == MPI_PROC_NULL ? NULL : pki_mpi_comm_of(comm);
    if (!at)
        return (pki_mpi_operation){0};
    return (pki_mpi_operation){at->messages, op, pki_mpi_amount_of(count, type),
                               peer < 0 ? -1 : peer, tag < 0 ? -1 : tag};
}

/* The region that is open is this message. */
static inline void pki_mpi_describe(pk_region *region, const pki_mpi_operation *o)
{
    if (!o->comm)
        return;
    pk_comm_call(region, o->comm, o->op, o->amount.type, o->amount.count, o->peer);
    pk_comm_set_tag(region, o->tag);
}

static inline void pki_mpi_describe_received(pk_region *region, MPI_Datatype type, MPI_Comm comm,
                                             const MPI_Status *status)
{
    pki_mpi_operation got =
        pki_mpi_message(PK_COMM_OP_RECV, 1, type, status->MPI_SOURCE, status->MPI_TAG, comm);
    got.amount = pki_mpi_amount_got(status, type);
    pki_mpi_describe(region, &got);
}
