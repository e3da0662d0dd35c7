/* lib/comm/mpi/entry.h - the functions of MPI that libpk_mpi defines, with the number of their
 * parameters, and what makes a function of each: entry.c, and entry_4.c for those of MPI 4. Both
 * know nothing of mpi.h. tests/mpi/entries.cpp holds the table against it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- the functions ---- */

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
    X(Iexscan, 7)                                                                                  \
    X(Igather, 9)                                                                                  \
    X(Igatherv, 10)                                                                                \
    X(Improbe, 6)                                                                                  \
    X(Imrecv, 5)                                                                                   \
    X(Init, 2)                                                                                     \
    X(Init_thread, 4)                                                                              \
    X(Intercomm_create, 6)                                                                         \
    X(Intercomm_merge, 3)                                                                          \
    X(Ireduce, 8)                                                                                  \
    X(Ireduce_scatter, 7)                                                                          \
    X(Ireduce_scatter_block, 7)                                                                    \
    X(Iscan, 7)                                                                                    \
    X(Iscatter, 9)                                                                                 \
    X(Iscatterv, 10)                                                                               \
    X(Mprobe, 5)                                                                                   \
    X(Mrecv, 5)                                                                                    \
    X(Probe, 4)                                                                                    \
    X(Reduce, 7)                                                                                   \
    X(Reduce_scatter, 6)                                                                           \
    X(Reduce_scatter_block, 6)                                                                     \
    X(Request_free, 1)                                                                             \
    X(Scan, 6)                                                                                     \
    X(Scatter, 8)                                                                                  \
    X(Scatterv, 9)                                                                                 \
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

/* Messages: the fourth parameter is the peer, the fifth the tag. */
#define PKI_MPI_MESSAGES(X)                                                                        \
    X(Bsend, 6)                                                                                    \
    X(Bsend_init, 7)                                                                               \
    X(Ibsend, 7)                                                                                   \
    X(Irecv, 7)                                                                                    \
    X(Irsend, 7)                                                                                   \
    X(Isend, 7)                                                                                    \
    X(Issend, 7)                                                                                   \
    X(Recv, 7)                                                                                     \
    X(Recv_init, 7)                                                                                \
    X(Rsend, 6)                                                                                    \
    X(Rsend_init, 7)                                                                               \
    X(Send, 6)                                                                                     \
    X(Send_init, 7)                                                                                \
    X(Sendrecv, 12)                                                                                \
    X(Sendrecv_replace, 9)                                                                         \
    X(Ssend, 6)                                                                                    \
    X(Ssend_init, 7)

/* Those of MPI 4, where its header has them (entry_4.c); messages, too. */
#define PKI_MPI_ENTRIES_4(X)                                                                       \
    X(Isendrecv, 12)                                                                               \
    X(Isendrecv_replace, 9)

/* ---- is the MPI in this process the one that this library was compiled for? ---- */

/* Whoever preloads the library for the other one has its job run as it would without, and a line on
 * stderr.
 *
 * Threads: any. */

typedef enum pki_mpi_which { PKI_MPI_UNSEEN, PKI_MPI_OURS, PKI_MPI_OTHER } pki_mpi_which;

extern pki_mpi_which pki_mpi_found;

/* Asks MPI, and says so if it is the other one. */
bool pki_mpi_check_library(void);

static inline bool pki_mpi_is_other(void)
{
    if (__builtin_expect(__atomic_load_n(&pki_mpi_found, __ATOMIC_RELAXED) == PKI_MPI_OURS, 1))
        return false;
    return pki_mpi_check_library();
}

/* ---- a function whose parameters are words, whatever their types ---- */

typedef uintptr_t word;

#define WORDS_0 void
#define WORDS_1 word a
#define WORDS_2 WORDS_1, word b
#define WORDS_3 WORDS_2, word c
#define WORDS_4 WORDS_3, word d
#define WORDS_5 WORDS_4, word e
#define WORDS_6 WORDS_5, word f
#define WORDS_7 WORDS_6, word g
#define WORDS_8 WORDS_7, word h
#define WORDS_9 WORDS_8, word i
#define WORDS_10 WORDS_9, word j
#define WORDS_12 WORDS_10, word k, word l

#define ARGS_0
#define ARGS_1 a
#define ARGS_2 ARGS_1, b
#define ARGS_3 ARGS_2, c
#define ARGS_4 ARGS_3, d
#define ARGS_5 ARGS_4, e
#define ARGS_6 ARGS_5, f
#define ARGS_7 ARGS_6, g
#define ARGS_8 ARGS_7, h
#define ARGS_9 ARGS_8, i
#define ARGS_10 ARGS_9, j
#define ARGS_12 ARGS_10, k, l

/* Of libpk_attach, where `pk run` has preloaded it: who repeats what, from where, and with whom. */
extern void pk_attach_event_(void **region, const char *name, const void *site, uint64_t with)
    __attribute__((weak));

/* A peer and a tag as one word; 0 is nobody. */
#define PEER(RANK, TAG) (((uint64_t)(uint32_t)(RANK) << 32 | (uint32_t)(TAG)) + 1)

#define ENTRY(NAME, N) ENTRY_WITH(NAME, N, 0)
#define MESSAGE(NAME, N) ENTRY_WITH(NAME, N, PEER(d, e))
#define ENTRY_WITH(NAME, N, WITH)                                                                  \
    word PMPI_##NAME(WORDS_##N);                                                                   \
    word pki_mpi_##NAME(WORDS_##N);                                                                \
    __attribute__((visibility("default"))) word MPI_##NAME(WORDS_##N);                             \
    word MPI_##NAME(WORDS_##N)                                                                     \
    {                                                                                              \
        static void *region;                                                                       \
        if (pki_mpi_is_other())                                                                    \
            return PMPI_##NAME(ARGS_##N);                                                          \
        if (pk_attach_event_)                                                                      \
            pk_attach_event_(&region, "MPI_" #NAME, __builtin_return_address(0), WITH);            \
        return pki_mpi_##NAME(ARGS_##N);                                                           \
    }
