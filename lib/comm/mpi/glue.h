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

#include <pk/comm.h>
#include <pk/private.h>

#include "comm/mpi/stragglers.h"

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
