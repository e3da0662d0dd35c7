/* lib/comm/mpi/entry_time.h - functions of MPI that libpk_mpi defines, and of which it knows no
 * more than how long they take: one-sided communication, files, neighbourhood collectives, and
 * of MPI 4 what makes persistent ones, and those with large counts. Tables as in entry.h, which
 * tests/mpi/entries.cpp holds against mpi.h.
 */
#pragma once

#include <pk/region.h>

#include "comm/mpi/entry.h"

/* A line for each would be two hundred. */
/* clang-format off */
#define PKI_MPI_TIMED(X) \
    X(Accumulate, 9) X(Comm_idup, 3) X(Compare_and_swap, 7) X(Dist_graph_create, 9)                \
    X(Dist_graph_create_adjacent, 10) X(Fetch_and_op, 7) X(Get, 8) X(Get_accumulate, 12)           \
    X(Ineighbor_allgather, 8) X(Ineighbor_allgatherv, 9) X(Ineighbor_alltoall, 8)                  \
    X(Ineighbor_alltoallv, 10) X(Ineighbor_alltoallw, 10) X(Neighbor_allgather, 7)                 \
    X(Neighbor_allgatherv, 8) X(Neighbor_alltoall, 7) X(Neighbor_alltoallv, 9)                     \
    X(Neighbor_alltoallw, 9) X(Put, 8) X(Raccumulate, 10) X(Rget, 9) X(Rget_accumulate, 13)        \
    X(Rput, 9) X(Win_allocate, 6) X(Win_allocate_shared, 6) X(Win_complete, 1) X(Win_create, 6)    \
    X(Win_create_dynamic, 3) X(Win_fence, 2) X(Win_flush, 2) X(Win_flush_all, 1)                   \
    X(Win_flush_local, 2) X(Win_flush_local_all, 1) X(Win_free, 1) X(Win_lock, 4)                  \
    X(Win_lock_all, 2) X(Win_post, 3) X(Win_start, 3) X(Win_sync, 1) X(Win_test, 2)                \
    X(Win_unlock, 2) X(Win_unlock_all, 1) X(Win_wait, 1)

#define PKI_MPI_TIMED_FILES(X) \
    X(File_close, 1) X(File_iread, 5) X(File_iread_all, 5) X(File_iread_at, 6)                     \
    X(File_iread_at_all, 6) X(File_iread_shared, 5) X(File_iwrite, 5) X(File_iwrite_all, 5)        \
    X(File_iwrite_at, 6) X(File_iwrite_at_all, 6) X(File_iwrite_shared, 5) X(File_open, 5)         \
    X(File_preallocate, 2) X(File_read, 5) X(File_read_all, 5) X(File_read_all_begin, 4)           \
    X(File_read_all_end, 3) X(File_read_at, 6) X(File_read_at_all, 6)                              \
    X(File_read_at_all_begin, 5) X(File_read_at_all_end, 3) X(File_read_ordered, 5)                \
    X(File_read_ordered_begin, 4) X(File_read_ordered_end, 3) X(File_read_shared, 5)               \
    X(File_seek, 3) X(File_seek_shared, 3) X(File_set_size, 2) X(File_set_view, 6)                 \
    X(File_sync, 1) X(File_write, 5) X(File_write_all, 5) X(File_write_all_begin, 4)               \
    X(File_write_all_end, 3) X(File_write_at, 6) X(File_write_at_all, 6)                           \
    X(File_write_at_all_begin, 5) X(File_write_at_all_end, 3) X(File_write_ordered, 5)             \
    X(File_write_ordered_begin, 4) X(File_write_ordered_end, 3) X(File_write_shared, 5)

#define PKI_MPI_TIMED_4(X) \
    X(Accumulate_c, 9) X(Allgather_c, 7) X(Allgather_init, 9) X(Allgather_init_c, 9)               \
    X(Allgatherv_c, 8) X(Allgatherv_init, 10) X(Allgatherv_init_c, 10) X(Allreduce_c, 6)           \
    X(Allreduce_init, 8) X(Allreduce_init_c, 8) X(Alltoall_c, 7) X(Alltoall_init, 9)               \
    X(Alltoall_init_c, 9) X(Alltoallv_c, 9) X(Alltoallv_init, 11) X(Alltoallv_init_c, 11)          \
    X(Alltoallw_c, 9) X(Alltoallw_init, 11) X(Alltoallw_init_c, 11) X(Barrier_init, 3)             \
    X(Bcast_c, 5) X(Bcast_init, 7) X(Bcast_init_c, 7) X(Bsend_c, 6) X(Bsend_init_c, 7)             \
    X(Exscan_c, 6) X(Exscan_init, 8) X(Exscan_init_c, 8) X(Gather_c, 8) X(Gather_init, 10)         \
    X(Gather_init_c, 10) X(Gatherv_c, 9) X(Gatherv_init, 11) X(Gatherv_init_c, 11)                 \
    X(Get_accumulate_c, 12) X(Get_c, 8) X(Iallgather_c, 8) X(Iallgatherv_c, 9) X(Iallreduce_c, 7)  \
    X(Ialltoall_c, 8) X(Ialltoallv_c, 10) X(Ialltoallw_c, 10) X(Ibcast_c, 6) X(Ibsend_c, 7)        \
    X(Iexscan_c, 7) X(Igather_c, 9) X(Igatherv_c, 10) X(Imrecv_c, 5) X(Ineighbor_allgather_c, 8)   \
    X(Ineighbor_allgatherv_c, 9) X(Ineighbor_alltoall_c, 8) X(Ineighbor_alltoallv_c, 10)           \
    X(Ineighbor_alltoallw_c, 10) X(Irecv_c, 7) X(Ireduce_c, 8) X(Ireduce_scatter_block_c, 7)       \
    X(Ireduce_scatter_c, 7) X(Irsend_c, 7) X(Iscan_c, 7) X(Iscatter_c, 9) X(Iscatterv_c, 10)       \
    X(Isend_c, 7) X(Isendrecv_c, 12) X(Isendrecv_replace_c, 9) X(Issend_c, 7) X(Mrecv_c, 5)        \
    X(Neighbor_allgather_c, 7) X(Neighbor_allgather_init, 9) X(Neighbor_allgather_init_c, 9)       \
    X(Neighbor_allgatherv_c, 8) X(Neighbor_allgatherv_init, 10) X(Neighbor_allgatherv_init_c, 10)  \
    X(Neighbor_alltoall_c, 7) X(Neighbor_alltoall_init, 9) X(Neighbor_alltoall_init_c, 9)          \
    X(Neighbor_alltoallv_c, 9) X(Neighbor_alltoallv_init, 11) X(Neighbor_alltoallv_init_c, 11)     \
    X(Neighbor_alltoallw_c, 9) X(Neighbor_alltoallw_init, 11) X(Neighbor_alltoallw_init_c, 11)     \
    X(Put_c, 8) X(Raccumulate_c, 10) X(Recv_c, 7) X(Recv_init_c, 7) X(Reduce_c, 7)                 \
    X(Reduce_init, 9) X(Reduce_init_c, 9) X(Reduce_scatter_block_c, 6)                             \
    X(Reduce_scatter_block_init, 8) X(Reduce_scatter_block_init_c, 8) X(Reduce_scatter_c, 6)       \
    X(Reduce_scatter_init, 8) X(Reduce_scatter_init_c, 8) X(Rget_accumulate_c, 13) X(Rget_c, 9)    \
    X(Rput_c, 9) X(Rsend_c, 6) X(Rsend_init_c, 7) X(Scan_c, 6) X(Scan_init, 8) X(Scan_init_c, 8)   \
    X(Scatter_c, 8) X(Scatter_init, 10) X(Scatter_init_c, 10) X(Scatterv_c, 9)                     \
    X(Scatterv_init, 11) X(Scatterv_init_c, 11) X(Send_c, 6) X(Send_init_c, 7) X(Sendrecv_c, 12)   \
    X(Sendrecv_replace_c, 9) X(Ssend_c, 6) X(Ssend_init_c, 7) X(Win_allocate_c, 6)                 \
    X(Win_allocate_shared_c, 6) X(Win_create_c, 6)
/* clang-format on */

/* Around it, as pki_mpi_begin_wait and _end_wait (glue.h). */
void pki_mpi_border(bool waits);

#define WORDS_11 WORDS_10, word k
#define WORDS_13 WORDS_12, word m
#define WORDS_14 WORDS_13, word n
#define ARGS_11 ARGS_10, k
#define ARGS_13 ARGS_12, m
#define ARGS_14 ARGS_13, n

#define TIMED_OF(KIND, NAME, MPI, PMPI, N, WITH)                                                   \
    word PMPI(WORDS_##N);                                                                          \
    __attribute__((visibility("default"))) word MPI(WORDS_##N);                                    \
    word MPI(WORDS_##N)                                                                            \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(KIND, "MPI_" NAME);                                 \
        static void *event;                                                                        \
        if (pki_mpi_is_other())                                                                    \
            return PMPI(ARGS_##N);                                                                 \
        if (pk_attach_event_)                                                                      \
            pk_attach_event_(&event, "MPI_" NAME, __builtin_return_address(0), WITH);              \
        pk_region_begin(&region);                                                                  \
        pki_mpi_border(true);                                                                      \
        word status = PMPI(ARGS_##N);                                                              \
        pki_mpi_border(false);                                                                     \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }
#define TIMED(NAME, N) TIMED_OF(PK_COMM, #NAME, MPI_##NAME, PMPI_##NAME, N, 0)
#define TIMED_FILE(NAME, N) TIMED_OF(PK_IO, #NAME, MPI_##NAME, PMPI_##NAME, N, 0)
