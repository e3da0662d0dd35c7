/* tests/mpi/ledger.h - what a program of this folder did, in its own words: expected-RANK has a
 * line for each call and operation that perfkit has to find, result-RANK what MPI has answered,
 * which must not depend on whether somebody listens.
 */
#ifndef TEST_MPI_LEDGER_H
#define TEST_MPI_LEDGER_H

#include <mpi.h>
#include <stddef.h>

extern int rank, size; /* in MPI_COMM_WORLD */

/* The number of ranks has to be this one: their results and bytes are worked out for it. */
void ledger_open(int ranks);
void ledger_close(void);

/* A call that is a region and no operation. */
void expect_call(const char *call);

/* A call that is an operation; "request" for one that goes on when its call has returned. peer -1:
 * none. */
void expect(const char *call, const char *op, const char *comm, long bytes, int peer);

/* The same of a message. */
void expect_message(const char *call, const char *op, const char *comm, long bytes, int peer,
                    int tag);

/* Values that MPI has given. */
void result(const char *what, const void *values, size_t bytes);
void result_number(const char *what, long value);

/* An error class, so that it is the same for every MPI call that fails. */
void result_status(const char *what, int code);

#endif
