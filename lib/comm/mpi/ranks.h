/* lib/comm/mpi/ranks.h - what ranks do among themselves, beside the program: wait for each other,
 * gather, tell clocks, and who is late; and the variables that say which of it. */
#pragma once

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- variables that libpk_mpi itself reads ---- */

typedef struct pki_mpi_setting {
    const char *variable;
    long least, most, otherwise;
} pki_mpi_setting;

/* A number, or `otherwise` where the variable is not set or empty; also where it is none, or beyond
 * its bounds, which is logged (warning). */
long pki_mpi_setting_of(const pki_mpi_setting *setting);

/* "PK_X=VALUE is SENTENCE" through the log function. */
void pki_mpi_refuse(const char *variable, const char *value, const char *sentence);

/* NULL: not set, or empty. */
const char *pki_mpi_text_of(const char *variable);

/* ---- waiting for other ranks, but not for ever ---- */

/* Who waits sleeps between looks, so ranks that share a processor get on. A request that is given
 * up stays with MPI: what it writes to must stay, too. */

/* CLOCK_MONOTONIC. */
double pki_mpi_seconds(void);

/* Briskly. False: it was not complete within so many seconds; also if MPI says that it has failed.
 */
bool pki_mpi_wait(MPI_Request *request, MPI_Status *status, double seconds);

/* After some looks it sleeps in between: for a share of the time it has waited; the bounds in s. */
typedef struct pki_mpi_pace {
    int looks;
    double share, least, most;
} pki_mpi_pace;

/* Others wait for this rank in turn; nobody does. */
extern const pki_mpi_pace pki_mpi_brisk, pki_mpi_idle;

/* A message over MPI_COMM_WORLD. False: none has come in time; there is nothing to call off. */
bool pki_mpi_wait_for(int from, int tag, MPI_Message *message, MPI_Status *status,
                      pki_mpi_pace pace, double seconds);

/* PK_MPI_PATIENCE, how long other ranks are waited for where the program does not wait for them:
 * 10 seconds. */
double pki_mpi_patience(void);

/* ---- a text of each rank to rank 0 ---- */

/* Without any rank ever holding more than PKI_MPI_GROUP of others.
 *
 * Within PKI_MPI_GROUP ranks it is a binomial tree: rank r sends to r without its lowest bit what
 * it and those behind it have, so it is log2(ranks) messages one after the other. The first rank of
 * each group then waits until rank 0 asks for what it has, which does so group by group, in their
 * order, and is done with one before the next one comes. All ranks have to be within MPI_Finalize,
 * since messages go over MPI_COMM_WORLD: with a tag that no receive of the program's may meet any
 * more.
 *
 * A rank that is silent is left out, with those behind it, and nothing is left behind that others
 * could wait for. */

#ifndef PKI_MPI_GROUP
#define PKI_MPI_GROUP 64 /* a power of two */
#endif

typedef struct pki_mpi_gathered {
    int rank, ranks;
    char *bytes; /* for each text a rank, a length, and the text */
    size_t used, room;
    size_t texts, most_texts; /* in it, by now and at most: others' and one's own */
    double since;             /* it began */
    bool kept; /* MPI has not taken all of it yet, and may look at it until the process ends */
} pki_mpi_gathered;

/* On rank 0: one text after the other, in the order of ranks. It is gone when this returns. */
typedef void pki_mpi_gathered_text(void *user, int32_t rank, const char *text, size_t bytes);

/* This rank's own text; bytes 0: it has none. Who does not answer is left out, and those behind it;
 * all of it takes twice `seconds` and PKI_MPI_GROUP_SECONDS for each group at most. */
#define PKI_MPI_GROUP_SECONDS 0.5
void pki_mpi_gather(pki_mpi_gathered *g, const char *text, size_t bytes, double seconds,
                    pki_mpi_gathered_text *take, void *user);

/* Rank 0's word to each of the others: told[rank] of `ranks`, from malloc, which is taken over;
 * NULL without memory: it says nothing. Whether this rank's is true; false also if none came. The
 * others wait as long as gathering and writing may take. */
bool pki_mpi_gathered_answer(const pki_mpi_gathered *g, bool *answers, double seconds);

void pki_mpi_gathered_finish(pki_mpi_gathered *g);

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

/* Before a collective that nobody leaves before all have come. */
extern int pki_mpi_clocks_live;
void pki_mpi_clocks_meet_(void);
static inline void pki_mpi_clocks_meet(MPI_Comm comm)
{
    if (__builtin_expect(pki_mpi_clocks_live, 0) && comm == MPI_COMM_WORLD)
        pki_mpi_clocks_meet_();
}

/* ---- who is late, while the job runs ---- */

/* PK_MPI_STRAGGLERS=N, off by default.
 *
 * Every N steps each rank gives its stages' times to rank 0, and hears what rank 0 has made of all
 * ranks' times before (pk/private.h: 584 bytes there, 2.9 KB back). An exchange is a message of
 * each rank to rank 0 and, when it has all, one back, on a communicator of our own. A rank begins
 * it at the end of a call of MPI's that the program makes, when it has a portion of steps and has
 * heard the word of the exchange before; it asks for it there, 200 us apart at least. Nobody ever
 * waits: a rank that has nothing to give lets the exchange lie, and the others go on without a
 * verdict. Rank 0's verdicts are made by perfkit's own thread.
 *
 *     rank 0's MPI thread  --all ranks' steps-->  its collector  --word-->  the next exchange
 *
 * The end. Who comes to MPI_Finalize gives "ended" in its next exchange, and rank 0's word of that
 * exchange is the last: all have given theirs, and nobody begins another one. Whoever is not heard
 * of within END_SECONDS is not waited for: receives are cancelled.
 *
 * The communicator is made behind MPI_Init by all processes of MPI_COMM_WORLD, once they know that
 * all of them want the same (stragglers.c). */

/* Behind MPI_Init; in MPI_Finalize, while there is a session. */
void pki_mpi_stragglers_begin(void);
void pki_mpi_stragglers_end(void);

/* At the end of a call of MPI's. */
extern int pki_mpi_stragglers_live;
void pki_mpi_stragglers_turn_(void);
static inline void pki_mpi_stragglers_turn(void)
{
    if (__builtin_expect(__atomic_load_n(&pki_mpi_stragglers_live, __ATOMIC_RELAXED), 0))
        pki_mpi_stragglers_turn_();
}
