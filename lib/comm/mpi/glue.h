/* lib/comm/mpi/glue.h - what all files of libpk_mpi share: the way between a call of the program's
 * and MPI's own.
 *
 * libpk_mpi defines functions of MPI and calls on through PMPI. It knows perfkit as any program
 * does, through <pk/...>. Arguments and results pass through untouched; while perfkit is off a call
 * is two loads and branches and MPI's own.
 */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <pk/comm.h>
#include <pk/private.h>

#include "comm/mpi/ranks.h"

/* ---- a call ---- */

/* What perfkit makes of a call of MPI_NAME, which is defined in entry.c:
 *     PKI_MPI_CALL(NAME)(parameters) { ... } */
#define PKI_MPI_CALL(NAME)                                                                         \
    extern __typeof__(PMPI_##NAME) pki_mpi_##NAME;                                                 \
    int pki_mpi_##NAME

static inline bool pki_mpi_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&pk_gate_, __ATOMIC_RELAXED) != 0, 0);
}

/* Around what waits for other ranks, and whatever else is communication and no time of the rank's
 * own: where there are more of them than processors, how long the thread wanted one is told apart
 * by that (core/ready.h). */
static inline void pki_mpi_begin_wait(void)
{
    if (pki_mpi_is_on())
        pk_comm_border_on_(1);
}

static inline void pki_mpi_end_wait(void)
{
    if (pki_mpi_is_on())
        pk_comm_border_on_(0);
    pki_mpi_stragglers_turn();
}

/* Takes the parentheses off: PKI_MPI_LIST (int a, int b), int c */
#define PKI_MPI_LIST(...) __VA_ARGS__

/* A call that is a region and nothing more. PARAMS and ARGS in parentheses. */
#define PKI_MPI_REGION_ONLY(NAME, PARAMS, ARGS)                                                    \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        pk_region_begin(&region);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int result = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return result;                                                                             \
    }

/* ---- which communicator it is, the same on all its ranks, and who they are ---- */

/* Nothing is sent for it. All members know the group, as ranks of MPI_COMM_WORLD; and all of them
 * make and free the communicators of a group in the same order, since each of these calls is
 * collective. So a communicator is its group, and the smallest number that no other living one of
 * the same group has when it is made. What is made and freed in a loop is one and the same.
 *
 * Two cases are beyond that: several communicators of one group that were made while perfkit was
 * off, or by threads at the same time, and that ranks use first in different orders.
 *
 * Threads: any. Of a group with members outside MPI_COMM_WORLD (MPI_Comm_spawn) nothing is known.
 */

typedef struct pki_mpi_identity {
    uint64_t group;  /* hash of its ranks; 0: unknown */
    uint32_t number; /* among those of the same group; 0: MPI_COMM_WORLD and MPI_COMM_SELF */
} pki_mpi_identity;

/* ---- what perfkit knows of a communicator of MPI's ---- */

/* It is made when the communicator is first used while perfkit is on, hangs on it as an attribute,
 * and goes with it. So it does not matter how a communicator came into being.
 *
 * Threads: any. The look-up takes no lock, and MPI is asked once per thread and communicator. */

typedef struct pki_mpi_comm {
    pk_comm *collective; /* what all ranks do in the same order: sequence numbers mean the same */
    pk_comm *messages;   /* point to point */
    int rank, size;      /* of an inter-communicator: in the own group */
    int others;          /* whom a collective goes to: size, or that of the remote group */
    bool is_inter;
    pki_mpi_identity identity;
} pki_mpi_comm;

/* NULL for MPI_COMM_NULL and for what MPI does not know. */
const pki_mpi_comm *pki_mpi_comm_of(MPI_Comm comm);

/* ---- so many elements of a type of MPI's, in perfkit's types ---- */

typedef struct pki_mpi_amount {
    pk_comm_type type;
    uint64_t count;
} pki_mpi_amount;

/* Derived types, and those that perfkit has no name for, are bytes by MPI_Type_size. */
pki_mpi_amount pki_mpi_amount_of(int64_t count, MPI_Datatype type);

/* What has come, by the status of a receive. */
uint64_t pki_mpi_bytes_got(const MPI_Status *status);
pki_mpi_amount pki_mpi_amount_got(const MPI_Status *status, MPI_Datatype type);

/* ---- which of MPI's requests is which operation of perfkit's ---- */

#define PKI_MPI_UNKNOWN UINT32_MAX

/* What is started, perhaps again and again. comm NULL: nothing that perfkit knows of. */
typedef struct pki_mpi_operation {
    pk_comm *comm;
    pk_comm_op op;
    pki_mpi_amount amount;
    int32_t peer;
    int32_t tag; /* of a message; -1: none, or not known yet */
} pki_mpi_operation;

static inline pk_comm_request pki_mpi_start(const pki_mpi_operation *o)
{
    pk_comm_request started =
        pk_comm_start(o->comm, o->op, o->amount.type, o->amount.count, o->peer);
    pk_comm_set_request_tag(&started, o->tag);
    return started;
}

/* For how long the program waits. */
static inline uint64_t pki_mpi_now_ns(void)
{
    struct timespec t = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* MPI has answered the call that started it with this status: from now on the request is followed,
 * or, if that went wrong, over. */
void pki_mpi_follow(int status, const MPI_Request *request, const pki_mpi_operation *operation,
                    pk_comm_request *started);

/* A request that is a send and a receive, whose status is that of the receive. Either may be none.
 */
void pki_mpi_follow_both(int status, const MPI_Request *request, pk_comm_request *sending,
                         const pki_mpi_operation *receive, pk_comm_request *receiving);

/* ---- messages ---- */

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

/* ---- a send and a receive in one call: two messages, two operations ---- */

/* The call's region is the send. The receive is beside it, as a request that begins and ends with
 * the call, so that it has its own partner, tag, bytes and number, and is found by whoever sent it.
 * Where there is nobody to send to (MPI_PROC_NULL), the region is the receive. */

#define PKI_MPI_EXCHANGE_PARAMS                                                                    \
    const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,              \
        void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,              \
        MPI_Comm comm
#define PKI_MPI_EXCHANGE_ARGS                                                                      \
    sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm
#define PKI_MPI_REPLACE_PARAMS                                                                     \
    void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,       \
        MPI_Comm comm
#define PKI_MPI_REPLACE_ARGS buf, count, type, dest, sendtag, source, recvtag, comm

/* Either has no communicator if there is nobody on its side. */
typedef struct pki_mpi_exchange {
    pki_mpi_operation sent, received;
} pki_mpi_exchange;

static inline pki_mpi_exchange pki_mpi_exchange_of(int sendcount, MPI_Datatype sendtype, int dest,
                                                   int sendtag, int recvcount,
                                                   MPI_Datatype recvtype, int source, int recvtag,
                                                   MPI_Comm comm)
{
    pk_comm_op op = source == MPI_PROC_NULL ? PK_COMM_OP_SEND : PK_COMM_OP_SEND_RECV;
    return (pki_mpi_exchange){
        pki_mpi_message(op, sendcount, sendtype, dest, sendtag, comm),
        pki_mpi_message(PK_COMM_OP_RECV, recvcount, recvtype, source, recvtag, comm)};
}
