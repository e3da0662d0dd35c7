#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>

int rank, size;
static FILE *expected, *results;

static FILE *open_mine(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s-%d", name, rank);
    FILE *file = fopen(path, "w");
    if (!file)
        MPI_Abort(MPI_COMM_WORLD, 9);
    return file;
}

void ledger_open(int ranks)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != ranks)
        MPI_Abort(MPI_COMM_WORLD, 8);
    expected = open_mine("expected");
    results = open_mine("result");
}

void ledger_close(void)
{
    if (fclose(expected) != 0 || fclose(results) != 0)
        abort();
}

void expect_call(const char *call)
{
    fprintf(expected, "%s\n", call);
}

void expect(const char *call, const char *op, const char *comm, long bytes, int peer)
{
    expect_message(call, op, comm, bytes, peer, -1);
}

void expect_message(const char *call, const char *op, const char *comm, long bytes, int peer,
                    int tag)
{
    fprintf(expected, "%s\t%s\t%s\t%ld\t%d\t%d\n", call, op, comm, bytes, peer, tag);
}

void result(const char *what, const void *values, size_t bytes)
{
    fprintf(results, "%s", what);
    for (size_t i = 0; i < bytes; i++)
        fprintf(results, " %02x", ((const unsigned char *)values)[i]);
    fputc('\n', results);
}

void result_number(const char *what, long value)
{
    fprintf(results, "%s %ld\n", what, value);
}

void result_status(const char *what, int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    result_number(what, code == MPI_SUCCESS ? 0 : class);
}
