/* Every collective of MPI, blocking and not, in place and not, on communicators of all kinds. What
 * each moves is worked out by hand for 4 ranks. */
#include "ledger.h"

#include <string.h>

#define WORLD "MPI_COMM_WORLD"

static double in[16], out[16];
static int ones[4] = {1, 1, 1, 1}, two[4] = {2, 2, 2, 2}, growing[4] = {1, 2, 3, 4};
static int at_one[4] = {0, 1, 2, 3}, at_two[4] = {0, 2, 4, 6}, at_growing[4] = {0, 1, 3, 6};
static int byte_two[4] = {0, 16, 32, 48};
static MPI_Datatype doubles[4];

static void prepare(void)
{
    for (int i = 0; i < 16; i++) {
        in[i] = 1.0 / (1 + rank * 16 + i);
        out[i] = -1;
    }
}

static void said(const char *call, int status)
{
    result_status(call, status);
    result(call, out, sizeof out);
    result(call, in, sizeof in);
    prepare();
}

/* What is blocking here is a request there: the same words for both. */
#define BOTH(NAME, INAME, ARGS, OP, BYTES, PEER)                                                   \
    do {                                                                                           \
        MPI_Request request;                                                                       \
        prepare();                                                                                 \
        expect("MPI_" #NAME, OP, WORLD, BYTES, PEER);                                              \
        said("MPI_" #NAME, MPI_##NAME(LIST ARGS));                                                 \
        expect_call("MPI_" #INAME);                                                                \
        expect("request", OP, WORLD, BYTES, PEER);                                                 \
        int status = MPI_##INAME(LIST ARGS, &request);                                             \
        expect_call("MPI_Wait");                                                                   \
        result_status("MPI_Wait", MPI_Wait(&request, MPI_STATUS_IGNORE));                          \
        result_number("null", request == MPI_REQUEST_NULL);                                        \
        said("MPI_" #INAME, status);                                                               \
    } while (0)
#define LIST(...) __VA_ARGS__

static void rooted(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Datatype d = MPI_DOUBLE;
    BOTH(Bcast, Ibcast, (in, 5, MPI_FLOAT, 2, c), "broadcast", 20, 2);
    BOTH(Reduce, Ireduce, (in, out, 3, d, MPI_SUM, 1, c), "reduce", 24, 1);
    BOTH(Gather, Igather, (in, 2, d, out, 2, d, 3, c), "gather", 16, 3);
    BOTH(Scatter, Iscatter, (in, 2, d, out, 2, d, 0, c), "scatter", 16, 0);
    BOTH(Gatherv, Igatherv, (in, growing[rank], d, out, growing, at_growing, d, 0, c), "gather",
         8 * growing[rank], 0);
    BOTH(Scatterv, Iscatterv, (in, growing, at_growing, d, out, growing[rank], d, 0, c), "scatter",
         8 * growing[rank], 0);
    if (rank == 0) {
        BOTH(Reduce, Ireduce, (MPI_IN_PLACE, out, 3, d, MPI_MAX, 0, c), "reduce", 24, 0);
        BOTH(Gather, Igather, (MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 2, d, 0, c), "gather", 16,
             0);
        BOTH(Scatter, Iscatter, (in, 2, d, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, c), "scatter", 16,
             0);
    } else {
        BOTH(Reduce, Ireduce, (in, NULL, 3, d, MPI_MAX, 0, c), "reduce", 24, 0);
        BOTH(Gather, Igather, (in, 2, d, NULL, 0, MPI_DATATYPE_NULL, 0, c), "gather", 16, 0);
        BOTH(Scatter, Iscatter, (NULL, 0, MPI_DATATYPE_NULL, out, 2, d, 0, c), "scatter", 16, 0);
    }
}

static void everyone(void)
{
    MPI_Comm c = MPI_COMM_WORLD;
    MPI_Datatype d = MPI_DOUBLE;
    BOTH(Barrier, Ibarrier, (c), "barrier", 0, -1);
    BOTH(Allreduce, Iallreduce, (in, out, 7, d, MPI_SUM, c), "all_reduce", 56, -1);
    BOTH(Allreduce, Iallreduce, (MPI_IN_PLACE, out, 7, d, MPI_MIN, c), "all_reduce", 56, -1);
    BOTH(Allreduce, Iallreduce, (in, out, 0, d, MPI_MIN, c), "all_reduce", 0, -1);
    BOTH(Scan, Iscan, (in, out, 4, d, MPI_SUM, c), "other", 32, -1);
    BOTH(Exscan, Iexscan, (in, out, 4, d, MPI_SUM, c), "other", 32, -1);
    BOTH(Reduce_scatter, Ireduce_scatter, (in, out, growing, d, MPI_SUM, c), "reduce_scatter",
         8 * growing[rank], -1);
    BOTH(Reduce_scatter_block, Ireduce_scatter_block, (in, out, 3, d, MPI_SUM, c), "reduce_scatter",
         24, -1);
    BOTH(Allgather, Iallgather, (in, 3, d, out, 3, d, c), "all_gather", 24, -1);
    BOTH(Allgather, Iallgather, (MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, 3, d, c), "all_gather",
         24, -1);
    BOTH(Allgatherv, Iallgatherv, (in, growing[rank], d, out, growing, at_growing, d, c),
         "all_gather", 8 * growing[rank], -1);
    BOTH(Alltoall, Ialltoall, (in, 2, d, out, 2, d, c), "all_to_all", 16, -1);
    BOTH(Alltoallv, Ialltoallv, (in, two, at_two, d, out, two, at_two, d, c), "all_to_all", 16, -1);
    BOTH(Alltoallv, Ialltoallv, (in, ones, at_one, d, out, ones, at_one, d, c), "all_to_all", 8,
         -1);
    BOTH(Alltoallw, Ialltoallw, (in, two, byte_two, doubles, out, two, byte_two, doubles, c),
         "all_to_all", 16, -1);
}

/* Two elements of 24 bytes each, 40 bytes apart. */
static void derived(void)
{
    MPI_Datatype type;
    MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    BOTH(Bcast, Ibcast, (in, 2, type, 1, MPI_COMM_WORLD), "broadcast", 48, 1);
    MPI_Type_free(&type);
}

static void reduce_on(MPI_Comm comm, const char *name)
{
    prepare();
    expect("MPI_Allreduce", "all_reduce", name, 16, -1);
    said(name, MPI_Allreduce(in, out, 2, MPI_DOUBLE, MPI_SUM, comm));
}

static void free_named(MPI_Comm *comm, const char *name)
{
    expect("MPI_Comm_free", "other", name, 0, -1);
    result_status("MPI_Comm_free", MPI_Comm_free(comm));
    result_number("null", *comm == MPI_COMM_NULL);
}

static void communicators(void)
{
    MPI_Comm half, copy, cart;
    int dims[2] = {2, 2}, periods[2] = {0, 1};
    expect("MPI_Comm_split", "other", WORLD, 0, -1);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_set_name(half, rank % 2 ? "odd" : "even");
    reduce_on(half, rank % 2 ? "odd" : "even");
    expect("MPI_Comm_dup", "other", rank % 2 ? "odd" : "even", 0, -1);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_set_name(copy, "copy");
    reduce_on(copy, "copy");
    expect("MPI_Cart_create", "other", WORLD, 0, -1);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart);
    MPI_Comm_set_name(cart, "cart");
    reduce_on(cart, "cart");
    free_named(&cart, "cart");
    free_named(&copy, "copy");
    free_named(&half, rank % 2 ? "odd" : "even");
}

/* Communicators that come and go, and whose handles come back, are told apart. */
static void churn(void)
{
    for (int i = 0; i < 6; i++) {
        MPI_Comm comm;
        const char *name = i % 2 ? "two" : "four";
        expect("MPI_Comm_split", "other", WORLD, 0, -1);
        MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? rank / 2 : 0, rank, &comm);
        MPI_Comm_set_name(comm, name);
        reduce_on(comm, name);
        free_named(&comm, name);
    }
}

/* The even ranks on one side, the odd ones on the other; rank 0 sends to the odd ones. */
static void between(void)
{
    MPI_Comm half, inter;
    int root = rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
    expect("MPI_Comm_split", "other", WORLD, 0, -1);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "side");
    expect("MPI_Intercomm_create", "other", "side", 0, -1);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
    MPI_Comm_set_name(inter, "between");
    prepare();
    expect("MPI_Bcast", "broadcast", "between", rank == 2 ? 0 : 40, root < 0 ? -1 : root);
    said("inter", MPI_Bcast(in, 5, MPI_DOUBLE, root, inter));
    expect("MPI_Allreduce", "all_reduce", "between", 8, -1);
    said("inter", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, inter));
    expect("MPI_Gather", "gather", "between", root == MPI_PROC_NULL ? 0 : 16, root < 0 ? -1 : root);
    said("inter",
         MPI_Gather(root < 0 ? NULL : in, root < 0 ? 0 : 2,
                    root < 0 ? MPI_DATATYPE_NULL : MPI_DOUBLE, out, 2, MPI_DOUBLE, root, inter));
    free_named(&inter, "between");
    free_named(&half, "side");
}

/* MPI's answer to a mistake is its own. */
static void mistakes(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect("MPI_Bcast", "broadcast", WORLD, 8, 77);
    result_status("bad root", MPI_Bcast(in, 1, MPI_DOUBLE, 77, MPI_COMM_WORLD));
    expect_call("MPI_Allreduce");
    result_status("no communicator", MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_NULL));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 4; i++)
        doubles[i] = MPI_DOUBLE;
    ledger_open(4);
    rooted();
    everyone();
    derived();
    communicators();
    churn();
    between();
    mistakes();
    ledger_close();
    return MPI_Finalize();
}
