#include "comm/mpi/agree.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pk/job.h>

#include "comm/mpi/patience.h"
#include "comm/mpi/settings.h"

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
