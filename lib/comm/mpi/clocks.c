#include "comm/mpi/clocks.h"

#include <pk/private.h>

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/mpi/communicator.h"
#include "comm/mpi/patience.h"
#include "comm/mpi/session.h"

/* ---- agree ---- */

#define NAME 160
#define NAP_MOST 20e-3
#define PATIENCE_LEAST 1.0 /* none at all would be an answer before anybody can have one */

/* Below an answer: */
enum { NOTHING = -1, DIFFERENT = -2 };

typedef struct agreement {
    const char *variable;
    int rank, ranks;
    double since, until;
    bool unable; /* the launcher keeps no names */
} agreement;

/* Of this job: a launcher may have several. Without a blank: MPICH's takes its requests apart
 * there.
 */
static void name_of(const agreement *a, const char *what, int rank, char name[NAME])
{
    static const char *const jobs[] = {"PMIX_NAMESPACE", "PMI_JOBID", "SLURM_STEP_ID"};
    const char *job = NULL;
    for (size_t i = 0; !job && i < sizeof jobs / sizeof *jobs; i++)
        job = secure_getenv(jobs[i]);
    snprintf(name, NAME, "perfkit.%.60s.%.40s.%.10s.%d", job ? job : "", a->variable, what, rank);
}

/* The value is in the place of a port, which only who opens it looks into. */
static bool publish(const agreement *a, const char *what, int rank, long value)
{
    char name[NAME], text[32];
    name_of(a, what, rank, name);
    snprintf(text, sizeof text, "%ld", value);
    return PMPI_Publish_name(name, MPI_INFO_NULL, text) == MPI_SUCCESS;
}

static long look_up(const agreement *a, const char *what, int rank)
{
    char name[NAME], text[MPI_MAX_PORT_NAME] = "";
    name_of(a, what, rank, name);
    if (PMPI_Lookup_name(name, MPI_INFO_NULL, text) != MPI_SUCCESS || !text[0])
        return NOTHING;
    return strtol(text, NULL, 10);
}

/* Longer, the longer it has waited; many ask one launcher. */
static bool sleep_a_little(const agreement *a)
{
    double now = pki_mpi_seconds(), nap = fmin(fmax((now - a->since) / 8, 200e-6), NAP_MOST);
    if (now > a->until)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * nap)}, NULL);
    return true;
}

/* What the ranks below this one, and it, want; NOTHING: one of them is silent. */
static long collect_wishes(const agreement *a, long mine)
{
    long wanted = mine;
    for (int distance = 1; distance < a->ranks && !(a->rank & distance); distance *= 2) {
        long of_child = NOTHING;
        if (a->rank + distance >= a->ranks)
            break;
        while ((of_child = look_up(a, "wants", a->rank + distance)) == NOTHING)
            if (!sleep_a_little(a))
                return NOTHING;
        wanted = of_child == wanted ? wanted : DIFFERENT;
    }
    return wanted;
}

/* The first decision is everybody's, whosever it is. */
static long decide(const agreement *a, long wanted)
{
    publish(a, "decision", 0, wanted == NOTHING ? 0 : wanted);
    return look_up(a, "decision", 0);
}

static long wait_for_decision(const agreement *a)
{
    long decision = NOTHING;
    while ((decision = look_up(a, "decision", 0)) == NOTHING)
        if (!sleep_a_little(a))
            return decide(a, NOTHING);
    return decision;
}

/* Nobody may say yes who could not hear what is decided then. */
static bool is_able(const agreement *a, long mine)
{
    return publish(a, "tries", a->rank, mine) && look_up(a, "tries", a->rank) == mine;
}

static long settle(agreement *a, long mine)
{
    a->unable = !is_able(a, mine);
    long wanted = a->unable ? NOTHING : collect_wishes(a, mine);
    if (wanted == NOTHING)
        return decide(a, NOTHING);
    if (a->rank == 0)
        return decide(a, wanted);
    publish(a, "wants", a->rank, wanted);
    return wait_for_decision(a);
}

static void log_decision(const agreement *a, long decision)
{
    char line[300];
    const char *why = decision == DIFFERENT ? "differs between the ranks"
                      : a->unable || decision == NOTHING
                          ? "has no effect: this launcher keeps no names (MPI_Publish_name), so it"
                            " cannot be known whether all ranks have it"
                          : "has no effect: not all processes of MPI_COMM_WORLD have it, or"
                            " libpk_mpi";
    snprintf(line, sizeof line, "%.40s %s", a->variable, why);
    pk_log_(PK_LOG_WARNING, line);
}

/* Not for processes that were spawned: they share the launcher's names with those that did it. */
static bool is_alone(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    int ranks = 0;
    PMPI_Comm_get_parent(&parent);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks < 2 || parent != MPI_COMM_NULL;
}

long pki_mpi_agree(const char *variable, long mine)
{
    agreement a = {.variable = variable, .since = pki_mpi_seconds()};
    MPI_Errhandler world, self;
    if (is_alone())
        return 0;
    a.until = a.since + fmax(pki_mpi_patience(), PATIENCE_LEAST);
    PMPI_Comm_rank(MPI_COMM_WORLD, &a.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &a.ranks);
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &world); /* which of them such a call asks differs */
    PMPI_Comm_get_errhandler(MPI_COMM_SELF, &self);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    long decision = settle(&a, mine);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, self);
    PMPI_Errhandler_free(&world);
    PMPI_Errhandler_free(&self);
    if (decision != mine)
        log_decision(&a, decision);
    return decision == mine && mine > 0 ? mine : 0;
}

/* ---- have all ranks come to MPI_Finalize? ---- */

#define SAVE_AFTER_SECONDS 1.0
#define MARGIN_SECONDS 5.0 /* for rank 0's word to arrive */

/* MPI cannot call a collective off, so what one reads and writes stays. */
static int64_t my_arrival, first_arrival; /* CLOCK_REALTIME, ns: they come from several nodes */
static char meet_word;

static int64_t real_time(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool wait_and_save(MPI_Request *request, double seconds)
{
    double grace = fmin(seconds, SAVE_AFTER_SECONDS);
    if (pki_mpi_wait(request, MPI_STATUS_IGNORE, grace))
        return true;
    pk_job_save_();
    return pki_mpi_wait(request, MPI_STATUS_IGNORE, seconds - grace);
}

/* ---- rank 0 decides ---- */

/* Whoever came first still waits, unless that is too long ago already. */
static pki_mpi_met meet_decide(MPI_Request *came, bool writes, double seconds)
{
    if (!wait_and_save(came, seconds) || 1e-9 * (double)(real_time() - first_arrival) > seconds)
        return PKI_MPI_NOT_ALL;
    return writes ? PKI_MPI_ALL : PKI_MPI_NOBODY;
}

/* To each by itself, so that nobody needs to be awake to pass it on. */
static void send_to_all(pki_mpi_met met, int ranks)
{
    int *counts = calloc((size_t)ranks, 2 * sizeof *counts + 1);
    MPI_Request sent;
    if (!counts)
        return;
    int *places = counts + ranks;
    char *words = (char *)(places + ranks);
    for (int to = 1; to < ranks; to++) {
        counts[to] = 1;
        places[to] = to;
        words[to] = (char)met;
    }
    if (PMPI_Iscatterv(words, counts, places, MPI_CHAR, &meet_word, 0, MPI_CHAR, 0, MPI_COMM_WORLD,
                       &sent) != MPI_SUCCESS ||
        pki_mpi_wait(&sent, MPI_STATUS_IGNORE, MARGIN_SECONDS))
        free(counts);
}

/* ---- the others ---- */

static double meet_most(double seconds)
{
    return seconds + fmin(seconds, MARGIN_SECONDS);
}

static pki_mpi_met receive(MPI_Request *came, double seconds)
{
    MPI_Request answer;
    if (PMPI_Iscatterv(NULL, NULL, NULL, MPI_CHAR, &meet_word, 1, MPI_CHAR, 0, MPI_COMM_WORLD,
                       &answer) != MPI_SUCCESS ||
        !wait_and_save(&answer, meet_most(seconds)) ||
        !pki_mpi_wait(came, MPI_STATUS_IGNORE, meet_word == PKI_MPI_NOT_ALL ? 0 : MARGIN_SECONDS))
        return PKI_MPI_NOT_ALL;
    return (pki_mpi_met)meet_word;
}

pki_mpi_met pki_mpi_meet(int rank, int ranks, bool writes, double seconds)
{
    MPI_Request came;
    my_arrival = real_time();
    if (ranks == 1)
        return writes ? PKI_MPI_ALL : PKI_MPI_NOBODY;
    if (PMPI_Ireduce(&my_arrival, &first_arrival, 1, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD,
                     &came) != MPI_SUCCESS)
        return PKI_MPI_NOT_ALL;
    if (rank != 0)
        return receive(&came, seconds);
    pki_mpi_met met = meet_decide(&came, writes, seconds);
    send_to_all(met, ranks);
    return met;
}

/* ---- messages between nodes by which `pk merge` bounds their clocks ---- */

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

/* ---- a send and a receive in one call, which returns when both are done ---- */

typedef struct under_way {
    pki_mpi_exchange what;
    pk_comm_request receiving;
    uint64_t since;
} under_way;

/* The receive starts outside the call's own region, as in imessage.c. */
static under_way begin(pk_region *region, pki_mpi_exchange what)
{
    under_way u = {.what = what};
    if (what.sent.comm)
        u.receiving = pki_mpi_start(&what.received);
    pk_region_begin(region);
    pki_mpi_describe(region, &what.sent);
    u.since = u.receiving.comm ? pki_mpi_now_ns() : 0;
    pki_mpi_begin_wait();
    return u;
}

/* It ends within the call, where arrows in a trace go to. */
static void end(pk_region *region, under_way *u, int result, MPI_Datatype type, MPI_Comm comm,
                const MPI_Status *status)
{
    bool done = result == MPI_SUCCESS;
    pki_mpi_end_wait();
    if (u->receiving.comm) {
        if (done)
            pki_mpi_correct(&u->receiving, status);
        pk_comm_finish(&u->receiving, pki_mpi_now_ns() - u->since);
    } else if (done && !u->what.sent.comm && u->what.received.comm) {
        pki_mpi_describe_received(region, type, comm, status);
    }
    pk_region_end(region);
}

PKI_MPI_CALL(Sendrecv)(PKI_MPI_EXCHANGE_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv(PKI_MPI_EXCHANGE_ARGS, status);
    under_way u = begin(&region, pki_mpi_exchange_of(sendcount, sendtype, dest, sendtag, recvcount,
                                                     recvtype, source, recvtag, comm));
    int result = PMPI_Sendrecv(PKI_MPI_EXCHANGE_ARGS, known);
    end(&region, &u, result, recvtype, comm, known);
    return result;
}

PKI_MPI_CALL(Sendrecv_replace)(PKI_MPI_REPLACE_PARAMS, MPI_Status *status)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Sendrecv_replace");
    MPI_Status own, *known = status == MPI_STATUS_IGNORE ? &own : status;
    if (!pki_mpi_is_on())
        return PMPI_Sendrecv_replace(PKI_MPI_REPLACE_ARGS, status);
    under_way u = begin(&region, pki_mpi_exchange_of(count, type, dest, sendtag, count, type,
                                                     source, recvtag, comm));
    int result = PMPI_Sendrecv_replace(PKI_MPI_REPLACE_ARGS, known);
    end(&region, &u, result, type, comm, known);
    return result;
}
