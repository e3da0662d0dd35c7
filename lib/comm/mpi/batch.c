#include "comm/mpi/batch.h"

#include <stdlib.h>

static void release(pki_mpi_batch *b)
{
    if (b->entries != b->few)
        free(b->entries);
    if (b->own != b->few_own)
        free(b->own);
    b->n = 0;
}

void pki_mpi_batch_open(pki_mpi_batch *b, int n, const MPI_Request requests[])
{
    bool any = false;
    b->n = 0;
    b->receives = false;
    b->own = b->few_own;
    b->entries = n > PKI_MPI_FEW ? malloc((size_t)n * sizeof *b->entries) : b->few;
    if (!b->entries)
        return;
    for (int i = 0; i < n; i++) {
        b->entries[i] = pki_mpi_claim(requests[i]);
        any = any || b->entries[i] != PKI_MPI_UNKNOWN;
        b->receives = b->receives || pki_mpi_receives(b->entries[i]);
    }
    if (!any) {
        release(b);
        return;
    }
    b->n = n;
    b->start = pki_mpi_now_ns();
}

MPI_Status *pki_mpi_batch_statuses(pki_mpi_batch *b, MPI_Status *wanted)
{
    if (wanted != MPI_STATUSES_IGNORE || !b->n || !b->receives)
        return wanted;
    if (b->n > PKI_MPI_FEW)
        b->own = malloc((size_t)b->n * sizeof *b->own);
    return b->own ? b->own : wanted;
}

MPI_Status *pki_mpi_batch_status(pki_mpi_batch *b, MPI_Status *wanted)
{
    if (wanted != MPI_STATUS_IGNORE || !b->n || !b->receives)
        return wanted;
    return b->few_own;
}

void pki_mpi_batch_close(pki_mpi_batch *b, const MPI_Request requests[], int done,
                         const int indices[], const MPI_Status *statuses)
{
    if (!b->n)
        return;
    uint64_t waited = pki_mpi_now_ns() - b->start;
    for (int k = 0; k < done; k++) {
        int i = indices ? indices[k] : k;
        bool known = statuses != MPI_STATUSES_IGNORE;
        pki_mpi_complete(b->entries[i], known ? &statuses[k] : NULL, waited);
        b->entries[i] = PKI_MPI_UNKNOWN;
    }
    for (int i = 0; i < b->n; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            pki_mpi_complete(b->entries[i], NULL, waited);
        else
            pki_mpi_release(b->entries[i], waited);
    }
    release(b);
}
