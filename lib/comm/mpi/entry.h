/* lib/comm/mpi/entry.h - the functions of MPI that libpk_mpi defines, with the number of their
 * parameters. tests/mpi/entries.cpp holds it against mpi.h.
 */
#pragma once

/* X(name, number of parameters) */
#define PKI_MPI_ENTRIES(X)                                                                         \
    X(Abort, 2)                                                                                    \
    X(Allgather, 7)                                                                                \
    X(Allgatherv, 8)                                                                               \
    X(Allreduce, 6)                                                                                \
    X(Alltoall, 7)                                                                                 \
    X(Alltoallv, 9)                                                                                \
    X(Alltoallw, 9)                                                                                \
    X(Barrier, 1)                                                                                  \
    X(Bcast, 5)                                                                                    \
    X(Bsend, 6)                                                                                    \
    X(Bsend_init, 7)                                                                               \
    X(Cancel, 1)                                                                                   \
    X(Cart_create, 6)                                                                              \
    X(Cart_sub, 3)                                                                                 \
    X(Comm_create, 3)                                                                              \
    X(Comm_create_group, 4)                                                                        \
    X(Comm_disconnect, 1)                                                                          \
    X(Comm_dup, 2)                                                                                 \
    X(Comm_dup_with_info, 3)                                                                       \
    X(Comm_free, 1)                                                                                \
    X(Comm_split, 4)                                                                               \
    X(Comm_split_type, 5)                                                                          \
    X(Exscan, 6)                                                                                   \
    X(Finalize, 0)                                                                                 \
    X(Gather, 8)                                                                                   \
    X(Gatherv, 9)                                                                                  \
    X(Graph_create, 6)                                                                             \
    X(Iallgather, 8)                                                                               \
    X(Iallgatherv, 9)                                                                              \
    X(Iallreduce, 7)                                                                               \
    X(Ialltoall, 8)                                                                                \
    X(Ialltoallv, 10)                                                                              \
    X(Ialltoallw, 10)                                                                              \
    X(Ibarrier, 2)                                                                                 \
    X(Ibcast, 6)                                                                                   \
    X(Ibsend, 7)                                                                                   \
    X(Iexscan, 7)                                                                                  \
    X(Igather, 9)                                                                                  \
    X(Igatherv, 10)                                                                                \
    X(Improbe, 6)                                                                                  \
    X(Imrecv, 5)                                                                                   \
    X(Init, 2)                                                                                     \
    X(Init_thread, 4)                                                                              \
    X(Intercomm_create, 6)                                                                         \
    X(Intercomm_merge, 3)                                                                          \
    X(Irecv, 7)                                                                                    \
    X(Ireduce, 8)                                                                                  \
    X(Ireduce_scatter, 7)                                                                          \
    X(Ireduce_scatter_block, 7)                                                                    \
    X(Irsend, 7)                                                                                   \
    X(Iscan, 7)                                                                                    \
    X(Iscatter, 9)                                                                                 \
    X(Iscatterv, 10)                                                                               \
    X(Isend, 7)                                                                                    \
    X(Issend, 7)                                                                                   \
    X(Mprobe, 5)                                                                                   \
    X(Mrecv, 5)                                                                                    \
    X(Probe, 4)                                                                                    \
    X(Recv, 7)                                                                                     \
    X(Recv_init, 7)                                                                                \
    X(Reduce, 7)                                                                                   \
    X(Reduce_scatter, 6)                                                                           \
    X(Reduce_scatter_block, 6)                                                                     \
    X(Request_free, 1)                                                                             \
    X(Rsend, 6)                                                                                    \
    X(Rsend_init, 7)                                                                               \
    X(Scan, 6)                                                                                     \
    X(Scatter, 8)                                                                                  \
    X(Scatterv, 9)                                                                                 \
    X(Send, 6)                                                                                     \
    X(Send_init, 7)                                                                                \
    X(Sendrecv, 12)                                                                                \
    X(Sendrecv_replace, 9)                                                                         \
    X(Ssend, 6)                                                                                    \
    X(Ssend_init, 7)                                                                               \
    X(Start, 1)                                                                                    \
    X(Startall, 2)                                                                                 \
    X(Test, 3)                                                                                     \
    X(Testall, 4)                                                                                  \
    X(Testany, 5)                                                                                  \
    X(Testsome, 5)                                                                                 \
    X(Wait, 2)                                                                                     \
    X(Waitall, 3)                                                                                  \
    X(Waitany, 4)                                                                                  \
    X(Waitsome, 5)

/* Those of MPI 4, where its header has them (entry_4.c). */
#define PKI_MPI_ENTRIES_4(X)                                                                       \
    X(Isendrecv, 12)                                                                               \
    X(Isendrecv_replace, 9)
