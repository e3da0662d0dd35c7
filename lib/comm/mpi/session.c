/* lib/comm/mpi/session.c - the beginning and the end of MPI.
 *
 * PK_MPI_START=1 makes MPI_Init start perfkit, with PK_TRACE_PATH and its like, and MPI_Finalize
 * stop it: for programs that know nothing of perfkit. Without it nothing is started or stopped; a
 * session of the program's is flushed at MPI_Finalize and MPI_Abort, since not every launcher lets
 * its processes live for long after that.
 */
#include <pk/session.h>

#include <stdlib.h>
#include <string.h>

#include "comm/mpi/clocks.h"
#include "comm/mpi/glue.h"
#include "comm/mpi/job.h"
#include "comm/mpi/stragglers.h"

static bool is_ours; /* the session */

static void start(void)
{
    const char *wanted = secure_getenv("PK_MPI_START");
    int rank = 0, size = 0;
    if (is_ours || !wanted || strcmp(wanted, "1") != 0)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    is_ours =
        pk_start_asked_("PK_MPI_START", pk_options(.rank = rank, .world_size = size)) == PK_OK;
}

static void finish(void)
{
    if (is_ours)
        pk_stop();
    else if (pki_mpi_is_on())
        pk_flush();
    is_ours = false;
}

#define INIT(NAME, PARAMS, ARGS)                                                                   \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        pk_region_begin(&region);                                                                  \
        int status = PMPI_##NAME ARGS;                                                             \
        pk_region_end(&region);                                                                    \
        if (status == MPI_SUCCESS) {                                                               \
            start();                                                                               \
            pki_mpi_job_begin();                                                                   \
            pki_mpi_clocks_begin();                                                                \
            pki_mpi_stragglers_begin();                                                            \
        }                                                                                          \
        return status;                                                                             \
    }

INIT(Init, (int *argc, char ***argv), (argc, argv))
INIT(Init_thread, (int *argc, char ***argv, int required, int *provided),
     (argc, argv, required, provided))

PKI_MPI_CALL(Finalize)(void)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Finalize");
    pki_mpi_stragglers_end();
    pki_mpi_clocks_end();
    finish();
    pki_mpi_job_end();
    pk_region_begin(&region);
    int status = PMPI_Finalize();
    pk_region_end(&region);
    return status;
}

PKI_MPI_CALL(Abort)(MPI_Comm comm, int code)
{
    finish();
    pki_mpi_job_abort();
    return PMPI_Abort(comm, code);
}
