/* lib/comm/mpi/stragglers.c - who is late, while the job runs */
#include <pk/counter.h>
#include <pk/private.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/mpi/glue.h"
#include "job/window.h"

#define LOOK_SECONDS 200e-6 /* between two looks at what is under way */
#define END_SECONDS 0.25    /* for the others, in MPI_Finalize */
#define END_NAP_NS 200000
#define TURN_MOST 64 /* messages that rank 0 begins or ends in one turn */

enum { STEPS_TAG = 1, WORD_TAG };

int pki_mpi_stragglers_live;

/* Of the thread that is amid a call of MPI's, one at a time: `busy`. What MPI may still read and
 * write when nobody waits for it stays. */
static struct {
    uint32_t busy;
    MPI_Comm comm;
    int rank, ranks;
    bool under_way, over; /* over: the last word has been heard */
    double next_look;
    MPI_Request requests[2]; /* rank 0 has its own */
    pk_job_steps_ mine;
    pk_job_word_ word;
    char host[PKI_WINDOW_HOST];
} x = {.comm = MPI_COMM_NULL, .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};

/* Rank 0's: what all ranks have given, and what is made of it. */
static struct {
    pk_job_steps_ *given[2]; /* one for MPI, one for who judges */
    unsigned at;             /* MPI's */
    MPI_Request *requests;   /* one for each other rank: its steps, then the word for it */
    int done;                /* of this exchange: see turn_of_root */
    bool ended;              /* a rank has come to its end */
    uint64_t from;           /* the latest steps that a rank has reported */
    uint32_t fresh;          /* the other one has not been judged yet */
    pki_job_window *window;
    pthread_mutex_t lock; /* of the word; the collector holds it for a copy */
    pk_job_word_ word;
} root = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pk_counter lateness = PK_COUNTER("straggler", "%");

/* ---- rank 0 judges: on perfkit's own thread ---- */

static void judge(void)
{
    static pk_job_word_ word;
    if (!__atomic_load_n(&root.fresh, __ATOMIC_ACQUIRE)) /* pairs with the release in hand_over */
        return;
    pki_job_window_add(root.window, root.given[1 - root.at]);
    __atomic_store_n(&root.fresh, 0u, __ATOMIC_RELEASE);
    if (!pki_job_window_judge(root.window, &word))
        return;
    pthread_mutex_lock(&root.lock);
    root.word = word;
    pthread_mutex_unlock(&root.lock);
}

/* What comes faster than it is judged is lost: the next portions follow. */
static void hand_over(void)
{
    root.from = 0;
    for (int r = 0; r < x.ranks; r++) {
        const pk_job_steps_ *given = &root.given[root.at][r];
        root.ended = root.ended || given->ended;
        root.from = given->first > root.from ? given->first : root.from;
    }
    if (__atomic_load_n(&root.fresh, __ATOMIC_ACQUIRE)) /* pairs with the release in judge */
        return;
    root.at = 1 - root.at;
    __atomic_store_n(&root.fresh, 1u, __ATOMIC_RELEASE);
}

/* The collector does not wait for us, nor we for it: it may have the word that it had before. */
static void copy_word(void)
{
    if (pthread_mutex_trylock(&root.lock) != 0)
        return;
    x.word = root.word;
    pthread_mutex_unlock(&root.lock);
}

/* ---- an exchange ---- */

static void stop(void)
{
    __atomic_store_n(&pki_mpi_stragglers_live, 0, __ATOMIC_RELAXED);
    x.over = true;
}

/* The receive comes first: rank 0 sends when it has our steps, so its word finds it there. */
static bool begin_mine(void)
{
    return PMPI_Irecv(&x.word, (int)sizeof x.word, MPI_BYTE, 0, WORD_TAG, x.comm, &x.requests[0]) ==
               MPI_SUCCESS &&
           PMPI_Isend(&x.mine, (int)sizeof x.mine, MPI_BYTE, 0, STEPS_TAG, x.comm,
                      &x.requests[1]) == MPI_SUCCESS;
}

static void begin(void)
{
    if (x.rank == 0) {
        root.given[root.at][0] = x.mine;
        root.done = 0;
    }
    x.under_way = true;
    if (x.rank != 0 && !begin_mine())
        stop();
}

/* All have given: what follows is the word. */
static void build_word(void)
{
    hand_over();
    copy_word();
    x.word.over = root.ended;
    x.word.from = root.from;
}

static bool begin_one(bool steps, int rank)
{
    MPI_Request *request = &root.requests[rank];
    int status =
        steps ? PMPI_Irecv(&root.given[root.at][rank], (int)sizeof x.mine, MPI_BYTE, rank,
                           STEPS_TAG, x.comm, request)
              : PMPI_Isend(&x.word, (int)sizeof x.word, MPI_BYTE, rank, WORD_TAG, x.comm, request);
    if (status != MPI_SUCCESS)
        stop();
    return status == MPI_SUCCESS;
}

static bool end_one(int rank)
{
    int there = 0;
    if (PMPI_Test(&root.requests[rank], &there, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        stop();
    return there && !x.over;
}

/* Four times round the other ranks: receives of their steps are begun, and are over; sends of the
 * word are begun, and are over. True: so is the exchange. */
static bool turn_of_root(void)
{
    int others = x.ranks - 1;
    for (int i = 0; i < TURN_MOST && root.done < 4 * others; i++) {
        int round = root.done / others, rank = 1 + root.done % others;
        if (!(round % 2 ? end_one(rank) : begin_one(round == 0, rank)))
            return false;
        if (++root.done == 2 * others)
            build_word();
    }
    return root.done == 4 * others;
}

static bool is_mine(const pk_job_late_ *late)
{
    return late->rank >= 0 ? late->rank == x.rank : strcmp(late->host, x.host) == 0;
}

/* 0: this rank is not late. */
static double own_lateness(void)
{
    double most = 0;
    for (uint32_t i = 0; i < x.word.count && i < PK_JOB_LATE_; i++)
        if (is_mine(&x.word.late[i]) && x.word.late[i].by > most)
            most = x.word.late[i].by;
    return 100 * most;
}

static void end(void)
{
    x.under_way = false;
    if (x.word.last) {
        pk_counter_set(&lateness, own_lateness());
        pk_job_say_(&x.word, x.rank);
    }
    if (x.word.over)
        stop();
}

static bool is_complete(void)
{
    int there = 0;
    if (x.rank == 0)
        return turn_of_root();
    if (PMPI_Testall(2, x.requests, &there, MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        stop();
    return there && !x.over;
}

static void check_round(void)
{
    double now = pki_mpi_seconds();
    if (now < x.next_look)
        return;
    x.next_look = now + LOOK_SECONDS;
    if (is_complete())
        end();
}

/* Those of the same numbers are compared: who has fallen behind leaves out what lies behind. */
static bool drain_steps(void)
{
    bool any = false;
    while (pk_job_steps_take_(&x.mine)) {
        any = true;
        if (x.mine.first >= x.word.from)
            break;
    }
    return any;
}

/* The program's thread is amid a call of MPI's, so it may call MPI, whatever the thread level. */
void pki_mpi_stragglers_turn_(void)
{
    int saved = errno;
    if (__atomic_exchange_n(&x.busy, 1u, __ATOMIC_ACQUIRE))
        return;
    if (x.under_way)
        check_round();
    else if (!x.over && drain_steps())
        begin();
    __atomic_store_n(&x.busy, 0u, __ATOMIC_RELEASE);
    errno = saved;
}

/* ---- do all processes of MPI_COMM_WORLD want the same? ---- */

/* Before any of them begins a call that would wait for the others.
 *
 * No message and no collective of MPI's can find that out: a process without this library would
 * leave the others waiting, or find what was meant for another. So they ask the launcher, which
 * keeps names (MPI_Publish_name, MPI_Lookup_name: calls that wait for no other rank). Over a
 * binomial tree each rank looks for the names of those below it and then publishes its own; what
 * rank 0 finds it publishes as the decision. Who has waited for PK_MPI_PATIENCE publishes "no" as
 * the decision. The first decision counts for all: launchers refuse a second one, or keep it behind
 * the first; so no rank begins what another one has given up. */

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

/* Behind MPI_Init. `mine` above 0 if all processes have called this with the same variable and
 * number; else 0, and a warning is logged that says why. Waits for others, but not longer than
 * PK_MPI_PATIENCE, and only where some were not asked. */
static long agree_on(const char *variable, long mine)
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

/* ---- the beginning ---- */

static bool make_root(const char *hosts)
{
    root.given[0] = calloc((size_t)x.ranks, sizeof *root.given[0]);
    root.given[1] = calloc((size_t)x.ranks, sizeof *root.given[1]);
    root.requests = malloc((size_t)x.ranks * sizeof(MPI_Request));
    for (int r = 0; root.requests && r < x.ranks; r++)
        root.requests[r] = MPI_REQUEST_NULL;
    root.window = pki_job_window_create(x.ranks, hosts);
    return root.given[0] && root.given[1] && root.requests && root.window;
}

/* With a communicator of our own, no message and no order of calls meets the program's. */
static bool make_communicator(void)
{
    if (PMPI_Comm_split(MPI_COMM_WORLD, 0, x.rank, &x.comm) != MPI_SUCCESS)
        return false;
    PMPI_Comm_set_errhandler(x.comm, MPI_ERRORS_RETURN);
    PMPI_Comm_set_name(x.comm, "perfkit stragglers");
    return true;
}

/* Which host each rank is on; and whether rank 0 has the memory for all. */
static bool prepare(void)
{
    char *hosts = x.rank == 0 ? malloc((size_t)x.ranks * PKI_WINDOW_HOST) : NULL;
    int ready = 1;
    gethostname(x.host, sizeof x.host - 1);
    if (x.rank == 0)
        ready = hosts != NULL;
    PMPI_Bcast(&ready, 1, MPI_INT, 0, x.comm);
    if (ready)
        PMPI_Gather(x.host, PKI_WINDOW_HOST, MPI_CHAR, hosts, PKI_WINDOW_HOST, MPI_CHAR, 0, x.comm);
    if (ready && x.rank == 0)
        ready = make_root(hosts);
    PMPI_Bcast(&ready, 1, MPI_INT, 0, x.comm);
    free(hosts);
    return ready;
}

void pki_mpi_stragglers_begin(void)
{
    static const pki_mpi_setting setting = {"PK_MPI_STRAGGLERS", 0, 1000000, 0};
    if (x.comm != MPI_COMM_NULL || !pki_mpi_text_of(setting.variable))
        return;
    long every = agree_on(setting.variable, pki_mpi_setting_of(&setting));
    PMPI_Comm_rank(MPI_COMM_WORLD, &x.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &x.ranks);
    if (every <= 0 || !make_communicator() || !prepare())
        return;
    if (x.rank == 0)
        pk_job_each_round_(judge);
    pk_job_steps_expect_((uint32_t)every);
    __atomic_store_n(&pki_mpi_stragglers_live, 1, __ATOMIC_RELAXED);
}

/* ---- the end ---- */

static bool complete(double until)
{
    const struct timespec nap = {.tv_nsec = END_NAP_NS};
    while (!is_complete()) {
        if (x.over || pki_mpi_seconds() > until)
            return false;
        nanosleep(&nap, NULL);
    }
    end();
    return true;
}

/* A receive that is called off is over at once, whatever other ranks do. */
static void call_off(MPI_Request *receive)
{
    if (*receive == MPI_REQUEST_NULL)
        return;
    PMPI_Cancel(receive);
    PMPI_Wait(receive, MPI_STATUS_IGNORE);
}

/* Sends are not called off (few MPIs can): they are small enough to be MPI's own from the start. */
static void call_off_all(void)
{
    if (x.rank != 0)
        call_off(&x.requests[0]);
    else if (root.done < 2 * (x.ranks - 1))
        for (int r = 1; r < x.ranks; r++)
            call_off(&root.requests[r]);
    x.under_way = false;
}

/* Until the last word, or until somebody does not come. */
static void end_all(void)
{
    double until = pki_mpi_seconds() + END_SECONDS;
    while (!x.over) {
        if (!x.under_way) {
            x.mine = (pk_job_steps_){.ended = 1};
            begin();
        }
        if (x.under_way && !complete(until))
            return;
    }
}

void pki_mpi_stragglers_end(void)
{
    if (x.comm == MPI_COMM_NULL || __atomic_exchange_n(&x.busy, 1u, __ATOMIC_ACQUIRE))
        return;
    if (!x.over && __atomic_load_n(&pki_mpi_stragglers_live, __ATOMIC_RELAXED))
        end_all();
    if (x.under_way)
        call_off_all();
    stop();
    pk_job_each_round_(NULL);
    pk_job_steps_expect_(0);
}
