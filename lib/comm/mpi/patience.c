#include "comm/mpi/patience.h"

#include <stdlib.h>
#include <time.h>

#include "comm/mpi/settings.h"

#define LOOKS_AT_ONCE 100   /* before it sleeps... */
#define SLEEP_LEAST 20000   /* ...for so many ns, */
#define SLEEP_MOST 500000   /* then for longer */
#define PATIENCE_SECONDS 10 /* PK_MPI_PATIENCE */

double pki_mpi_seconds(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool pki_mpi_wait(MPI_Request *request, MPI_Status *status, double seconds)
{
    struct timespec nap = {0, SLEEP_LEAST};
    double until = pki_mpi_seconds() + seconds;
    int there = 0;
    for (int i = 0; PMPI_Test(request, &there, status) == MPI_SUCCESS; i++) {
        if (there)
            return true;
        if (pki_mpi_seconds() > until)
            return false;
        if (i < LOOKS_AT_ONCE)
            continue;
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < SLEEP_MOST)
            nap.tv_nsec *= 2;
    }
    return false;
}

double pki_mpi_patience(void)
{
    static const pki_mpi_setting setting = {"PK_MPI_PATIENCE", 0, 86400, PATIENCE_SECONDS};
    return (double)pki_mpi_setting_of(&setting);
}
