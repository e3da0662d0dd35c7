/* lib/comm/mpi/communicator_calls.c - making and freeing communicators: work that all their ranks
 * do together. What they are called is found out when they are first used (comm.c). */
#include "comm/mpi/request.h"

static const pki_mpi_comm *begin(pk_region *region, MPI_Comm comm)
{
    const pki_mpi_comm *at = pki_mpi_is_on() ? pki_mpi_comm_of(comm) : NULL;
    pk_region_begin(region);
    if (at)
        pk_comm_call(region, at->collective, PK_OP_OTHER, PK_TYPE_BYTE, 0, -1);
    return at;
}

#define ON_COMM(NAME, PARAMS, ARGS, COMM)                                                          \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        begin(&region, COMM);                                                                      \
        int status = PMPI_##NAME ARGS;                                                             \
        pk_region_end(&region);                                                                    \
        return status;                                                                             \
    }

ON_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), comm)
ON_COMM(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made),
        comm)
ON_COMM(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made), comm)
ON_COMM(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made),
        comm)
ON_COMM(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
        (comm, type, key, info, made), comm)
ON_COMM(Cart_create,
        (MPI_Comm comm, int n, const int dims[], const int periods[], int reorder, MPI_Comm *made),
        (comm, n, dims, periods, reorder, made), comm)
ON_COMM(Cart_sub, (MPI_Comm comm, const int remain[], MPI_Comm *made), (comm, remain, made), comm)
ON_COMM(Graph_create,
        (MPI_Comm comm, int n, const int index[], const int edges[], int reorder, MPI_Comm *made),
        (comm, n, index, edges, reorder, made), comm)
ON_COMM(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made), comm)
ON_COMM(Intercomm_create,
        (MPI_Comm comm, int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm *made),
        (comm, leader, peers, remote_leader, tag, made), comm)
ON_COMM(Comm_free, (MPI_Comm * comm), (comm), *comm)
ON_COMM(Comm_disconnect, (MPI_Comm * comm), (comm), *comm)

/* Of a group of the communicator's ranks only: no operation of the communicator. */
PKI_MPI_REGION_ONLY(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
                    (comm, group, tag, made))
