/* lib/comm/mpi/clocks.h - what ranks agree on: their clocks, and with whom they exchange */
#pragma once

#include <mpi.h>
#include <stdbool.h>

#include "comm/mpi/sends.h"

/* ---- agree ---- */

/* Do all processes of MPI_COMM_WORLD want the same, before any of them
 * begins a call that would wait for the others?
 *
 * No message and no collective of MPI's can find that out: a process without this library would
 * leave the others waiting, or find what was meant for another. So they ask the launcher, which
 * keeps names (MPI_Publish_name, MPI_Lookup_name: calls that wait for no other rank). Over a
 * binomial tree each rank looks for the names of those below it and then publishes its own; what
 * rank 0 finds it publishes as the decision. Who has waited for PK_MPI_PATIENCE publishes "no" as
 * the decision. The first decision counts for all: launchers refuse a second one, or keep it behind
 * the first; so no rank begins what another one has given up. */

/* Behind MPI_Init. `mine` above 0 if all processes have called this with the same variable and
 * number; else 0, and a warning is logged that says why. Waits for others, but not longer than
 * PK_MPI_PATIENCE, and only where some were not asked. */
long pki_mpi_agree(const char *variable, long mine);

/* ---- have all ranks come to MPI_Finalize? ---- */

/* Only then may a rank send another one a message over MPI_COMM_WORLD: one that is still in the
 * program may receive with MPI_ANY_SOURCE and MPI_ANY_TAG. The answer goes by collectives, which
 * no receive of the program's can match. Ranks that were asked for a file of the job call this,
 * others do not, so it may be that some never come. */

typedef enum pki_mpi_met {
    PKI_MPI_NOT_ALL, /* or not in time */
    PKI_MPI_NOBODY,  /* all are there, but rank 0 has nothing to write */
    PKI_MPI_ALL,
} pki_mpi_met;

/* On rank 0, and all that it reaches in time, the same. writes: matters on rank 0. It takes
 * these seconds, and a few more for rank 0's word; who has waited for a second saves its part
 * (pk_job_save_). */
pki_mpi_met pki_mpi_meet(int rank, int ranks, bool writes, double seconds);

/* ---- messages between nodes by which `pk merge` bounds their clocks ---- */

/* With PK_MPI_CLOCKS=1 one rank of each node sends messages of a byte to and fro, over a binomial
 * tree of the nodes, on a communicator of our own: behind MPI_Init, before the end of the session
 * in MPI_Finalize, and about every PK_MPI_CLOCKS_SECONDS (600; 0: never) between. They are recorded
 * as any message is, and that is all: a message that was received before a moment had been sent
 * before it. PK_MPI_CLOCKS=all: each rank counts as a node (tests).
 *
 * All processes of the job have to have this library, and the variable, since the communicator is
 * made by all of them; if its values differ nothing is measured. The first and the last moment are
 * the job's own: nobody waits elsewhere. Between them it is measured before a collective of
 * MPI_COMM_WORLD in which all wait for all, and which all know beforehand: a partner that is not
 * there within 50 ms is left alone. */

/* Behind MPI_Init, with the session that it may have started; in MPI_Finalize, while there is one.
 */
void pki_mpi_clocks_begin(void);
void pki_mpi_clocks_end(void);

/* Before a collective that nobody leaves before all have come. */
extern int pki_mpi_clocks_live;
void pki_mpi_clocks_meet_(void);
static inline void pki_mpi_clocks_meet(MPI_Comm comm)
{
    if (__builtin_expect(pki_mpi_clocks_live, 0) && comm == MPI_COMM_WORLD)
        pki_mpi_clocks_meet_();
}

/* ---- a send and a receive in one call: two messages, two operations ---- */

/* The call's region is the send. The receive is beside it, as a request that begins and ends with
 * the call, so that it has its own partner, tag, bytes and number, and is found by whoever sent it.
 * Where there is nobody to send to (MPI_PROC_NULL), the region is the receive. */

#define PKI_MPI_EXCHANGE_PARAMS                                                                    \
    const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,              \
        void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,              \
        MPI_Comm comm
#define PKI_MPI_EXCHANGE_ARGS                                                                      \
    sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm
#define PKI_MPI_REPLACE_PARAMS                                                                     \
    void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag,       \
        MPI_Comm comm
#define PKI_MPI_REPLACE_ARGS buf, count, type, dest, sendtag, source, recvtag, comm

/* Either has no communicator if there is nobody on its side. */
typedef struct pki_mpi_exchange {
    pki_mpi_operation sent, received;
} pki_mpi_exchange;

static inline pki_mpi_exchange pki_mpi_exchange_of(int sendcount, MPI_Datatype sendtype, int dest,
                                                   int sendtag, int recvcount,
                                                   MPI_Datatype recvtype, int source, int recvtag,
                                                   MPI_Comm comm)
{
    pk_comm_op op = source == MPI_PROC_NULL ? PK_COMM_OP_SEND : PK_COMM_OP_SEND_RECV;
    return (pki_mpi_exchange){
        pki_mpi_message(op, sendcount, sendtype, dest, sendtag, comm),
        pki_mpi_message(PK_COMM_OP_RECV, recvcount, recvtype, source, recvtag, comm)};
}
