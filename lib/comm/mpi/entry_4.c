/* lib/comm/mpi/entry_4.c - as entry.c, of MPI 4. In a file of its own, so that a program that is
 * linked with an MPI without these functions does not need them: it calls none.
 *
 * The shared library may meet an MPI of the same family that is older than the header it was
 * compiled with: there the functions are not, and nobody calls ours.
 */
#include "comm/mpi/entry.h"

#ifdef PKI_MPI_MAY_LACK_4
#pragma weak PMPI_Isendrecv
#pragma weak PMPI_Isendrecv_replace
#endif

PKI_MPI_ENTRIES_4(MESSAGE)
