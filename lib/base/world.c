#include "base/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

/* What launchers set, the most specific first. Slurm comes last: under mpirun inside sbatch every
 * rank has SLURM_PROCID=0. */
static const struct {
    const char *rank, *size;
} launchers[] = {
    {"RANK", "WORLD_SIZE"}, /* torchrun */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", "PMIX_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"PALS_RANKID", "PALS_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
    {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

/* The same among the ranks of one host. Not all launchers tell. */
static const struct {
    const char *rank, *size;
} locals[] = {
    {"LOCAL_RANK", "LOCAL_WORLD_SIZE"}, /* torchrun */
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"}, /* Hydra */
    {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
    {"MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_LOCAL_SIZE"},
    {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

/* A launcher's variable; -1 if it is not there or no plain number. */
static int32_t number_in(const char *variable)
{
    const char *text = secure_getenv(variable);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return -1;
    long n = strtol(text, &end, 10);
    return *end || n >= INT32_MAX ? -1 : (int32_t)n; /* a rank needs a size above it */
}

static void detect_rank(pki_world *w)
{
    for (size_t i = 0; i < PKI_COUNT_OF(launchers); i++) {
        int32_t rank = number_in(launchers[i].rank), size = number_in(launchers[i].size);
        bool alone = launchers[i].rank[0] == 'R' &&
                     size < 0; /* RANK is too common a word to stand for itself */
        if (rank < 0 || alone)
            continue;
        w->rank = rank;
        w->size = PKI_MAX(size, rank + 1);
        return;
    }
}

static void detect_local_rank(pki_world *w)
{
    for (size_t i = 0; i < PKI_COUNT_OF(locals) && w->local_size == 0; i++) {
        int32_t rank = number_in(locals[i].rank), size = number_in(locals[i].size);
        if (rank < 0 || rank >= size)
            continue;
        w->local_rank = rank;
        w->local_size = size;
    }
}

/* CLOCK_MONOTONIC begins with the machine's start, and a time namespace may have shifted it. */
static void detect_clock(pki_world *w)
{
    static const char usual[] = "time:[4026531834]"; /* that of the machine itself */
    char boot[40], space[48] = "";
    ssize_t n = readlink("/proc/self/ns/time", space, sizeof space - 1);
    if (!pki_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
        return;
    bool shifted = n > 0 && strcmp(space, usual) != 0;
    snprintf(w->clock, sizeof w->clock, "%s%s%s", boot, shifted ? " " : "", shifted ? space : "");
}

static void detect_program(pki_world *w)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    const char *last = strrchr(path, '/');
    snprintf(w->program, sizeof w->program, "%.127s", last ? last + 1 : "program");
}

void pki_world_detect(pki_world *w)
{
    memset(w, 0, sizeof *w);
    w->pid = (uint32_t)getpid();
    if (gethostname(w->host, sizeof w->host - 1) != 0)
        strcpy(w->host, "localhost");
    detect_program(w);
    detect_clock(w);
    detect_rank(w);
    detect_local_rank(w);
}
