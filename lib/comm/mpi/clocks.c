/* lib/comm/mpi/clocks.c - messages between nodes by which `pk merge` bounds their clocks */
#include <pk/private.h>

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "comm/mpi/glue.h"

#define TRIPS 50
#define TRIPS_SECONDS 0.1    /* for one pair; more is not worth it on a busy machine */
#define SILENCE_SECONDS 10.0 /* in MPI_Init and MPI_Finalize... */
#define SILENCE_BETWEEN 0.05 /* ...and amid the program */
#define AGAIN_SECONDS 600    /* PK_MPI_CLOCKS_SECONDS */
#define AHEAD 2              /* collectives from the announcement to the next measurement */
enum { TAG_CLOCK, TAG_ANNOUNCE };

int pki_mpi_clocks_live;

static MPI_Comm leaders = MPI_COMM_NULL;
static double silence = SILENCE_SECONDS;
static pk_region clocks_region = PK_REGION_OF(PK_COMM, "clocks of nodes");
static pk_region message = PK_REGION_OF(PK_COMM, "clock message");

/* ---- a message ---- */

static void send_turn(const pki_mpi_comm *c, int to, char more)
{
    pk_region_begin(&message);
    pk_comm_call(&message, c->messages, PK_COMM_OP_SEND, PK_COMM_TYPE_INT8, 1, to);
    PMPI_Send(&more, 1, MPI_CHAR, to, TAG_CLOCK, leaders);
    pk_region_end(&message);
}

/* 0 also if nothing comes: then nothing is waited for any more. */
static char receive_turn(const pki_mpi_comm *c, int from)
{
    char more = 0;
    int there = 0;
    MPI_Request request;
    double until = pki_mpi_seconds() + silence;
    pk_region_begin(&message);
    PMPI_Irecv(&more, 1, MPI_CHAR, from, TAG_CLOCK, leaders, &request);
    while (!there && pki_mpi_seconds() < until)
        PMPI_Test(&request, &there, MPI_STATUS_IGNORE);
    if (there) {
        pk_comm_call(&message, c->messages, PK_COMM_OP_RECV, PK_COMM_TYPE_INT8, 1, from);
    } else {
        PMPI_Cancel(&request); /* behind it a wait returns, whatever others do (MPI 4.1, 3.8.4), */
        PMPI_Wait(&request, MPI_STATUS_IGNORE); /* and `more` is ours again: not before */
        more = 0;
    }
    pk_region_end(&message);
    return more;
}

/* ---- a pair ---- */

static void measure_child(const pki_mpi_comm *c, int child)
{
    double until = pki_mpi_seconds() + TRIPS_SECONDS;
    char more = 1;
    for (int i = 1; more; i++) {
        more = i < TRIPS && pki_mpi_seconds() < until ? 1 : 2; /* 2: the last one */
        send_turn(c, child, more);
        more = receive_turn(c, child) == 1;
    }
}

static void answer(const pki_mpi_comm *c, int parent)
{
    for (char more = 1; more == 1;) {
        more = receive_turn(c, parent);
        if (more)
            send_turn(c, parent, more);
    }
}

/* Pairs that have nothing to do with each other are at it at the same time. */
static void measure(const pki_mpi_comm *c)
{
    for (int distance = 1; distance < c->size; distance *= 2) {
        if (c->rank % (2 * distance) == distance) {
            answer(c, c->rank - distance);
            return;
        }
        if (c->rank + distance < c->size)
            measure_child(c, c->rank + distance);
    }
}

/* If all of them record; who does not, may not even have started perfkit. */
static void measure_if_all(void)
{
    int here = pki_mpi_is_on(), all = 0;
    if (leaders == MPI_COMM_NULL ||
        PMPI_Allreduce(&here, &all, 1, MPI_INT, MPI_MIN, leaders) != MPI_SUCCESS || !all)
        return;
    const pki_mpi_comm *c = pki_mpi_comm_of(leaders);
    if (!c)
        return;
    pk_region_begin(&clocks_region);
    measure(c);
    pk_region_end(&clocks_region);
}

/* ---- again, amid the program ---- */

/* All ranks are counted alike: how many collectives of MPI_COMM_WORLD each has passed that nobody
 * leaves before all have come. So who is about to enter number n + 1 has everybody's word of before
 * number n, and measuring before one of them makes nobody wait who would not wait in it. */
static struct {
    int64_t passed, at; /* at: measure before this one; 0: none is announced */
    double interval, next;
    int64_t word; /* the announcement that is on its way */
    MPI_Request heard;
    int rank, size; /* among the leaders */
} again = {.heard = MPI_REQUEST_NULL};

static void announce(void)
{
    again.at = again.word = again.passed + AHEAD;
    for (int to = 1; to < again.size; to++) {
        MPI_Request sent;
        if (PMPI_Isend(&again.word, 1, MPI_INT64_T, to, TAG_ANNOUNCE, leaders, &sent) ==
            MPI_SUCCESS)
            PMPI_Request_free(&sent);
    }
}

static void listen(void)
{
    int there = 0;
    if (again.heard == MPI_REQUEST_NULL)
        PMPI_Irecv(&again.word, 1, MPI_INT64_T, 0, TAG_ANNOUNCE, leaders, &again.heard);
    if (PMPI_Test(&again.heard, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there)
        again.at = again.word;
}

void pki_mpi_clocks_meet_(void)
{
    const pki_mpi_comm *c;
    again.passed++;
    if (again.rank != 0)
        listen();
    else if (!again.at && pki_mpi_seconds() >= again.next)
        announce();
    if (!again.at || again.passed < again.at)
        return;
    if (again.passed == again.at && (c = pki_mpi_comm_of(leaders)) != NULL) {
        silence = SILENCE_BETWEEN;
        pk_region_begin(&clocks_region);
        measure(c);
        pk_region_end(&clocks_region);
        silence = SILENCE_SECONDS;
    }
    again.at = 0;
    again.next = pki_mpi_seconds() + again.interval;
}

static void begin_again(void)
{
    static const pki_mpi_setting seconds = {"PK_MPI_CLOCKS_SECONDS", 0, 604800, AGAIN_SECONDS};
    again.interval = (double)pki_mpi_setting_of(&seconds);
    if (again.interval <= 0 || leaders == MPI_COMM_NULL)
        return;
    PMPI_Comm_rank(leaders, &again.rank);
    PMPI_Comm_size(leaders, &again.size);
    again.next = pki_mpi_seconds() + again.interval;
    pki_mpi_clocks_live = 1;
}

static void end_again(void)
{
    pki_mpi_clocks_live = 0;
    if (again.heard == MPI_REQUEST_NULL)
        return;
    PMPI_Cancel(&again.heard);
    PMPI_Wait(&again.heard, MPI_STATUS_IGNORE);
}

/* ---- who takes part ---- */

static void choose_leaders(bool all)
{
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0, place = 0, size = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!all) {
        PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
        PMPI_Comm_rank(node, &place);
        PMPI_Comm_free(&node);
    }
    PMPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    if (leaders == MPI_COMM_NULL)
        return;
    PMPI_Comm_set_name(leaders, "perfkit clocks");
    PMPI_Comm_size(leaders, &size);
    if (size < 2)
        PMPI_Comm_free(&leaders);
}

typedef enum wish { NONE, OF_NODES, OF_ALL } wish;

static wish wish_of(const char *text)
{
    if (strcmp(text, "1") == 0)
        return OF_NODES;
    if (strcmp(text, "all") == 0)
        return OF_ALL;
    if (strcmp(text, "0") != 0)
        pki_mpi_refuse("PK_MPI_CLOCKS", text, "neither 1 nor all (nor 0): clocks are not measured");
    return NONE;
}

/* What all ranks that have the variable want, or nothing. */
static wish agree(wish mine)
{
    int said[2] = {(int)mine, -(int)mine}, least[2] = {0, 0};
    if (PMPI_Allreduce(said, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD) != MPI_SUCCESS)
        return NONE;
    if (least[0] == -least[1])
        return mine;
    pk_log_(PK_LOG_WARNING, "PK_MPI_CLOCKS differs between the ranks: clocks are not measured");
    return NONE;
}

void pki_mpi_clocks_begin(void)
{
    const char *text = pki_mpi_text_of("PK_MPI_CLOCKS");
    if (leaders != MPI_COMM_NULL || !text)
        return;
    wish wanted = agree(wish_of(text));
    if (wanted == NONE)
        return;
    choose_leaders(wanted == OF_ALL);
    measure_if_all();
    begin_again();
}

void pki_mpi_clocks_end(void)
{
    end_again();
    measure_if_all();
    if (leaders != MPI_COMM_NULL)
        PMPI_Comm_free(&leaders);
}
