/* lib/comm/mpi/entry_time.c - functions of MPI of which no more is known than how long they take */
#include "comm/mpi/entry_time.h"

PKI_MPI_TIMED(TIMED)
PKI_MPI_TIMED_FILES(TIMED_FILE)
