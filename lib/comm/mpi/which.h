/* lib/comm/mpi/which.h - is the MPI in this process the one that this library was compiled for?
 *
 * Whoever preloads the library for the other one has its job run as it would without, and a line on
 * stderr.
 *
 * Threads: any.
 */
#pragma once

#include <stdbool.h>

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
