/* lib/comm/mpi/session.h - the session that MPI's ranks have, and which MPI it is */
#pragma once

#include <stdbool.h>

/* ---- variables that libpk_mpi itself reads ---- */

typedef struct pki_mpi_setting {
    const char *variable;
    long least, most, otherwise;
} pki_mpi_setting;

/* A number, or `otherwise` where the variable is not set or empty; also where it is none, or beyond
 * its bounds, which is logged (warning). */
long pki_mpi_setting_of(const pki_mpi_setting *setting);

/* NULL: not set, or empty. */
const char *pki_mpi_text_of(const char *variable);

/* "PK_X=VALUE is SENTENCE" through the log function. */
void pki_mpi_refuse(const char *variable, const char *value, const char *sentence);

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
