#include "comm/mpi/amount.h"

#include <stddef.h>

/* The more frequent ones first: they are looked for one by one. */
static const struct {
    MPI_Datatype type;
    pk_comm_type is;
} known[] = {
    {MPI_DOUBLE, PK_COMM_TYPE_FLOAT64},
    {MPI_FLOAT, PK_COMM_TYPE_FLOAT32},
    {MPI_INT, PK_COMM_TYPE_INT32},
    {MPI_BYTE, PK_COMM_TYPE_BYTE},
    {MPI_CHAR, PK_COMM_TYPE_INT8},
    {MPI_INT64_T, PK_COMM_TYPE_INT64},
    {MPI_UINT64_T, PK_COMM_TYPE_UINT64},
    {MPI_INT32_T, PK_COMM_TYPE_INT32},
    {MPI_UINT32_T, PK_COMM_TYPE_UINT32},
    {MPI_UNSIGNED, PK_COMM_TYPE_UINT32},
    {MPI_LONG_LONG, PK_COMM_TYPE_INT64},
    {MPI_UNSIGNED_LONG_LONG, PK_COMM_TYPE_UINT64},
    {MPI_SIGNED_CHAR, PK_COMM_TYPE_INT8},
    {MPI_INT8_T, PK_COMM_TYPE_INT8},
    {MPI_SHORT, PK_COMM_TYPE_INT16},
    {MPI_INT16_T, PK_COMM_TYPE_INT16},
    {MPI_LONG, sizeof(long) == 8 ? PK_COMM_TYPE_INT64 : PK_COMM_TYPE_INT32},
    {MPI_UNSIGNED_LONG, sizeof(long) == 8 ? PK_COMM_TYPE_UINT64 : PK_COMM_TYPE_UINT32},
};

/* Bytes of one element; 0 for MPI_DATATYPE_NULL. */
static uint64_t pki_mpi_type_bytes(MPI_Datatype type)
{
    int bytes = 0;
    if (type == MPI_DATATYPE_NULL || PMPI_Type_size(type, &bytes) != MPI_SUCCESS || bytes < 0)
        return 0;
    return (uint64_t)bytes;
}

static uint64_t not_negative(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

pki_mpi_amount pki_mpi_amount_of(int64_t count, MPI_Datatype type)
{
    if (count <= 0)
        return (pki_mpi_amount){PK_COMM_TYPE_BYTE, 0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].type == type)
            return (pki_mpi_amount){known[i].is, (uint64_t)count};
    return (pki_mpi_amount){PK_COMM_TYPE_BYTE, (uint64_t)count * pki_mpi_type_bytes(type)};
}

uint64_t pki_mpi_bytes_got(const MPI_Status *status)
{
    MPI_Count bytes = 0;
    return PMPI_Get_elements_x(status, MPI_BYTE, &bytes) == MPI_SUCCESS ? not_negative(bytes) : 0;
}

/* Part of a derived type may have come; then bytes are all there is to say. */
pki_mpi_amount pki_mpi_amount_got(const MPI_Status *status, MPI_Datatype type)
{
    uint64_t bytes = pki_mpi_bytes_got(status), one = bytes ? pki_mpi_type_bytes(type) : 0;
    if (one && bytes % one == 0)
        return pki_mpi_amount_of((int64_t)(bytes / one), type);
    return (pki_mpi_amount){PK_COMM_TYPE_BYTE, bytes};
}

static pki_mpi_amount share(uint64_t bytes, int n)
{
    uint64_t ranks = n > 0 ? (uint64_t)n : 1;
    return (pki_mpi_amount){PK_COMM_TYPE_BYTE, (bytes + ranks - 1) / ranks};
}

pki_mpi_amount pki_mpi_share_of(const int counts[], MPI_Datatype type, int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += not_negative(counts[i]);
    return share(sum ? sum * pki_mpi_type_bytes(type) : 0, n);
}

pki_mpi_amount pki_mpi_share_of_each(const int counts[], const MPI_Datatype types[], int n)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += counts[i] > 0 ? not_negative(counts[i]) * pki_mpi_type_bytes(types[i]) : 0;
    return share(sum, n);
}
