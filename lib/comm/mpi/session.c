/* lib/comm/mpi/session.c - the session that MPI's ranks have, which MPI it is, and the job's file
 */
#include <pk/private.h>
#include <pk/session.h>

#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/mpi/entry.h"
#include "comm/mpi/entry_time.h"
#include "comm/mpi/glue.h"

/* ---- is the MPI in this process the one that this library was compiled for? ---- */

typedef enum family { OF_OPEN_MPI, OF_MPICH, OF_ANOTHER } family;

#if defined(OPEN_MPI)
#define COMPILED_FOR OF_OPEN_MPI
#elif defined(MPICH_VERSION)
#define COMPILED_FOR OF_MPICH
#else
#define COMPILED_FOR OF_ANOTHER
#endif

pki_mpi_which pki_mpi_found;

static const char *const names[] = {"Open MPI", "MPICH", "another MPI"};
static const char *const libraries[] = {" (libpk_mpi-openmpi is for that)",
                                        " (libpk_mpi-mpich is for that)", ""};

/* By what MPIs say of themselves. Those of one family have the same handles: MPICH's are bound to
 * it by its ABI compatibility initiative. */
static family family_of(const char *version)
{
    static const struct {
        const char *says;
        family is;
    } known[] = {
        {"Open MPI", OF_OPEN_MPI}, {"Spectrum MPI", OF_OPEN_MPI}, {"MPICH", OF_MPICH},
        {"MVAPICH", OF_MPICH},     {"Intel(R) MPI", OF_MPICH},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(version, known[i].says))
            return known[i].is;
    return OF_ANOTHER;
}

static void log_mismatch(const char *version)
{
    char line[256];
    size_t n = strcspn(version, ",\n"); /* what follows is how it was configured */
    snprintf(
        line, sizeof line,
        "MPI calls are not recorded: this libpk_mpi is for %s, and the program runs with %.*s%s",
        names[COMPILED_FOR], (int)(n < 80 ? n : 80), version, libraries[family_of(version)]);
    for (char *c = line; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    pk_say_(-1, line);
}

/* PMPI_Get_library_version is the one function that may be called at any time, even before
 * MPI_Init, and has the same parameters in all MPIs. The longest answer, MPICH's, takes up to 8192
 * bytes. */
static pki_mpi_which identify(char version[16384])
{
    int n = 0;
    version[0] = 0;
    PMPI_Get_library_version(version, &n);
    return COMPILED_FOR == OF_ANOTHER || family_of(version) == COMPILED_FOR ? PKI_MPI_OURS
                                                                            : PKI_MPI_OTHER;
}

bool pki_mpi_check_library(void)
{
    pki_mpi_which unseen = PKI_MPI_UNSEEN,
                  found = __atomic_load_n(&pki_mpi_found, __ATOMIC_RELAXED);
    char version[16384];
    int saved = errno;
    if (found != PKI_MPI_UNSEEN)
        return found == PKI_MPI_OTHER;
    found = identify(version);
    if (__atomic_compare_exchange_n(&pki_mpi_found, &unseen, found, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED) &&
        found == PKI_MPI_OTHER)
        log_mismatch(version);
    errno = saved;
    return found == PKI_MPI_OTHER;
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

static void pki_mpi_clocks_begin(void)
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

/* Behind MPI_Init, with the session that it may have started; in MPI_Finalize, while there is one.
 */
static void pki_mpi_clocks_end(void)
{
    end_again();
    measure_if_all();
    if (leaders != MPI_COMM_NULL)
        PMPI_Comm_free(&leaders);
}

/* ---- have all ranks come to MPI_Finalize? ---- */

/* Only then may a rank send another one a message over MPI_COMM_WORLD: one that is still in the
 * program may receive with MPI_ANY_SOURCE and MPI_ANY_TAG. The answer goes by collectives, which
 * no receive of the program's can match. Ranks that were asked for a file of the job call this,
 * others do not, so it may be that some never come. */

typedef enum meeting {
    NOT_ALL, /* or not in time */
    NOBODY,  /* all are there, but rank 0 has nothing to write */
    ALL,
} meeting;

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

static double meet_most(double seconds)
{
    return seconds + fmin(seconds, MARGIN_SECONDS);
}

static bool wait_and_save(MPI_Request *request, double seconds)
{
    double grace = fmin(seconds, SAVE_AFTER_SECONDS);
    if (pki_mpi_wait(request, MPI_STATUS_IGNORE, grace))
        return true;
    pk_job_save_();
    return pki_mpi_wait(request, MPI_STATUS_IGNORE, seconds - grace);
}

/* ---- they meet: rank 0 decides ---- */

/* Whoever came first still waits, unless that is too long ago already. */
static meeting meet_decide(MPI_Request *came, bool writes, double seconds)
{
    if (!wait_and_save(came, seconds) || 1e-9 * (double)(real_time() - first_arrival) > seconds)
        return NOT_ALL;
    return writes ? ALL : NOBODY;
}

/* To each by itself, so that nobody needs to be awake to pass it on. */
static void send_to_all(meeting met, int ranks)
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

/* ---- they meet: the others ---- */

static meeting receive(MPI_Request *came, double seconds)
{
    MPI_Request answer;
    if (PMPI_Iscatterv(NULL, NULL, NULL, MPI_CHAR, &meet_word, 1, MPI_CHAR, 0, MPI_COMM_WORLD,
                       &answer) != MPI_SUCCESS ||
        !wait_and_save(&answer, meet_most(seconds)) ||
        !pki_mpi_wait(came, MPI_STATUS_IGNORE, meet_word == NOT_ALL ? 0 : MARGIN_SECONDS))
        return NOT_ALL;
    return (meeting)meet_word;
}

/* On rank 0, and all that it reaches in time, the same. writes: matters on rank 0. It takes no
 * longer than meet_most(seconds); who has waited for a second saves its part (pk_job_save_). */
static meeting meet(int rank, int ranks, bool writes, double seconds)
{
    MPI_Request came;
    my_arrival = real_time();
    if (ranks == 1)
        return writes ? ALL : NOBODY;
    if (PMPI_Ireduce(&my_arrival, &first_arrival, 1, MPI_INT64_T, MPI_MIN, 0, MPI_COMM_WORLD,
                     &came) != MPI_SUCCESS)
        return NOT_ALL;
    if (rank != 0)
        return receive(&came, seconds);
    meeting met = meet_decide(&came, writes, seconds);
    send_to_all(met, ranks);
    return met;
}

/* ---- the job's file ---- */

/* job_path: one file with the reports of all ranks, gathered in MPI_Finalize and written by rank 0,
 * for `pk job`.
 *
 * A rank that stops its session before MPI_Finalize keeps its part until then, since only there are
 * all ranks sure to come by; of a session that is open then the part is what it has so far. Who was
 * asked, by its session's options or by the environment, waits until rank 0 says that all have come
 * (above); then the parts go to rank 0 (gather.c), which writes one behind the other as they come,
 * and tells the others when they are in the file. Who is not there within PK_MPI_PATIENCE costs no
 * more than its own part: each rank that has waited for a second leaves its part in a file, should
 * the job be killed meanwhile, and in the end rank 0 makes the job's file of those that are there.
 * Who was not asked does nothing.
 */

static double patience;
static bool begun;

static void job_begin(void)
{
    int ranks = 0;
    if (begun || PMPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return;
    begun = true;
    patience = pki_mpi_patience();
    if (patience > 0)
        pk_job_hold_((uint32_t)ranks);
}

/* ---- the file, by rank 0 ---- */

static bool complain(void)
{
    char line[400];
    snprintf(line, sizeof line, "there is no file of the job: %.300s", pk_error_message());
    pk_log_(PK_LOG_ERROR, line);
    pk_say_(0, line);
    return false;
}

/* Ranks' parts, one after the other. */
typedef struct writing {
    bool *added; /* by rank; NULL: without memory */
    int ranks;
} writing;

static void add_part(void *user, int32_t rank, const char *text, size_t bytes)
{
    writing *w = user;
    bool added = pk_job_file_add_(text, bytes) == PK_OK;
    if (w->added && rank >= 0 && rank < w->ranks)
        w->added[rank] = added;
}

/* ---- all ranks are there ---- */

/* Who is not in the file keeps its part. */
static bool gather(const pk_job_part_ *part, int rank, int ranks)
{
    pki_mpi_gathered g = {.rank = rank, .ranks = ranks};
    writing w = {.ranks = ranks};
    if (rank == 0) {
        w.added = calloc((size_t)ranks, sizeof *w.added);
        pk_job_file_begin_(part->path); /* what fails is answered at the end */
    }
    pki_mpi_gather(&g, part->text, part->bytes, patience, add_part, &w);
    if (rank == 0 && pk_job_file_end_(1) != PK_OK && !complain() && w.added)
        memset(w.added, 0, (size_t)ranks * sizeof *w.added);
    bool done = pki_mpi_gathered_answer(&g, w.added, patience);
    pki_mpi_gathered_finish(&g);
    return done;
}

/* ---- some are not ---- */

/* The ranks that wait have left their files (pk_job_save_). These stay: whoever comes yet, and
 * `pk job` of their folder, find them. */
static void write_left(const pk_job_part_ *part, int ranks)
{
    uint32_t added = 0;
    pk_job_file_begin_(part->path);
    for (int rank = 0; rank < ranks; rank++)
        added += pk_job_file_add_left_(rank);
    if (pk_job_file_end_(added > 0) != PK_OK)
        complain();
}

static void miss(const pk_job_part_ *part, int rank, int ranks)
{
    char line[200];
    snprintf(line, sizeof line,
             "not all ranks have come to MPI_Finalize in time (PK_MPI_PATIENCE is %.0f s): their"
             " parts of the job's file are left in files of their own",
             patience);
    pk_log_(PK_LOG_WARNING, line);
    pk_job_save_(); /* if it is the late one itself, it has not waited */
    if (rank == 0)
        write_left(part, ranks);
}

/* ---- who takes part ---- */

/* Launchers give all ranks the same environment, so who is asked by it expects the others, also
 * where its own session never began. */
static bool is_requested(bool there)
{
    return there || pki_mpi_text_of("PK_JOB_PATH");
}

static bool meet_and_gather(pk_job_part_ *part)
{
    int ranks = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &part->rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    bool there = pk_job_take_(part);
    if (!is_requested(there))
        return false;
    meeting met = meet(part->rank, ranks, there, patience);
    if (met == NOT_ALL && there)
        miss(part, part->rank, ranks);
    return met == ALL && gather(part, part->rank, ranks);
}

static void job_end(void)
{
    pk_job_part_ part = {.size = sizeof part};
    MPI_Errhandler programs;
    if (!begun || patience <= 0)
        return;
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &programs);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    bool gathered = meet_and_gather(&part);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, programs);
    PMPI_Errhandler_free(&programs);
    pk_job_leave_(gathered);
    pk_job_hold_(0);
}

/* In MPI_Abort: nobody gathers anything. */
static void job_abort(void)
{
    pk_job_leave_(0);
    pk_job_hold_(0);
}

/* ---- the beginning and the end of MPI ---- */

/* PK_MPI_START=1 makes MPI_Init start perfkit, with PK_TRACE_PATH and its like, and MPI_Finalize
 * stop it: for programs that know nothing of perfkit. Without it nothing is started or stopped; a
 * session of the program's is flushed at MPI_Finalize and MPI_Abort, since not every launcher lets
 * its processes live for long after that. */

static bool is_ours; /* the session */

static void start(void)
{
    const char *wanted = secure_getenv("PK_MPI_START");
    int rank = 0, size = 0;
    if (is_ours || !wanted || strcmp(wanted, "1") != 0)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    is_ours =
        pk_start_asked_("PK_MPI_START", pk_options(.rank = rank, .world_size = size)) == PK_OK;
}

static void finish(void)
{
    if (is_ours)
        pk_stop();
    else if (pki_mpi_is_on())
        pk_flush();
    is_ours = false;
}

#define INIT(NAME, PARAMS, ARGS)                                                                   \
    PKI_MPI_CALL(NAME) PARAMS                                                                      \
    {                                                                                              \
        static pk_region region = PK_REGION_OF(PK_COMM, "MPI_" #NAME);                             \
        pk_region_begin(&region);                                                                  \
        int status = PMPI_##NAME ARGS;                                                             \
        pk_region_end(&region);                                                                    \
        if (status == MPI_SUCCESS) {                                                               \
            start();                                                                               \
            job_begin();                                                                           \
            pki_mpi_clocks_begin();                                                                \
            pki_mpi_stragglers_begin();                                                            \
        }                                                                                          \
        return status;                                                                             \
    }

INIT(Init, (int *argc, char ***argv), (argc, argv))
INIT(Init_thread, (int *argc, char ***argv, int required, int *provided),
     (argc, argv, required, provided))

PKI_MPI_CALL(Finalize)(void)
{
    static pk_region region = PK_REGION_OF(PK_COMM, "MPI_Finalize");
    pki_mpi_stragglers_end();
    pki_mpi_clocks_end();
    finish();
    job_end();
    pk_region_begin(&region);
    int status = PMPI_Finalize();
    pk_region_end(&region);
    return status;
}

/* Of libpk_attach, whose session ends with the process otherwise. */
extern void pk_attach_end_(void) __attribute__((weak));

PKI_MPI_CALL(Abort)(MPI_Comm comm, int code)
{
    finish();
    job_abort();
    if (pk_attach_end_)
        pk_attach_end_();
    return PMPI_Abort(comm, code);
}

/* ---- around calls of which only their time is known ---- */

void pki_mpi_border(bool waits)
{
    if (waits)
        pki_mpi_begin_wait();
    else
        pki_mpi_end_wait();
}

/* ---- MPI_Pcontrol: parts of the program, as it tells tools ---- */

/* MPI leaves to tools what levels mean, but for 0 (off), 1 (on) and 2 (flush). Programs turn tools
 * on for what they want measured, so from a level on to 0, or to the next level, it is a region.
 * With PK_MPI_PCONTROL=names it is as IPM has it: MPI_Pcontrol(1, "name") begins, (-1, "name")
 * ends, and (0, "name") is a moment. Whether there is a name no callee can know, so that has to be
 * asked for.
 */

/* Of libpk_attach: does the run listen to it? */
extern int pk_attach_listens_(const char *whom) __attribute__((weak));

static _Thread_local pk_region *controlled;

static void by_level(int level)
{
    char name[40];
    if (level == 2) {
        pk_flush();
        return;
    }
    if (controlled)
        pk_region_end(controlled);
    controlled = NULL;
    if (level == 0)
        return;
    snprintf(name, sizeof name, "MPI_Pcontrol %d", level);
    controlled = pk_region_named(name);
    pk_region_begin(controlled);
}

static void by_name(int level, const char *name)
{
    pk_region *region = pk_region_named(name);
    if (level > 0)
        pk_region_begin(region);
    else if (level < 0)
        pk_region_end(region);
    else
        pk_region_mark(region);
}

extern int pki_mpi_Pcontrol(int level, const char *name);

int pki_mpi_Pcontrol(int level, const char *name)
{
    const char *how = pki_mpi_text_of("PK_MPI_PCONTROL");
    bool off = (how && strcmp(how, "0") == 0) ||
               (pk_attach_listens_ && !pk_attach_listens_("pcontrol")) || !pki_mpi_is_on();
    if (!off && how && strcmp(how, "names") == 0)
        by_name(level, name);
    else if (!off)
        by_level(level);
    return PMPI_Pcontrol(level);
}
