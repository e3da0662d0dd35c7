#include "comm/mpi/gather.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/patience.h"

#define TAG 24593 /* every MPI allows it, and programs leave no messages under it */
#define MARK 0x706B6A6F62u
#define PIECE_MOST (1 << 28) /* bytes of a message; a count is an int */

typedef struct head {
    uint64_t mark, bytes;
} head;

typedef struct item {
    int64_t rank, bytes;
} item;

/* ---- messages ---- */

static bool send_bytes(const void *bytes, size_t n, int to, double seconds)
{
    MPI_Request request;
    return PMPI_Isend(bytes, (int)n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, &request) == MPI_SUCCESS &&
           pki_mpi_wait(&request, MPI_STATUS_IGNORE, seconds);
}

/* What is given up may come yet: then it goes to where it does no harm. */
static void give_up(MPI_Request *request)
{
    PMPI_Cancel(request); /* behind it a wait returns, whatever others do (MPI 4.1, 3.8.4) */
    PMPI_Wait(request, MPI_STATUS_IGNORE);
}

static bool receive_bytes(void *bytes, size_t n, int from, double seconds)
{
    MPI_Request request;
    if (PMPI_Irecv(bytes, (int)n, MPI_CHAR, from, TAG, MPI_COMM_WORLD, &request) != MPI_SUCCESS)
        return false;
    if (pki_mpi_wait(&request, MPI_STATUS_IGNORE, seconds))
        return true;
    give_up(&request);
    return false;
}

static void send_all(pki_mpi_gathered *g, int to, double seconds)
{
    const head h = {MARK, g->used};
    bool done = send_bytes(&h, sizeof h, to, seconds);
    for (size_t at = 0; done && at < g->used; at += PIECE_MOST) {
        size_t n = g->used - at < PIECE_MOST ? g->used - at : PIECE_MOST;
        done = send_bytes(g->bytes + at, n, to, seconds);
    }
    g->kept = !done;
}

static bool make_room(pki_mpi_gathered *g, size_t more)
{
    if (g->room - g->used >= more)
        return true;
    size_t room = g->used + more > 2 * g->room ? g->used + more : 2 * g->room;
    char *bytes = realloc(g->bytes, room);
    if (!bytes)
        return false;
    g->bytes = bytes;
    g->room = room;
    return true;
}

static void receive_all(pki_mpi_gathered *g, int from, double seconds)
{
    head h = {0, 0};
    if (!receive_bytes(&h, sizeof h, from, seconds) || h.mark != MARK)
        return;
    if (!make_room(g, h.bytes))
        return;
    for (size_t at = 0; at < h.bytes; at += PIECE_MOST) {
        size_t n = h.bytes - at < PIECE_MOST ? h.bytes - at : PIECE_MOST;
        if (!receive_bytes(g->bytes + g->used + at, n, from, seconds))
            return;
    }
    g->used += h.bytes;
}

/* ---- the tree ---- */

static int parent_of(int rank)
{
    return rank & (rank - 1);
}

/* Who is silent costs the one that waits for it a share of the time, and so those above have theirs
 * left to hear of all others. */
static double share_of(const pki_mpi_gathered *g, int distance, double seconds, double since)
{
    int round = 1, rounds = 1;
    for (int d = 1; d < g->ranks; d *= 2)
        rounds++;
    for (int d = 1; d < distance; d *= 2)
        round++;
    double left = since + seconds * round / rounds - pki_mpi_seconds();
    return left > 0 ? left : 0;
}

void pki_mpi_gather(pki_mpi_gathered *g, const char *text, size_t bytes, double seconds)
{
    double since = pki_mpi_seconds();
    const item own = {g->rank, (int64_t)bytes};
    if (bytes && make_room(g, sizeof own + bytes)) {
        memcpy(g->bytes + g->used, &own, sizeof own);
        memcpy(g->bytes + g->used + sizeof own, text, bytes);
        g->used += sizeof own + bytes;
    }
    for (int distance = 1; distance < g->ranks; distance *= 2) {
        if (g->rank & distance) {
            send_all(g, parent_of(g->rank), share_of(g, distance, seconds, since));
            return;
        }
        if (g->rank + distance < g->ranks)
            receive_all(g, g->rank + distance, share_of(g, distance, seconds, since));
    }
}

bool pki_mpi_gathered_tell(const pki_mpi_gathered *g, bool word, double seconds)
{
    char told = word;
    int distance = 1;
    if (g->rank && !receive_bytes(&told, 1, parent_of(g->rank), seconds))
        told = 0;
    while (distance < g->ranks && !(g->rank & distance))
        distance *= 2;
    while ((distance /= 2) > 0) /* the ones with most behind them first */
        if (g->rank + distance < g->ranks)
            send_bytes(&told, 1, g->rank + distance, seconds);
    return told == 1;
}

/* ---- what has come ---- */

static const item *item_at(const pki_mpi_gathered *g, size_t at, item *out)
{
    if (g->used - at < sizeof *out)
        return NULL;
    memcpy(out, g->bytes + at, sizeof *out);
    return (uint64_t)out->bytes <= g->used - at - sizeof *out ? out : NULL;
}

pki_job_piece *pki_mpi_gathered_pieces(const pki_mpi_gathered *g, size_t *count)
{
    pki_job_piece *pieces = calloc((size_t)g->ranks + 1, sizeof *pieces);
    size_t n = 0, at = 0;
    item next;
    while (pieces && n < (size_t)g->ranks && item_at(g, at, &next)) {
        at += sizeof next;
        pieces[n++] = (pki_job_piece){(int32_t)next.rank, g->bytes + at, (size_t)next.bytes};
        at += (size_t)next.bytes;
    }
    *count = n;
    return pieces;
}

void pki_mpi_gathered_finish(pki_mpi_gathered *g)
{
    if (!g->kept)
        free(g->bytes);
    *g = (pki_mpi_gathered){0};
}
