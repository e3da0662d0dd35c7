/* Which rank of which job a process is, by what each launcher sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/process.h"

#define MOST 24

typedef struct job_start {
    const char *what;
    const char *variables[MOST]; /* name, value, ... */
    int32_t rank, size, local_rank, local_size, node;
    const char *job;
} job_start;

/* As seen by one process each. */
static const job_start starts[] = {
    {"none", {NULL}, 0, 0, 0, 0, -1, ""},
    {"torchrun, 2 nodes of 4",
     {"RANK", "5", "WORLD_SIZE", "8", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "4", "GROUP_RANK", "1",
      "TORCHELASTIC_RUN_ID", "run7"},
     5,
     8,
     1,
     4,
     1,
     "run7"},
    {"mpirun of Open MPI",
     {"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
      "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "PMIX_RANK", "3", "PMIX_NAMESPACE", "prterun-7@1"},
     3,
     4,
     1,
     2,
     -1,
     "prterun-7@1"},
    {"mpirun of Open MPI within sbatch: Slurm's numbers are those of the batch script",
     {"OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
      "OMPI_COMM_WORLD_LOCAL_SIZE", "2", "SLURM_PROCID", "0", "SLURM_NODEID", "0", "SLURM_JOB_ID",
      "42"},
     3,
     4,
     1,
     2,
     -1,
     "42"},
    {"mpiexec of MPICH and of Intel MPI",
     {"PMI_RANK", "2", "PMI_SIZE", "4", "MPI_LOCALRANKID", "0", "MPI_LOCALNRANKS", "2"},
     2,
     4,
     0,
     2,
     -1,
     ""},
    {"srun --mpi=pmix: PMIx tells no size, Slurm does",
     {"PMIX_RANK", "6", "SLURM_PROCID", "6", "SLURM_NTASKS", "8", "SLURM_LOCALID", "2",
      "SLURM_NODEID", "1", "SLURM_STEP_TASKS_PER_NODE", "4(x2)", "SLURM_JOB_ID", "42"},
     6,
     8,
     2,
     4,
     -1,
     "42"},
    {"srun, unlike nodes",
     {"SLURM_PROCID", "9", "SLURM_NTASKS", "11", "SLURM_LOCALID", "1", "SLURM_NODEID", "2",
      "SLURM_STEP_TASKS_PER_NODE", "4(x2),3", "SLURM_JOB_ID", "42"},
     9,
     11,
     1,
     3,
     2,
     "42"},
    {"srun --ntasks-per-node",
     {"SLURM_PROCID", "3", "SLURM_NTASKS", "4", "SLURM_LOCALID", "1", "SLURM_NTASKS_PER_NODE", "2"},
     3,
     4,
     1,
     2,
     -1,
     ""},
    {"PALS",
     {"PALS_RANKID", "5", "PALS_SIZE", "8", "PALS_LOCAL_RANKID", "1", "PALS_LOCAL_SIZE", "4",
      "PALS_NODEID", "1", "PALS_APID", "77", "PBS_JOBID", "9.server"},
     5,
     8,
     1,
     4,
     1,
     "77"},
    {"MVAPICH",
     {"MV2_COMM_WORLD_RANK", "1", "MV2_COMM_WORLD_SIZE", "2", "MV2_COMM_WORLD_LOCAL_RANK", "1",
      "MV2_COMM_WORLD_LOCAL_SIZE", "2"},
     1,
     2,
     1,
     2,
     -1,
     ""},
    {"flux run: how many there are on a node it does not say",
     {"FLUX_TASK_RANK", "5", "FLUX_JOB_SIZE", "8", "FLUX_TASK_LOCAL_ID", "1", "FLUX_JOB_ID", "fX"},
     5,
     8,
     0,
     0,
     -1,
     "fX"},
    {"jsrun",
     {"JSM_NAMESPACE_RANK", "7", "JSM_NAMESPACE_SIZE", "8", "JSM_NAMESPACE_LOCAL_RANK", "3",
      "JSM_NAMESPACE_LOCAL_SIZE", "4", "LSB_JOBID", "5"},
     7,
     8,
     3,
     4,
     -1,
     "5"},
    {"torchrun started by srun, once for each node: torchrun's numbers count",
     {"RANK", "6", "WORLD_SIZE", "8", "LOCAL_RANK", "2", "LOCAL_WORLD_SIZE", "4", "GROUP_RANK", "1",
      "SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_LOCALID", "0", "SLURM_NODEID", "1"},
     6,
     8,
     2,
     4,
     1,
     ""},
    {"a local rank that cannot be",
     {"PMI_RANK", "2", "PMI_SIZE", "4", "MPI_LOCALRANKID", "2", "MPI_LOCALNRANKS", "2"},
     2,
     4,
     0,
     0,
     -1,
     ""},
    {"two programs in one job (MPMD): the numbers are the job's",
     {"PMI_RANK", "4", "PMI_SIZE", "6", "MPI_LOCALRANKID", "4", "MPI_LOCALNRANKS", "6"},
     4,
     6,
     4,
     6,
     -1,
     ""},
};

static void set(const job_start *s, bool there)
{
    for (size_t i = 0; i + 1 < MOST && s->variables[i]; i += 2) {
        if (there)
            setenv(s->variables[i], s->variables[i + 1], 1);
        else
            unsetenv(s->variables[i]);
    }
}

static void forget_launchers(void)
{
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        set(&starts[i], false);
}

static void each_launcher(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const job_start *s = &starts[i];
        pki_world w = {.node = 7};
        print_message("%s\n", s->what);
        set(s, true);
        pki_launcher_read(&w);
        forget_launchers();
        assert_int_equal(w.rank, s->rank);
        assert_int_equal(w.size, s->size);
        assert_int_equal(w.local_rank, s->local_rank);
        assert_int_equal(w.local_size, s->local_size);
        assert_int_equal(w.node, s->node);
        assert_string_equal(w.job, s->job);
    }
}

static void lists_of_tasks(void **unused)
{
    (void)unused;
    assert_int_equal(pki_launcher_tasks("4", 0), 4);
    assert_int_equal(pki_launcher_tasks("4(x2),3", 1), 4);
    assert_int_equal(pki_launcher_tasks("4(x2),3", 2), 3);
    assert_int_equal(pki_launcher_tasks("4(x2),3,1(x70000)", 69999), 1);
    assert_int_equal(pki_launcher_tasks("4(x2),3", 3), 0);
    static const char *const odd[] = {"", "x", "-4", "4(", "4(x", "4(x0)", ",", "99999999999"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_in_range(pki_launcher_tasks(odd[i], 1), 0, 4);
}

static void long_names_of_jobs(void **unused)
{
    (void)unused;
    char name[200];
    pki_world w = {0};
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    setenv("PMIX_NAMESPACE", name, 1);
    pki_launcher_read(&w);
    forget_launchers();
    assert_int_equal(strlen(w.job), sizeof w.job - 1);
}

static void whose_clock(void **unused)
{
    (void)unused;
    pki_world a, b;
    pki_world_detect(&a);
    pki_world_detect(&b);
    assert_string_equal(a.clock, b.clock);
    assert_true(strlen(a.clock) == 0 || strlen(a.clock) >= 36);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_launcher),
        cmocka_unit_test(lists_of_tasks),
        cmocka_unit_test(long_names_of_jobs),
        cmocka_unit_test(whose_clock),
    };
    forget_launchers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
