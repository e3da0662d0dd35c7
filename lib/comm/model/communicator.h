/* lib/comm/model/communicator.h - communicators, for the process's life, and how far each has come;
 * and an operation on one */
#pragma once

#include <pk/comm.h>

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "core/arena.h"
#include "core/record.h"

/* ---- an operation on a communicator ---- */

/* What a record says of it, in two words, and what the trace says, the same from everybody who has
 * seen one. */

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

/* ---- communicators, for the process's life, and how far each has come ---- */

/* A communicator has a name of its own among the names (kind PKI_KIND_INTERNAL, its library as key,
 * its rank and size as value), so that records need no more than a name's id to tell which it was,
 * also after a kill. Look-ups take no lock; what is counted is atomic. */

#define PKI_COMMS_MAX 4096 /* the last one is shared by all that are too many */
#define PKI_COMM_TEXT 64
#define PKI_COMM_ENDS 32

struct pk_comm {
    uint32_t index, name; /* name: id */
    int32_t rank, size;
    uint64_t id;
    char library[PKI_COMM_TEXT], title[PKI_COMM_TEXT];
    uint64_t flow;      /* sequence number of the last one enqueued, and how many are in flight */
    uint64_t completed; /* sequence number; kept while something is in flight or was given up */
    uint64_t started;   /* 0: as far as enqueued; libraries with a queue report more */
    uint64_t ends[PKI_COMM_ENDS]; /* ns: of the last operations that a backend has seen, in turn */
    uint32_t end_count;
    uint32_t messages;   /* 1: some operations were no collectives */
    uint32_t given_up;   /* 1: an operation has not completed and never will */
    uint32_t gone;       /* destroyed: another one just like it may take its place */
    uint32_t peer_count; /* 0: nobody has said who its peers are */
    int32_t *peers;      /* as ranks of the job; written once, before peer_count */
};

/* Both in one word, since each atomic change takes as long as a quarter of a region. */
#define PKI_COMM_FLYING ((uint64_t)1 << 40)

static inline uint64_t pki_comm_enqueued(const pk_comm *comm)
{
    return pki_load(&comm->flow) & (PKI_COMM_FLYING - 1);
}

static inline uint32_t pki_comm_in_flight(const pk_comm *comm)
{
    return (uint32_t)(pki_load(&comm->flow) / PKI_COMM_FLYING);
}

/* The last one that is complete: with nothing in flight the last one there was. */
static inline uint64_t pki_comm_completed(const pk_comm *comm)
{
    bool is_kept = pki_comm_in_flight(comm) || pki_load(&comm->given_up);
    return is_kept ? pki_load(&comm->completed) : pki_comm_enqueued(comm);
}

/* How far it has come. */
pki_comms_entry pki_comm_progress(const pk_comm *comm);

/* NULL for indices, or names, that were never given out. */
pk_comm *pki_comm_at(uint32_t index);
pk_comm *pki_comm_of_name(uint32_t name);

/* From a communicator's value among the names. */
static inline int32_t pki_comm_value_rank(int64_t value)
{
    return (int32_t)((uint64_t)value & 0xFFFFFFFF);
}

static inline int32_t pki_comm_value_size(int64_t value)
{
    return (int32_t)((uint64_t)value >> 32);
}

/* One more operation, and what a record says of it. */
pki_comm_payload pki_comm_enqueue(pk_comm *comm, pk_comm_op op, pk_comm_type type, int32_t peer,
                                  uint32_t parent, uint64_t *sequence);

/* The operation of this payload is complete. */
void pki_comm_complete(uint64_t what, uint64_t extra);

/* One of the operations in flight will never be: it is not under way, and not complete. */
void pki_comm_abandon(pk_comm *comm);

/* The one that has been in flight for longest; for operations that complete in their order. */
uint64_t pki_comm_oldest(const pk_comm *comm);

/* Who its peer is among the ranks of the job, which has `world` and is seen from `rank`; -1: not
 * known. */
int32_t pki_comm_job_rank(const pk_comm *comm, int32_t peer, int32_t rank, int32_t world);

/* From a sequence number's low half. */
uint64_t pki_comm_whole(const pk_comm *comm, uint32_t low);

/* It has begun: what waits in a queue before it has, too. */
void pki_comm_begun(pk_comm *comm, uint64_t sequence);

/* How many of its operations were under way when the one from start to end began, this one
 * included: of those that a backend has seen end. The collector's; in ns of a session, so one that
 * begins forgets them. */
uint32_t pki_comm_count_overlap(pk_comm *comm, uint64_t start, uint64_t end);
void pki_comms_forget_ends(void);

/* How the trace names it; what is done on it is for the caller to fill in. By the title that its
 * library gave it, without a number: NCCL's wrapper and its profiler know the same communicator, in
 * no order, and it has one name on all ranks. */
pki_operation pki_operation_on(const pk_comm *comm);

/* 1: NCCL's operations are counted where they are called (pk/nccl.h); the profiler's backend then
 * leaves the counting to that (lib/comm/plugin/assemble.c). */
extern uint32_t pki_comms_wrapped;

void pki_comms_after_fork(void);
