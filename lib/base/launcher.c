#include "base/launcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

/* What launchers set, the most specific first. Slurm comes last: under mpirun inside sbatch every
 * rank has SLURM_PROCID=0. "": it has none. */
static const struct launcher {
    const char *rank, *size, *local_rank, *local_size, *node;
} launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"}, /* torchrun */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", ""},
    {"PMIX_RANK", "PMIX_SIZE", "", "", ""},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""}, /* Hydra: MPICH, Intel */
    {"PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_NODEID"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE", ""},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "", ""},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
     "JSM_NAMESPACE_LOCAL_SIZE", ""},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "SLURM_NODEID"},
};
#define SLURM (PKI_COUNT_OF(launchers) - 1)

/* The narrowest first: a step of Slurm's lies in its job, a namespace of PMIx is a start. */
static const char *const jobs[] = {
    "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "PALS_APID", "FLUX_JOB_ID",
    "SLURM_JOB_ID",        "LSB_JOBID",      "PBS_JOBID",
};

static const char *text_in(const char *variable)
{
    const char *text = *variable ? secure_getenv(variable) : NULL;
    return text ? text : "";
}

/* -1 if it is not there or no plain number. */
static int32_t number_in(const char *variable)
{
    const char *text = text_in(variable);
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    long n = strtol(text, &end, 10);
    return *end || n >= INT32_MAX ? -1 : (int32_t)n; /* a rank needs a size above it */
}

static bool speaks(size_t i, int32_t *rank, int32_t *size)
{
    const char *name = launchers[i].rank;
    *rank = number_in(name);
    *size = number_in(launchers[i].size);
    bool alone = strcmp(name, "RANK") == 0 && *size < 0; /* too common a word for that */
    return *rank >= 0 && !alone;
}

/* Of a launcher that does not tell it: by another one that has given the same number. */
static int32_t size_by_others(size_t launcher, int32_t rank)
{
    for (size_t i = launcher + 1; i < PKI_COUNT_OF(launchers); i++) {
        int32_t other, size;
        if (speaks(i, &other, &size) && other == rank && size > rank)
            return size;
    }
    return rank + 1;
}

/* The launcher whose ranks they are; none: their count. */
static size_t find_rank(pki_world *w)
{
    for (size_t i = 0; i < PKI_COUNT_OF(launchers); i++) {
        int32_t rank, size;
        if (!speaks(i, &rank, &size))
            continue;
        w->rank = rank;
        w->size = size > rank ? size : size < 0 ? size_by_others(i, rank) : rank + 1;
        return i;
    }
    return PKI_COUNT_OF(launchers);
}

int32_t pki_launcher_tasks(const char *list, int32_t node)
{
    while (*list >= '0' && *list <= '9') {
        char *at;
        long tasks = strtol(list, &at, 10), times = 1;
        if (strncmp(at, "(x", 2) == 0) {
            times = strtol(at + 2, &at, 10);
            at += *at == ')';
        }
        if (node < times)
            return tasks < INT32_MAX ? (int32_t)tasks : 0;
        node -= (int32_t)times;
        list = *at == ',' ? at + 1 : "";
    }
    return 0;
}

static int32_t local_size_of(size_t i, int32_t node)
{
    int32_t size = number_in(launchers[i].local_size);
    if (i != SLURM || size >= 0)
        return size;
    const char *step = text_in("SLURM_STEP_TASKS_PER_NODE");
    size = *step && node >= 0 ? pki_launcher_tasks(step, node) : 0;
    return size ? size : number_in("SLURM_NTASKS_PER_NODE");
}

static bool read_local_rank(pki_world *w, size_t i)
{
    int32_t node = number_in(launchers[i].node), rank = number_in(launchers[i].local_rank);
    int32_t size = local_size_of(i, node);
    if (rank < 0 || rank >= size)
        return false;
    w->local_rank = rank;
    w->local_size = size;
    return true;
}

/* First by who told the rank; then by whoever does. */
static void find_local_rank(pki_world *w, size_t launcher)
{
    bool found = launcher < PKI_COUNT_OF(launchers) && read_local_rank(w, launcher);
    for (size_t i = 0; !found && i < PKI_COUNT_OF(launchers); i++)
        found = read_local_rank(w, i);
}

static void find_job(pki_world *w)
{
    for (size_t i = 0; i < PKI_COUNT_OF(jobs) && !w->job[0]; i++)
        snprintf(w->job, sizeof w->job, "%.63s", text_in(jobs[i]));
}

void pki_launcher_read(pki_world *w)
{
    size_t launcher = find_rank(w);
    find_local_rank(w, launcher);
    w->node = launcher < PKI_COUNT_OF(launchers) ? number_in(launchers[launcher].node) : -1;
    find_job(w);
}
