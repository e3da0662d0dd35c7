/* lib/comm/model/communicator.h - communicators, for the process's life, and what an operation on one says in a
 * record.
 *
 * A communicator has a name of its own among the names (kind PKI_KIND_INTERNAL, its library as key,
 * its rank and size as value), so that records need no more than a name's id to tell which it was,
 * also after a kill. Look-ups take no lock; what is counted is atomic.
 */
#ifndef PKI_COMM_MODEL_COMMUNICATOR_H
#define PKI_COMM_MODEL_COMMUNICATOR_H

#include <stdbool.h>

#include <pk/comm.h>

#include "base/atomic.h"
#include "core/record.h"

#define PKI_COMMS_MAX 4096 /* the last one is shared by all that are too many */
#define PKI_COMM_TEXT 64
#define PKI_COMM_ENDS 16

struct pk_comm {
    uint32_t index, name; /* name: id */
    int32_t rank, size;
    uint64_t id;
    char library[PKI_COMM_TEXT], title[PKI_COMM_TEXT];
    uint64_t flow;      /* sequence number of the last one enqueued, and how many are in flight */
    uint64_t completed; /* sequence number; kept while something is in flight or was given up */
    uint64_t started;   /* 0: as far as enqueued; libraries with a queue tell more */
    uint64_t ends[PKI_COMM_ENDS]; /* ns: of the last operations on streams; the collector's */
    uint32_t end_count, ends_session;
    uint32_t given_up; /* 1: an operation has not completed and never will */
    uint32_t gone;     /* destroyed: another one just like it may take its place */
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

/* Is this what a payload's type says, and do the words below? */
static inline bool pki_is_collective(uint64_t what)
{
    return (what & 0xFF) == PKI_PAYLOAD_COLLECTIVE;
}

/* What of an operation travels in the two free words of a record's second slot. */
typedef struct pki_comm_words {
    uint64_t what, extra; /* what: lowest byte PKI_PAYLOAD_COLLECTIVE */
} pki_comm_words;

typedef struct pki_comm_fields {
    uint32_t comm, parent; /* name ids; parent: the region around, 0: none */
    uint32_t op, type, in_flight;
    int32_t peer;
    uint32_t sequence; /* its low half */
} pki_comm_fields;

static inline pki_comm_words pki_comm_pack(const pki_comm_fields *f)
{
    return (pki_comm_words){(uint64_t)PKI_PAYLOAD_COLLECTIVE | (uint64_t)(f->op & 0xFF) << 8 |
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

/* The words' extra of the operation so many before: its number is the lower half alone. */
static inline uint64_t pki_comm_extra_before(uint64_t extra, uint32_t n)
{
    return (extra & ~(uint64_t)UINT32_MAX) | (uint32_t)((uint32_t)extra - n);
}

/* One more operation, and what a record says of it. */
pki_comm_words pki_comm_enqueue(pk_comm *comm, pk_comm_op op, pk_comm_type type, int32_t peer,
                                uint32_t parent, uint64_t *sequence);

/* The operation that these words are of is complete. */
void pki_comm_complete(uint64_t what, uint64_t extra);

/* One of the operations in flight will never be: it is not under way, and not complete. */
void pki_comm_give_up(pk_comm *comm);

/* Bytes of one element; 1 for what is none of the types. */
uint32_t pki_comm_type_bytes(uint32_t type);
const char *pki_comm_type_name(uint32_t type);
const char *pki_comm_op_name(uint32_t op);

/* Elements that this rank gives and gets, where one gives count to (or gets it from) one other. */
uint64_t pki_comm_elements_in(uint32_t op, uint64_t count, uint64_t ranks);
uint64_t pki_comm_elements_out(uint32_t op, uint64_t count, uint64_t ranks);

pk_comm_op pki_comm_op_named(const char *name); /* PK_OP_OTHER for what is none of the names */

/* The one that has been in flight for longest; for operations that complete in their order. */
uint64_t pki_comm_oldest(const pk_comm *comm);

/* From a sequence number's low half. */
uint64_t pki_comm_whole(const pk_comm *comm, uint32_t low);

/* It has begun: what waits in a queue before it has, too. */
void pki_comm_begun(pk_comm *comm, uint64_t sequence);

/* Arguments in the trace. Unless the times are those of a kernel or of a stream, they are not those
 * of the data's way, and there is no bandwidth. */
#define PKI_COMM_TIMED "timed by"
#define PKI_COMM_BY_KERNEL "kernel"
#define PKI_COMM_BY_STREAM "stream"

/* How many operations alike a slice is, and of how many communicators it is the time. */
#define PKI_COMM_CALLS "calls"
#define PKI_COMM_SHARERS "communicators"

/* 1: NCCL's operations are counted where they are called (pk/nccl.h); the profiler's backend then
 * leaves the counting to that (lib/comm/plugin/emit.c). */
extern uint32_t pki_comms_wrapped;

void pki_comms_after_fork(void);

#endif
