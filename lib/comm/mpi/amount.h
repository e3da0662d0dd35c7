/* lib/comm/mpi/amount.h - so many elements of a type of MPI's, in perfkit's types. */
#pragma once

#include "comm/mpi/communicator.h"

typedef struct pki_mpi_amount {
    pk_comm_type type;
    uint64_t count;
} pki_mpi_amount;

/* Derived types, and those that perfkit has no name for, are bytes by MPI_Type_size. */
pki_mpi_amount pki_mpi_amount_of(int64_t count, MPI_Datatype type);

/* What has come, by the status of a receive. */
uint64_t pki_mpi_bytes_got(const MPI_Status *status);
pki_mpi_amount pki_mpi_amount_got(const MPI_Status *status, MPI_Datatype type);

/* What one of n others gets on the average, in bytes, rounded up. */
pki_mpi_amount pki_mpi_share_of(const int counts[], MPI_Datatype type, int n);
pki_mpi_amount pki_mpi_share_of_each(const int counts[], const MPI_Datatype types[], int n);
