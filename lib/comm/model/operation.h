/* lib/comm/model/operation.h - an operation on a communicator: what a record says of it, in two
 * words, and what the trace says, the same from everybody who has seen one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <pk/comm.h>

#include "core/record.h"

/* ---- in a record ---- */

/* Is this what a payload's type says? */
static inline bool pki_is_operation(uint64_t what)
{
    return (what & 0xFF) == PKI_PAYLOAD_OPERATION;
}

/* What of an operation travels in the two free words of a record's second slot. */
typedef struct pki_comm_payload {
    uint64_t what, extra; /* what: lowest byte PKI_PAYLOAD_OPERATION */
} pki_comm_payload;

typedef struct pki_comm_fields {
    uint32_t comm, parent; /* name ids; parent: the region around, 0: none */
    uint32_t op, type, in_flight;
    int32_t peer;
    uint32_t sequence; /* its low half */
} pki_comm_fields;

static inline pki_comm_payload pki_comm_pack(const pki_comm_fields *f)
{
    return (pki_comm_payload){(uint64_t)PKI_PAYLOAD_OPERATION | (uint64_t)(f->op & 0xFF) << 8 |
                                  (uint64_t)(f->type & 0xFF) << 16 |
                                  (uint64_t)(f->in_flight < 255 ? f->in_flight : 255) << 24 |
                                  (uint64_t)(uint32_t)f->peer << 32,
                              (uint64_t)(f->comm & 0xFFFF) << 48 |
                                  (uint64_t)(f->parent & 0xFFFF) << 32 | f->sequence};
}

static inline pki_comm_fields pki_comm_unpack(uint64_t what, uint64_t extra)
{
    return (pki_comm_fields){.comm = (uint32_t)(extra >> 48),
                             .parent = (uint32_t)(extra >> 32) & 0xFFFF,
                             .op = (uint32_t)(what >> 8) & 0xFF,
                             .type = (uint32_t)(what >> 16) & 0xFF,
                             .in_flight = (uint32_t)(what >> 24) & 0xFF,
                             .peer = (int32_t)(uint32_t)(what >> 32),
                             .sequence = (uint32_t)extra};
}

/* The extra of the operation so many before: its number is the lower half alone. */
static inline uint64_t pki_comm_extra_before(uint64_t extra, uint32_t n)
{
    return (extra & ~(uint64_t)UINT32_MAX) | (uint32_t)((uint32_t)extra - n);
}

/* ---- in the trace ---- */

typedef struct pki_operation {
    const char *comm, *library; /* names of the communicator and of its library */
    size_t comm_length, library_length;
    int32_t rank, size; /* of it; -1 and 0: not known */
    uint64_t id;        /* the library's, the same on all ranks; 0: none, or not known */
    uint32_t op, type;  /* a pk_comm_op, a pk_comm_type */
    uint64_t count;     /* of elements, as given to the call */
    uint64_t sequence;
    uint64_t tag;       /* PKI_TAGGED and the message's; 0: none */
    int32_t peer;       /* root or other side; -1: none */
    uint32_t in_flight; /* operations of the communicator that were under way, this one included */
} pki_operation;

/* Has it one rank that is another side, or the root? Of others peer is not looked at: NCCL has a
 * root of 0 for all of them. */
bool pki_operation_has_peer(uint32_t op);

/* Arguments in the trace. Unless the times are those of a kernel or of a stream, they are not those
 * of the data's way, and there is no bandwidth. */
#define PKI_COMM_TIMED "timed by"
#define PKI_COMM_BY_KERNEL "kernel"
#define PKI_COMM_BY_STREAM "stream"

/* How many operations alike a slice is, and of how many communicators it is the time. */
#define PKI_COMM_CALLS "calls"
#define PKI_COMM_SHARERS "communicators"

/* Bytes of one element; 1 for what is none of the types. */
uint32_t pki_comm_type_bytes(uint32_t type);
const char *pki_comm_type_name(uint32_t type);
const char *pki_comm_op_name(uint32_t op);

/* Elements that this rank gives and gets, where one gives count to (or gets it from) one other. */
uint64_t pki_comm_elements_in(uint32_t op, uint64_t count, uint64_t ranks);
uint64_t pki_comm_elements_out(uint32_t op, uint64_t count, uint64_t ranks);

/* Between two ranks: a send, a receive or both. */
static inline bool pki_comm_op_is_message(uint32_t op)
{
    return op == PK_COMM_OP_SEND || op == PK_COMM_OP_RECV || op == PK_COMM_OP_SEND_RECV;
}

pk_comm_op pki_comm_op_named(const char *name); /* PK_COMM_OP_OTHER for what is none of the names */
