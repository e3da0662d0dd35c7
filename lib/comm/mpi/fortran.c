/* lib/comm/mpi/fortran.c - MPI as Fortran calls it, where its functions call PMPI's and not MPI's
 * (Open MPI): how long calls take, and where MPI begins and ends. Those of mpif.h and of the module
 * mpi have names with an underscore, those of the module mpi_f08 with _f08_; both have the status
 * as one more word, and behind it the lengths of texts. What passes through is not looked at.
 *
 * A C program has none of the functions that are called here, and calls none of these.
 */
#include <mpi.h>

#include "comm/mpi/entry_time.h"

/* X(name, in small letters, words) */
/* clang-format off */
#define FORTRAN(X)                                                                                 \
    X(Accumulate, accumulate, 10) X(Allgather, allgather, 8) X(Allgatherv, allgatherv, 9)          \
    X(Allreduce, allreduce, 7) X(Alltoall, alltoall, 8) X(Alltoallv, alltoallv, 10)                \
    X(Alltoallw, alltoallw, 10) X(Barrier, barrier, 2) X(Bcast, bcast, 6) X(Cancel, cancel, 2)     \
    X(Cart_create, cart_create, 7) X(Cart_sub, cart_sub, 4) X(Comm_create, comm_create, 4)         \
    X(Comm_create_group, comm_create_group, 5) X(Comm_disconnect, comm_disconnect, 2)              \
    X(Comm_dup, comm_dup, 3) X(Comm_dup_with_info, comm_dup_with_info, 4)                          \
    X(Comm_free, comm_free, 2) X(Comm_idup, comm_idup, 4) X(Comm_split, comm_split, 5)             \
    X(Comm_split_type, comm_split_type, 6) X(Compare_and_swap, compare_and_swap, 8)                \
    X(Dist_graph_create, dist_graph_create, 10)                                                    \
    X(Dist_graph_create_adjacent, dist_graph_create_adjacent, 11) X(Exscan, exscan, 7)             \
    X(Fetch_and_op, fetch_and_op, 8) X(File_close, file_close, 2) X(File_iread, file_iread, 6)     \
    X(File_iread_all, file_iread_all, 6) X(File_iread_at, file_iread_at, 7)                        \
    X(File_iread_at_all, file_iread_at_all, 7) X(File_iread_shared, file_iread_shared, 6)          \
    X(File_iwrite, file_iwrite, 6) X(File_iwrite_all, file_iwrite_all, 6)                          \
    X(File_iwrite_at, file_iwrite_at, 7) X(File_iwrite_at_all, file_iwrite_at_all, 7)              \
    X(File_iwrite_shared, file_iwrite_shared, 6) X(File_open, file_open, 7)                        \
    X(File_preallocate, file_preallocate, 3) X(File_read, file_read, 6)                            \
    X(File_read_all, file_read_all, 6) X(File_read_all_begin, file_read_all_begin, 5)              \
    X(File_read_all_end, file_read_all_end, 4) X(File_read_at, file_read_at, 7)                    \
    X(File_read_at_all, file_read_at_all, 7)                                                       \
    X(File_read_at_all_begin, file_read_at_all_begin, 6)                                           \
    X(File_read_at_all_end, file_read_at_all_end, 4) X(File_read_ordered, file_read_ordered, 6)    \
    X(File_read_ordered_begin, file_read_ordered_begin, 5)                                         \
    X(File_read_ordered_end, file_read_ordered_end, 4) X(File_read_shared, file_read_shared, 6)    \
    X(File_seek, file_seek, 4) X(File_seek_shared, file_seek_shared, 4)                            \
    X(File_set_size, file_set_size, 3) X(File_set_view, file_set_view, 8)                          \
    X(File_sync, file_sync, 2) X(File_write, file_write, 6) X(File_write_all, file_write_all, 6)   \
    X(File_write_all_begin, file_write_all_begin, 5)                                               \
    X(File_write_all_end, file_write_all_end, 4) X(File_write_at, file_write_at, 7)                \
    X(File_write_at_all, file_write_at_all, 7)                                                     \
    X(File_write_at_all_begin, file_write_at_all_begin, 6)                                         \
    X(File_write_at_all_end, file_write_at_all_end, 4)                                             \
    X(File_write_ordered, file_write_ordered, 6)                                                   \
    X(File_write_ordered_begin, file_write_ordered_begin, 5)                                       \
    X(File_write_ordered_end, file_write_ordered_end, 4)                                           \
    X(File_write_shared, file_write_shared, 6) X(Gather, gather, 9) X(Gatherv, gatherv, 10)        \
    X(Get, get, 9) X(Get_accumulate, get_accumulate, 13) X(Graph_create, graph_create, 7)          \
    X(Iallgather, iallgather, 9) X(Iallgatherv, iallgatherv, 10) X(Iallreduce, iallreduce, 8)      \
    X(Ialltoall, ialltoall, 9) X(Ialltoallv, ialltoallv, 11) X(Ialltoallw, ialltoallw, 11)         \
    X(Ibarrier, ibarrier, 3) X(Ibcast, ibcast, 7) X(Iexscan, iexscan, 8) X(Igather, igather, 10)   \
    X(Igatherv, igatherv, 11) X(Improbe, improbe, 7) X(Imrecv, imrecv, 6)                          \
    X(Ineighbor_allgather, ineighbor_allgather, 9)                                                 \
    X(Ineighbor_allgatherv, ineighbor_allgatherv, 10)                                              \
    X(Ineighbor_alltoall, ineighbor_alltoall, 9) X(Ineighbor_alltoallv, ineighbor_alltoallv, 11)   \
    X(Ineighbor_alltoallw, ineighbor_alltoallw, 11) X(Intercomm_create, intercomm_create, 7)       \
    X(Intercomm_merge, intercomm_merge, 4) X(Ireduce, ireduce, 9)                                  \
    X(Ireduce_scatter, ireduce_scatter, 8) X(Ireduce_scatter_block, ireduce_scatter_block, 8)      \
    X(Iscan, iscan, 8) X(Iscatter, iscatter, 10) X(Iscatterv, iscatterv, 11)                       \
    X(Mprobe, mprobe, 6) X(Mrecv, mrecv, 6) X(Neighbor_allgather, neighbor_allgather, 8)           \
    X(Neighbor_allgatherv, neighbor_allgatherv, 9) X(Neighbor_alltoall, neighbor_alltoall, 8)      \
    X(Neighbor_alltoallv, neighbor_alltoallv, 10) X(Neighbor_alltoallw, neighbor_alltoallw, 10)    \
    X(Probe, probe, 5) X(Put, put, 9) X(Raccumulate, raccumulate, 11) X(Reduce, reduce, 8)         \
    X(Reduce_scatter, reduce_scatter, 7) X(Reduce_scatter_block, reduce_scatter_block, 7)          \
    X(Request_free, request_free, 2) X(Rget, rget, 10) X(Rget_accumulate, rget_accumulate, 14)     \
    X(Rput, rput, 10) X(Scan, scan, 7) X(Scatter, scatter, 9) X(Scatterv, scatterv, 10)            \
    X(Start, start, 2) X(Startall, startall, 3) X(Test, test, 4) X(Testall, testall, 5)            \
    X(Testany, testany, 6) X(Testsome, testsome, 6) X(Wait, wait, 3) X(Waitall, waitall, 4)        \
    X(Waitany, waitany, 5) X(Waitsome, waitsome, 6) X(Win_allocate, win_allocate, 7)               \
    X(Win_allocate_shared, win_allocate_shared, 7) X(Win_complete, win_complete, 2)                \
    X(Win_create, win_create, 7) X(Win_create_dynamic, win_create_dynamic, 4)                      \
    X(Win_fence, win_fence, 3) X(Win_flush, win_flush, 3) X(Win_flush_all, win_flush_all, 2)       \
    X(Win_flush_local, win_flush_local, 3) X(Win_flush_local_all, win_flush_local_all, 2)          \
    X(Win_free, win_free, 2) X(Win_lock, win_lock, 5) X(Win_lock_all, win_lock_all, 3)             \
    X(Win_post, win_post, 4) X(Win_start, win_start, 4) X(Win_sync, win_sync, 2)                   \
    X(Win_test, win_test, 3) X(Win_unlock, win_unlock, 3) X(Win_unlock_all, win_unlock_all, 2)     \
    X(Win_wait, win_wait, 2)
#define FORTRAN_MESSAGES(X)                                                                        \
    X(Bsend, bsend, 7) X(Bsend_init, bsend_init, 8) X(Ibsend, ibsend, 8) X(Irecv, irecv, 8)        \
    X(Irsend, irsend, 8) X(Isend, isend, 8) X(Issend, issend, 8) X(Recv, recv, 8)                  \
    X(Recv_init, recv_init, 8) X(Rsend, rsend, 7) X(Rsend_init, rsend_init, 8) X(Send, send, 7)    \
    X(Send_init, send_init, 8) X(Sendrecv, sendrecv, 13)                                           \
    X(Sendrecv_replace, sendrecv_replace, 10) X(Ssend, ssend, 7) X(Ssend_init, ssend_init, 8)
/* clang-format on */

#define BOTH(NAME, SMALL, N) BOTH_WITH(NAME, SMALL, N, 0)
#define MESSAGE_BOTH(NAME, SMALL, N)                                                               \
    BOTH_WITH(NAME, SMALL, N, PEER(*(const MPI_Fint *)d, *(const MPI_Fint *)e))
#define BOTH_WITH(NAME, SMALL, N, WITH)                                                            \
    __attribute__((weak)) word pmpi_##SMALL##_(WORDS_##N);                                         \
    __attribute__((weak)) word pmpi_##SMALL##_f08_(WORDS_##N);                                     \
    TIMED_OF(PK_COMM, #NAME, mpi_##SMALL##_, pmpi_##SMALL##_, N, WITH)                             \
    TIMED_OF(PK_COMM, #NAME, mpi_##SMALL##_f08_, pmpi_##SMALL##_f08_, N, WITH)

FORTRAN(BOTH)
FORTRAN_MESSAGES(MESSAGE_BOTH)

/* ---- the beginning and the end: as C's ---- */

#define AS_C(SMALL, PARAMS, ARGS, CALL)                                                            \
    __attribute__((weak)) void pmpi_##SMALL##_ PARAMS;                                             \
    __attribute__((visibility("default"))) void mpi_##SMALL##_ PARAMS;                             \
    void mpi_##SMALL##_ PARAMS                                                                     \
    {                                                                                              \
        if (pki_mpi_is_other()) {                                                                  \
            pmpi_##SMALL##_ ARGS;                                                                  \
            return;                                                                                \
        }                                                                                          \
        int said = CALL;                                                                           \
        if (status)                                                                                \
            *status = said;                                                                        \
    }                                                                                              \
    __attribute__((visibility("default"))) void mpi_##SMALL##_f08_ PARAMS                          \
        __attribute__((alias("mpi_" #SMALL "_")));

/* session.c */
extern __typeof__(PMPI_Init) pki_mpi_Init;
extern __typeof__(PMPI_Init_thread) pki_mpi_Init_thread;
extern __typeof__(PMPI_Finalize) pki_mpi_Finalize;
extern __typeof__(PMPI_Abort) pki_mpi_Abort;

AS_C(init, (MPI_Fint * status), (status), pki_mpi_Init(NULL, NULL))
AS_C(init_thread, (const MPI_Fint *wanted, MPI_Fint *given, MPI_Fint *status),
     (wanted, given, status), pki_mpi_Init_thread(NULL, NULL, *wanted, given))
AS_C(finalize, (MPI_Fint * status), (status), pki_mpi_Finalize())
AS_C(abort, (const MPI_Fint *comm, const MPI_Fint *code, MPI_Fint *status), (comm, code, status),
     pki_mpi_Abort(PMPI_Comm_f2c(*comm), *code))
