/* lib/comm/mpi/gather.c - a text of each rank to rank 0. A file of its own: the tests have one of
 * smaller groups. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi/ranks.h"

#define TAG 24593 /* every MPI allows it, and programs leave no messages under it */
#define MARK (-24593)
#define PIECE_MOST (1 << 28) /* bytes of a message; a count is an int */
#define WRITE_SECONDS 10e-3  /* for each rank's to be written, at most; usually it is far less */

static const char go = 2; /* rank 0 to the first rank of a group: it may send; no word of its own */

/* In front of a text; with MARK for a rank in front of all that a rank sends. */
typedef struct item {
    int64_t rank, bytes;
} item;

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

static void add(pki_mpi_gathered *g, const item *of, const char *text, size_t bytes)
{
    if (!make_room(g, sizeof *of + bytes))
        return;
    memcpy(g->bytes + g->used, of, sizeof *of);
    if (bytes)
        memcpy(g->bytes + g->used + sizeof *of, text, bytes);
    g->used += sizeof *of + bytes;
    g->texts += of->rank != MARK;
}

static const item *item_at(const pki_mpi_gathered *g, size_t at, item *out)
{
    if (g->used - at < sizeof *out)
        return NULL;
    memcpy(out, g->bytes + at, sizeof *out);
    if (out->rank == MARK)
        return out;
    return (uint64_t)out->bytes <= g->used - at - sizeof *out ? out : NULL;
}

/* ---- messages ---- */

/* What MPI has not taken in time it may still look at: then it stays. */
static void send_all(pki_mpi_gathered *g, int to, double seconds)
{
    double until = pki_mpi_seconds() + seconds;
    const item mark = {MARK, (int64_t)g->used};
    memcpy(g->bytes, &mark, sizeof mark);
    for (size_t at = 0; !g->kept && at < g->used; at += PIECE_MOST) {
        size_t n = g->used - at < PIECE_MOST ? g->used - at : PIECE_MOST;
        MPI_Request sent;
        g->kept = PMPI_Isend(g->bytes + at, (int)n, MPI_CHAR, to, TAG, MPI_COMM_WORLD, &sent) !=
                      MPI_SUCCESS ||
                  !pki_mpi_wait(&sent, MPI_STATUS_IGNORE, until - pki_mpi_seconds());
    }
}

/* The next message. It is looked for before anything is received, so who is silent leaves nothing
 * to call off; a block that is half received when time is up stays MPI's. */
static bool receive_piece(pki_mpi_gathered *g, int from, double until)
{
    MPI_Message message;
    MPI_Status status;
    MPI_Request received;
    int n = 0;
    if (!pki_mpi_wait_for(from, TAG, &message, &status, pki_mpi_brisk, until - pki_mpi_seconds()))
        return false;
    PMPI_Get_count(&status, MPI_CHAR, &n);
    char *piece = malloc((size_t)n + 1);
    if (PMPI_Imrecv(piece, piece ? n : 0, MPI_CHAR, &message, &received) != MPI_SUCCESS ||
        !pki_mpi_wait(&received, MPI_STATUS_IGNORE, until - pki_mpi_seconds()))
        return false;
    bool kept = piece && make_room(g, (size_t)n);
    if (kept) {
        memcpy(g->bytes + g->used, piece, (size_t)n);
        g->used += (size_t)n;
    }
    free(piece);
    return kept;
}

static void count_texts(pki_mpi_gathered *g, size_t at)
{
    item next;
    while (item_at(g, at, &next)) {
        g->texts += next.rank != MARK;
        at += sizeof next + (next.rank != MARK ? (size_t)next.bytes : 0);
    }
    g->most_texts = g->texts > g->most_texts ? g->texts : g->most_texts;
}

static void receive_all(pki_mpi_gathered *g, int from, double seconds)
{
    double until = pki_mpi_seconds() + seconds;
    size_t at = g->used;
    item mark = {0, 0};
    while (receive_piece(g, from, until))
        if (item_at(g, at, &mark) && g->used - at >= (size_t)mark.bytes) {
            count_texts(g, at);
            return;
        }
    g->used = at;
}

/* ---- the tree of a group ---- */

static int parent_of(int rank)
{
    return rank & (rank - 1);
}

static int group_size(const pki_mpi_gathered *g)
{
    return g->ranks < PKI_MPI_GROUP ? g->ranks : PKI_MPI_GROUP;
}

/* Who is silent costs the one that waits for it a share of the time, and so those above have theirs
 * left to hear of all others. */
static double share_of(const pki_mpi_gathered *g, int distance, double seconds)
{
    int round = 1, rounds = g->ranks > PKI_MPI_GROUP ? 2 : 1;
    for (int d = 1; d < group_size(g); d *= 2)
        rounds++;
    for (int d = 1; d < distance; d *= 2)
        round++;
    double left = g->since + seconds * round / rounds - pki_mpi_seconds();
    return left > 0 ? left : 0;
}

/* True: this is the group's first rank, which has what came of all of them. */
static bool gather_group(pki_mpi_gathered *g, double seconds)
{
    for (int distance = 1; distance < group_size(g) && g->bytes; distance *= 2) {
        if (g->rank & distance) {
            send_all(g, parent_of(g->rank), share_of(g, distance, seconds));
            return false;
        }
        if (g->rank + distance < g->ranks)
            receive_all(g, g->rank + distance, share_of(g, distance, seconds));
    }
    return g->rank % PKI_MPI_GROUP == 0;
}

/* ---- group by group ---- */

typedef struct piece {
    int64_t rank;
    size_t at, bytes;
} piece;

static int by_rank(const void *x, const void *y)
{
    const piece *a = x, *b = y;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

/* Then there is room for the next ones. */
static void hand_over(pki_mpi_gathered *g, pki_mpi_gathered_text *take, void *user)
{
    piece pieces[PKI_MPI_GROUP];
    size_t n = 0, at = 0;
    item next;
    while (n < PKI_MPI_GROUP && item_at(g, at, &next)) {
        at += sizeof next;
        if (next.rank == MARK)
            continue;
        pieces[n++] = (piece){next.rank, at, (size_t)next.bytes};
        at += (size_t)next.bytes;
    }
    if (n)
        qsort(pieces, n, sizeof *pieces, by_rank);
    for (size_t i = 0; i < n; i++)
        take(user, (int32_t)pieces[i].rank, g->bytes + pieces[i].at, pieces[i].bytes);
    g->used = g->texts = 0;
}

static void request_group(int first)
{
    MPI_Request sent;
    if (PMPI_Isend(&go, 1, MPI_CHAR, first, TAG, MPI_COMM_WORLD, &sent) == MPI_SUCCESS)
        pki_mpi_wait(&sent, MPI_STATUS_IGNORE, PKI_MPI_GROUP_SECONDS);
}

/* The next group is asked before this one is read: its ranks are awake by then. */
static void receive_groups(pki_mpi_gathered *g, double seconds, pki_mpi_gathered_text *take,
                           void *user)
{
    if (PKI_MPI_GROUP < g->ranks)
        request_group(PKI_MPI_GROUP);
    hand_over(g, take, user);
    for (int first = PKI_MPI_GROUP; first < g->ranks; first += PKI_MPI_GROUP) {
        double left = g->since + seconds - pki_mpi_seconds();
        receive_all(g, first, left > PKI_MPI_GROUP_SECONDS ? left : PKI_MPI_GROUP_SECONDS);
        if (first + PKI_MPI_GROUP < g->ranks)
            request_group(first + PKI_MPI_GROUP);
        hand_over(g, take, user);
    }
}

/* The latest moment at which others may expect something of rank 0. */
static double last_moment(const pki_mpi_gathered *g, double seconds)
{
    return g->since + 2 * seconds + WRITE_SECONDS * g->ranks;
}

/* What rank 0 says; 0: nothing. */
static char hear(const pki_mpi_gathered *g, pki_mpi_pace pace, double seconds)
{
    MPI_Message message;
    char word = 0;
    if (pki_mpi_wait_for(0, TAG, &message, MPI_STATUS_IGNORE, pace,
                         last_moment(g, seconds) - pki_mpi_seconds()))
        PMPI_Mrecv(&word, 1, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    return word;
}

void pki_mpi_gather(pki_mpi_gathered *g, const char *text, size_t bytes, double seconds,
                    pki_mpi_gathered_text *take, void *user)
{
    g->since = pki_mpi_seconds();
    const item mark = {MARK, 0}, own = {g->rank, (int64_t)bytes};
    add(g, &mark, NULL, 0);
    if (bytes)
        add(g, &own, text, bytes);
    g->most_texts = g->texts;
    if (!gather_group(g, seconds) || !g->bytes)
        return;
    if (g->rank == 0)
        receive_groups(g, seconds, take, user);
    else if (hear(g, pki_mpi_brisk, seconds) == go)
        send_all(g, 0, seconds);
}

/* ---- the word ---- */

/* False: MPI may still look at what it was given. */
static bool wait_for_all(MPI_Request *sent, int count, double seconds)
{
    double until = pki_mpi_seconds() + seconds;
    bool done = true;
    for (int i = 0; i < count; i++)
        done = pki_mpi_wait(&sent[i], MPI_STATUS_IGNORE, until - pki_mpi_seconds()) && done;
    return done;
}

/* By rank 0 to each, so that nobody needs to be awake to pass it on; all before any is waited for,
 * so that who is silent costs the others nothing. */
static void send_to_all(const pki_mpi_gathered *g, bool *answers, double seconds)
{
    MPI_Request *sent = malloc((size_t)g->ranks * sizeof *sent);
    int count = 0;
    for (int to = 1; sent && to < g->ranks; to++)
        if (PMPI_Isend(&answers[to], 1, MPI_CHAR, to, TAG, MPI_COMM_WORLD, &sent[count]) ==
            MPI_SUCCESS)
            count++;
    if (!sent || wait_for_all(sent, count, seconds))
        free(answers);
    free(sent);
}

bool pki_mpi_gathered_answer(const pki_mpi_gathered *g, bool *answers, double seconds)
{
    if (g->rank != 0)
        return hear(g, pki_mpi_idle, seconds) == 1;
    bool own = answers && answers[0];
    if (answers)
        send_to_all(g, answers, seconds);
    return own;
}

void pki_mpi_gathered_finish(pki_mpi_gathered *g)
{
    if (!g->kept)
        free(g->bytes);
    *g = (pki_mpi_gathered){0};
}
