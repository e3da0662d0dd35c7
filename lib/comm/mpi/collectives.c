/* lib/comm/mpi/collectives.c - the collectives of MPI: what each moves, by the rules of pk/comm.h
 * (the one place that knows), and the two functions that it is. */
#include "comm/mpi/glue.h"

/* ---- words of the table ---- */

/* MPI's own numbers are below 0: MPI_ROOT, MPI_PROC_NULL. */
static int32_t peer_of(int root)
{
    return root < 0 ? -1 : root;
}

#define OF(count, type) pki_mpi_amount_of(count, type)

/* What a rank gives; where its part lies in the receive buffer already, what it gets from itself.
 */
#define GIVES(count, type, or_count, or_type)                                                      \
    (sendbuf == MPI_IN_PLACE ? OF(or_count, or_type) : OF(count, type))
#define GETS(count, type, or_count, or_type)                                                       \
    (recvbuf == MPI_IN_PLACE ? OF(or_count, or_type) : OF(count, type))

/* In an inter-communicator one process is MPI_ROOT and its neighbours are MPI_PROC_NULL; then most
 * of their arguments mean nothing. */
#define ROOTED(otherwise, of_root)                                                                 \
    (root == MPI_PROC_NULL ? (pki_mpi_amount){PK_COMM_TYPE_BYTE, 0}                                \
     : root == MPI_ROOT    ? (of_root)                                                             \
                           : (otherwise))

/* My own among counts that go by rank. At a root of an inter-communicator they are of others. */
#define MINE(counts) (at->is_inter ? 0 : (counts)[at->rank])

#define SEND1 const void *sendbuf, int sendcount, MPI_Datatype sendtype
#define RECV1 void *recvbuf, int recvcount, MPI_Datatype recvtype
#define SENDV                                                                                      \
    const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype
#define RECVV void *recvbuf, const int recvcounts[], const int displs[], MPI_Datatype recvtype
#define SENDW                                                                                      \
    const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[]
#define RECVW                                                                                      \
    void *recvbuf, const int recvcounts[], const int displs[], const MPI_Datatype recvtypes[]
#define REDUCED const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op

/* ---- the table ---- */

/* X(name, name of the twin that returns at once, parameters, arguments, operation, root, amount)
 *
 * The expressions may use the parameters, and `at`, which is what is known of the communicator. */
#define COLLECTIVES(X)                                                                             \
    X(Barrier, Ibarrier, (MPI_Comm comm), (comm), PK_COMM_OP_BARRIER, -1, OF(0, MPI_BYTE))         \
    X(Bcast, Ibcast, (void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm),           \
      (buf, count, type, root, comm), PK_COMM_OP_BROADCAST, root,                                  \
      ROOTED(OF(count, type), OF(count, type)))                                                    \
    X(Reduce, Ireduce, (REDUCED, int root, MPI_Comm comm),                                         \
      (sendbuf, recvbuf, count, type, op, root, comm), PK_COMM_OP_REDUCE, root,                    \
      ROOTED(OF(count, type), OF(count, type)))                                                    \
    X(Allreduce, Iallreduce, (REDUCED, MPI_Comm comm), (sendbuf, recvbuf, count, type, op, comm),  \
      PK_COMM_OP_ALL_REDUCE, -1, OF(count, type))                                                  \
    X(Scan, Iscan, (REDUCED, MPI_Comm comm), (sendbuf, recvbuf, count, type, op, comm),            \
      PK_COMM_OP_OTHER, -1, OF(count, type))                                                       \
    X(Exscan, Iexscan, (REDUCED, MPI_Comm comm), (sendbuf, recvbuf, count, type, op, comm),        \
      PK_COMM_OP_OTHER, -1, OF(count, type))                                                       \
    X(Reduce_scatter, Ireduce_scatter,                                                             \
      (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype type, MPI_Op op,   \
       MPI_Comm comm),                                                                             \
      (sendbuf, recvbuf, recvcounts, type, op, comm), PK_COMM_OP_REDUCE_SCATTER, -1,               \
      OF(recvcounts[at->rank], type))                                                              \
    X(Reduce_scatter_block, Ireduce_scatter_block,                                                 \
      (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype type, MPI_Op op,            \
       MPI_Comm comm),                                                                             \
      (sendbuf, recvbuf, recvcount, type, op, comm), PK_COMM_OP_REDUCE_SCATTER, -1,                \
      OF(recvcount, type))                                                                         \
    X(Allgather, Iallgather, (SEND1, RECV1, MPI_Comm comm),                                        \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), PK_COMM_OP_ALL_GATHER,   \
      -1, GIVES(sendcount, sendtype, recvcount, recvtype))                                         \
    X(Allgatherv, Iallgatherv, (SEND1, RECVV, MPI_Comm comm),                                      \
      (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm),                 \
      PK_COMM_OP_ALL_GATHER, -1, GIVES(sendcount, sendtype, MINE(recvcounts), recvtype))           \
    X(Gather, Igather, (SEND1, RECV1, int root, MPI_Comm comm),                                    \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm), PK_COMM_OP_GATHER, \
      root, ROOTED(GIVES(sendcount, sendtype, recvcount, recvtype), OF(recvcount, recvtype)))      \
    X(Gatherv, Igatherv, (SEND1, RECVV, int root, MPI_Comm comm),                                  \
      (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm),           \
      PK_COMM_OP_GATHER, root,                                                                     \
      ROOTED(GIVES(sendcount, sendtype, MINE(recvcounts), recvtype),                               \
             pki_mpi_share_of(recvcounts, recvtype, at->others)))                                  \
    X(Scatter, Iscatter, (SEND1, RECV1, int root, MPI_Comm comm),                                  \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm),                    \
      PK_COMM_OP_SCATTER, root,                                                                    \
      ROOTED(GETS(recvcount, recvtype, sendcount, sendtype), OF(sendcount, sendtype)))             \
    X(Scatterv, Iscatterv, (SENDV, RECV1, int root, MPI_Comm comm),                                \
      (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcount, recvtype, root, comm),          \
      PK_COMM_OP_SCATTER, root,                                                                    \
      ROOTED(GETS(recvcount, recvtype, MINE(sendcounts), sendtype),                                \
             pki_mpi_share_of(sendcounts, sendtype, at->others)))                                  \
    X(Alltoall, Ialltoall, (SEND1, RECV1, MPI_Comm comm),                                          \
      (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm), PK_COMM_OP_ALL_TO_ALL,   \
      -1, GIVES(sendcount, sendtype, recvcount, recvtype))                                         \
    X(Alltoallv, Ialltoallv, (SENDV, RECVV, MPI_Comm comm),                                        \
      (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, displs, recvtype, comm),       \
      PK_COMM_OP_ALL_TO_ALL, -1,                                                                   \
      sendbuf == MPI_IN_PLACE ? pki_mpi_share_of(recvcounts, recvtype, at->others)                 \
                              : pki_mpi_share_of(sendcounts, sendtype, at->others))                \
    X(Alltoallw, Ialltoallw, (SENDW, RECVW, MPI_Comm comm),                                        \
      (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, displs, recvtypes, comm),     \
      PK_COMM_OP_ALL_TO_ALL, -1,                                                                   \
      sendbuf == MPI_IN_PLACE ? pki_mpi_share_of_each(recvcounts, recvtypes, at->others)           \
                              : pki_mpi_share_of_each(sendcounts, sendtypes, at->others))

/* ---- that return when they are done: each call is a region which is that operation ---- */

/* Does nobody leave it before all have come? With nothing to move an MPI need not wait; and all
 * ranks have to say the same of the same call. */
#define ALL_WAIT(OP, COUNT)                                                                        \
    ((OP) == PK_COMM_OP_BARRIER || ((OP) == PK_COMM_OP_ALL_REDUCE && (COUNT) > 0))

#define BLOCKING(NAME, INAME, PARAMS, ARGS, OP, ROOT, AMOUNT)                                      \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##NAME ARGS;                                                               \
        const pki_mpi_comm *at = pki_mpi_comm_of(comm);                                            \
        pki_mpi_amount amount = at ? AMOUNT : OF(0, MPI_BYTE);                                     \
        if (ALL_WAIT(OP, amount.count))                                                            \
            pki_mpi_clocks_meet(comm);                                                             \
        pk_region_begin(&region);                                                                  \
        if (at)                                                                                    \
            pk_comm_call(&region, at->collective, OP, amount.type, amount.count, peer_of(ROOT));   \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

COLLECTIVES(BLOCKING)

/* ---- that go on when the call has returned: a request, complete when MPI says so ---- */

/* The operation starts outside the call's own region: it belongs to the program's around it. */
#define AT_ONCE(NAME, INAME, PARAMS, ARGS, OP, ROOT, AMOUNT)                                       \
    PKI_MPI_CALL(INAME)(PKI_MPI_LIST PARAMS, MPI_Request * request)                                \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #INAME);                            \
        if (!pki_mpi_is_on())                                                                      \
            return PMPI_##INAME(PKI_MPI_LIST ARGS, request);                                       \
        const pki_mpi_comm *at = pki_mpi_comm_of(comm);                                            \
        pki_mpi_operation operation = {0};                                                         \
        if (at)                                                                                    \
            operation = (pki_mpi_operation){at->collective, OP, AMOUNT, peer_of(ROOT), -1};        \
        pk_comm_request started = pki_mpi_start(&operation);                                       \
        pk_region_begin(&region);                                                                  \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##INAME(PKI_MPI_LIST ARGS, request);                                     \
        pki_mpi_end_wait();                                                                        \
        pki_mpi_follow(status, request, &operation, &started);                                     \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

COLLECTIVES(AT_ONCE)
