/* lib/comm/mpi/communicator_calls.c - making and freeing communicators: work that all their ranks
 * do together. What they are called is found out when they are first used (communicator.c). */
#include "comm/mpi/request.h"

static const pki_mpi_comm *begin(pk_region *region, MPI_Comm comm)
{
    const pki_mpi_comm *at = pki_mpi_is_on() ? pki_mpi_comm_of(comm) : NULL;
    pk_region_begin(region);
    if (at)
        pk_comm_call(region, at->collective, PK_OP_OTHER, PK_TYPE_BYTE, 0, -1);
    return at;
}

/* BEGIN: the region, and what it is an operation on; THEN: with the status known. */
#define ON(NAME, PARAMS, ARGS, BEGIN, THEN)                                                        \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        BEGIN;                                                                                     \
        pki_mpi_begin_wait();                                                                      \
        int status = PMPI_##NAME ARGS;                                                             \
        pki_mpi_end_wait();                                                                        \
        THEN;                                                                                      \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

#define MAKES(NAME, PARAMS, ARGS, COMM)                                                            \
    ON(NAME, PARAMS, ARGS, begin(&region, COMM), pki_mpi_comm_made(status, made))
#define FREES(NAME) ON(NAME, (MPI_Comm * comm), (comm), begin(&region, *comm), (void)0)

MAKES(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), comm)
MAKES(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made), comm)
MAKES(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made), comm)
MAKES(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made),
      comm)
MAKES(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
      (comm, type, key, info, made), comm)
MAKES(Cart_create,
      (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made),
      (comm, n, dims, periods, reorder, made), comm)
MAKES(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made), comm)
MAKES(Graph_create,
      (MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *made),
      (comm, n, index, edges, reorder, made), comm)
MAKES(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made), comm)
MAKES(Intercomm_create,
      (MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *made),
      (comm, leader, peers, remote_leader, tag, made), comm)
FREES(Comm_free)
FREES(Comm_disconnect)

/* Of a group of the communicator's ranks only: no operation of the communicator. */
ON(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
   (comm, group, tag, made), pk_region_begin(&region), pki_mpi_comm_made(status, made))
