/* lib/comm/mpi/entry_time_4.c - the same of MPI 4, in a file of its own for the reasons of
 * entry_4.c
 */
#include "comm/mpi/entry_time.h"

#ifdef PKI_MPI_MAY_LACK_4
#define LACK(NAME, N) __attribute__((weak)) word PMPI_##NAME(WORDS_##N);
PKI_MPI_TIMED_4(LACK)
#endif

PKI_MPI_TIMED_4(TIMED)
