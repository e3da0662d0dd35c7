/* A rank of a job: which it is, its steps beside the others', and its part of the job's file. */
#include "folder.h"

#include <pk/private.h>
#include <pk/pk.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/process.h"
#include "measure/steps/steps.h"
#include "out/gz.h"
#include "session/options/config.h"
#include "session/session.h"

/* ---- which rank of which job a process is, by what each launcher sets ---- */

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

static const struct CMUnitTest launchers_tests[] = {
    cmocka_unit_test(each_launcher),
    cmocka_unit_test(lists_of_tasks),
    cmocka_unit_test(long_names_of_jobs),
    cmocka_unit_test(whose_clock),
};

static int run_launchers(void)
{
    forget_launchers();
    return cmocka_run_group_tests(launchers_tests, NULL, NULL);
}

/* ---- ranks that are late, on the side of a rank ---- */

/* Its steps in portions for who compares them, and what comes of the word about all ranks. */

/* -- portions -- */

static pki_portions portions;

static int none(void **state)
{
    (void)state;
    memset(&portions, 0, sizeof portions);
    return 0;
}

/* A step of 10 ns, of which 3 in region 7. */
static void step(uint64_t index)
{
    pki_portions_reach(&portions, index);
    pki_portions_add_self(&portions, 7, PK_DATA, 3);
    pki_stage_block block = {
        .index = index, .steps = 1, .time = 10, .items = 2, .no_processor = 1, .told = 1};
    pki_seats_add_seat(&block.seats, 3 + 1 + (600u << 16));
    pki_portions_add(&portions, &block);
}

static void expect_portion(uint64_t number, uint64_t steps)
{
    pki_portion p;
    assert_true(pki_portions_pop(&portions, &p));
    assert_int_equal(p.number, number);
    assert_int_equal(p.steps, steps);
    assert_int_equal(p.time, 10 * steps);
    assert_int_equal(p.items, 2 * steps);
    assert_int_equal(p.no_processor, steps);
    assert_int_equal(p.told, steps);
    assert_int_equal(pki_seats_most(&p.seats), 3 + 1 + (600u << 16));
    assert_int_equal(p.selves[0], 3 * steps);
}

static void expect_none(void)
{
    pki_portion p;
    assert_false(pki_portions_pop(&portions, &p));
}

/* Whenever a rank has begun, they end with the same steps. */
static void portions_end_with_their_number(void **state)
{
    (void)state;
    pki_portions_expect(&portions, 5);
    for (uint64_t i = 3; i < 14; i++)
        step(i);
    expect_portion(0, 2);
    expect_portion(1, 5);
    expect_none();
    step(14); /* its last */
    expect_portion(2, 5);
}

/* Steps of other kinds only have their numbers. */
static void other_kinds_end_them(void **state)
{
    (void)state;
    pki_portions_expect(&portions, 4);
    step(0);
    step(1);
    for (uint64_t i = 2; i < 9; i++)
        pki_portions_reach(&portions, i);
    expect_portion(0, 2);
    expect_none(); /* of 4 to 7 none is usual */
    step(9);
    step(20); /* some are missing */
    expect_portion(2, 1);
}

static void the_oldest_go(void **state)
{
    (void)state;
    pki_portions_expect(&portions, 1);
    for (uint64_t i = 0; i < PKI_PORTIONS_KEPT + 3; i++)
        step(i);
    for (uint64_t i = 3; i < PKI_PORTIONS_KEPT + 3; i++)
        expect_portion(i, 1);
    expect_none();
}

static void off_nothing_is_kept(void **state)
{
    (void)state;
    step(0);
    expect_none();
    pki_portions_expect(&portions, 1);
    step(1);
    pki_portions_expect(&portions, 1); /* as it was */
    expect_portion(1, 1);
    step(2);
    pki_portions_expect(&portions, 0);
    expect_none();
}

static void stages_keep_their_places(void **state)
{
    pki_portion p;
    (void)state;
    pki_portions_expect(&portions, 2);
    pki_portions_reach(&portions, 0);
    for (uint32_t id = 100; id < 100 + PKI_PORTION_OWN + 3; id++)
        pki_portions_add_self(&portions, id, id % 2 ? PK_WAIT : PK_COMPUTE, id);
    pki_portions_add(&portions, &(pki_stage_block){.steps = 1, .time = 5000});
    pki_portions_reach(&portions, 1);
    pki_portions_add_self(&portions, 101, PK_WAIT, 1);
    pki_portions_add(&portions, &(pki_stage_block){.index = 1, .steps = 1, .time = 1});
    assert_true(pki_portions_pop(&portions, &p));
    assert_int_equal(p.selves[0], 100);
    assert_int_equal(p.selves[1], 102);
    assert_int_equal(p.selves[PKI_PORTION_OWN - 1], 100 + PKI_PORTION_OWN - 1);
    uint64_t own = 0, waits = 0;
    for (uint32_t id = 100 + PKI_PORTION_OWN; id < 100 + PKI_PORTION_OWN + 3; id++)
        *(id % 2 ? &waits : &own) += id;
    assert_int_equal(p.selves[PKI_PORTION_OWN], own);
    assert_int_equal(p.selves[PKI_PORTION_WAITS], waits);
}

/* -- of a session -- */

static pk_region load = PK_REGION_OF(PK_DATA, "load");

static char lines[10][400];
static unsigned line_count;

static void hear(void *user, pk_log_level level, const char *message)
{
    (void)user, (void)level;
    if (line_count < 10 && strstr(message, "ank"))
        snprintf(lines[line_count++], sizeof *lines, "%s", message);
}

static void make_steps(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&load);
        usleep(100);
        pk_region_end(&load);
        pk_step(3);
    }
    assert_int_equal(pk_flush(), PK_OK);
}

static void start(const char *capture)
{
    line_count = 0;
    assert_int_equal(pk_start(pk_options(.backends = "none", .capture = capture, .log = hear,
                                         .capture_path = capture ? "late-%s.json" : NULL)),
                     PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
}

static void steps_are_told_in_portions(void **state)
{
    pk_job_steps_ told;
    (void)state;
    pk_job_steps_expect_(4);
    start(NULL);
    make_steps(10);
    for (uint64_t i = 0; i < 2; i++) {
        assert_true(pk_job_steps_take_(&told));
        assert_int_equal(told.first, 4 * i);
        assert_int_equal(told.steps, 4);
        assert_int_equal(told.items, 12);
        assert_int_equal(told.ended, 0);
        assert_string_equal(told.stages[0].name, "load");
        assert_int_equal(told.stages[0].kind, PK_DATA);
        assert_true(told.stages[0].self >= 400000);
        assert_true(told.time >= told.stages[0].self);
        assert_string_equal(told.stages[1].name, "");
    }
    assert_false(pk_job_steps_take_(&told));
    pk_job_steps_expect_(0);
    make_steps(10);
    assert_false(pk_job_steps_take_(&told));
    assert_int_equal(pk_stop(), PK_OK);
}

/* A portion that begins amid the warm-up is none: its other steps would be told as if it were
 * whole. */
static void warmup_is_not_told(void **state)
{
    pk_job_steps_ told;
    (void)state;
    pk_job_steps_expect_(4);
    assert_int_equal(pk_start(pk_options(.backends = "none", .warmup_steps = 6)), PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
    make_steps(17);
    for (uint64_t first = 8; first < 16; first += 4) {
        assert_true(pk_job_steps_take_(&told));
        assert_int_equal(told.first, first);
        assert_int_equal(told.steps, 4);
    }
    assert_false(pk_job_steps_take_(&told));
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_steps_expect_(0);
}

/* Who does not take them loses some, and nothing else. */
static void nobody_takes_them(void **state)
{
    pk_job_steps_ told;
    (void)state;
    pk_job_steps_expect_(1);
    start(NULL);
    for (int i = 0; i < 8; i++)
        make_steps(10);
    uint64_t count = 0, last = 0;
    while (pk_job_steps_take_(&told)) {
        assert_true(count == 0 || told.first > last);
        last = told.first;
        count++;
    }
    assert_true(count >= 8 && count < 80);
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_steps_expect_(0);
}

static void name(pk_job_word_ *word, int32_t rank)
{
    pk_job_late_ *late = &word->late[word->count++];
    *late = (pk_job_late_){.rank = rank, .ranks = 1, .by = 0.1};
    snprintf(late->host, sizeof late->host, "node%d", rank);
    snprintf(late->text, sizeof late->text, "Rank %d (host node%d) is late.", rank, rank);
}

static void say(const pk_job_word_ *word, int32_t rank)
{
    pk_job_say_(word, rank);
    assert_int_equal(pk_flush(), PK_OK);
}

/* Once each, on rank 0 alone; in the arena for all. */
static void what_is_said(void **state)
{
    pk_job_word_ nobody = {.first = 0, .last = 9}, one = nobody, other = nobody;
    (void)state;
    name(&one, 5);
    name(&other, 6);
    start(NULL);
    const pki_stragglers *seen = &pki_the_session.arena->header->stragglers;
    say(&nobody, 0);
    assert_int_equal(line_count, 0);
    say(&one, 0);
    say(&one, 0);
    assert_int_equal(line_count, 1);
    assert_string_equal(lines[0], "Rank 5 (host node5) is late. (steps 0 to 9)");
    assert_int_equal(seen->count, 1);
    assert_int_equal(seen->last, 9);
    assert_string_equal(seen->words, "Rank 5 (host node5) is late.");
    say(&other, 0);
    assert_int_equal(line_count, 3);
    assert_string_equal(lines[1], "rank 5 is not late any more (steps 0 to 9)");
    say(&nobody, 3);
    say(&one, 3);
    assert_int_equal(line_count, 3);
    say(&nobody, 3);
    assert_int_equal(seen->count, 0);
    assert_string_equal(seen->words, "");
    assert_int_equal(pk_stop(), PK_OK);
}

/* A word with more than have room names those that have. */
static void many_are_late(void **state)
{
    pk_job_word_ many = {.last = 9}, nobody = {.last = 9};
    (void)state;
    for (int32_t rank = 0; rank < PK_JOB_LATE_; rank++)
        name(&many, 100 + rank);
    many.count = 20;
    start(NULL);
    say(&many, 0);
    assert_int_equal(line_count, PK_JOB_LATE_);
    const pki_stragglers *seen = &pki_the_session.arena->header->stragglers;
    assert_int_equal(seen->count, 20);
    assert_non_null(strstr(seen->words, "Rank 107 "));
    say(&nobody, 1);
    assert_int_equal(pk_stop(), PK_OK);
}

/* The one that is late captures itself, when it is named. */
static void who_is_late_is_captured(void **state)
{
    pk_job_word_ nobody = {.last = 9}, one = nobody;
    (void)state;
    name(&one, 5);
    start("straggler");
    make_steps(5);
    say(&one, 4);
    say(&nobody, 4);
    make_steps(40);
    say(&one, 5);
    make_steps(40);
    say(&one, 5);
    say(&nobody, 5);
    assert_int_equal(pk_stop(), PK_OK);
    char *text = NULL;
    for (uint64_t first = 0; !text && first < 60; first++) {
        char path[40];
        snprintf(path, sizeof path, "late-%d.json", (int)first);
        text = exists(path) ? read_file(path, NULL) : NULL;
    }
    assert_int_equal(count_files(), 1);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"reason\":\"straggler\""));
    assert_non_null(strstr(text, "Rank 5 (host node5) is late."));
    free(text);
}

static unsigned rounds;

static void count_round(void)
{
    __atomic_fetch_add(&rounds, 1u, __ATOMIC_RELAXED);
}

static void each_round_it_is_called(void **state)
{
    (void)state;
    pk_job_each_round_(count_round);
    start(NULL);
    while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 2)
        usleep(1000);
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_each_round_(NULL);
}

static const struct CMUnitTest stragglers_tests[] = {
    cmocka_unit_test_setup(portions_end_with_their_number, none),
    cmocka_unit_test_setup(other_kinds_end_them, none),
    cmocka_unit_test_setup(the_oldest_go, none),
    cmocka_unit_test_setup(off_nothing_is_kept, none),
    cmocka_unit_test_setup(stages_keep_their_places, none),
    cmocka_unit_test(steps_are_told_in_portions),
    cmocka_unit_test(warmup_is_not_told),
    cmocka_unit_test(nobody_takes_them),
    cmocka_unit_test(what_is_said),
    cmocka_unit_test(many_are_late),
    cmocka_unit_test_setup_teardown(who_is_late_is_captured, enter_folder, leave_folder),
    cmocka_unit_test(each_round_it_is_called),
};

/* ---- a rank's part of the job's file, and that file ---- */

/* In a file of its own, or in memory until somebody takes it. */

static pk_region work = PK_REGION("work");

#define PART "job.json.ranks/1/1500.rank.json"
#define BEGINS "{\"format\":\"perfkit report\""
#define HEAD "{\"format\":\"perfkit ranks\",\"schema\":1,\"rank\":%d,\"ranks\":%d,\"bytes\":%zu}\n"

static void job_part_start(const char *job, const char *report)
{
    assert_int_equal(pk_start(pk_options(.job_path = job, .report_path = report, .rank = 1500,
                                         .world_size = 2000, .backends = "none")),
                     PK_OK);
    pk_region_begin(&work);
    pk_region_end(&work);
}

static bool take(pk_job_part_ *part)
{
    *part = (pk_job_part_){.size = sizeof *part, .rank = 1500};
    return pk_job_take_(part);
}

static void option(void **state)
{
    static pki_config config;
    (void)state;
    assert_int_equal(
        pki_config_read(&config, pk_options(.job_path = "j-%r.json", .rank = 3, .world_size = 4)),
        PK_OK);
    assert_string_equal(config.job, "j-3.json");
    setenv("PK_JOB_PATH", "from-environment.json", 1);
    assert_int_equal(pki_config_read(&config, NULL), PK_OK);
    assert_string_equal(config.job, "from-environment.json");
    setenv("PK_JOB_PATH", "%x", 1);
    assert_int_equal(pki_config_read(&config, NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_JOB_PATH"));
    setenv("PK_JOB_PATH", "-", 1);
    assert_int_equal(pki_config_read(&config, NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_JOB_PATH"));
    unsetenv("PK_JOB_PATH");
    assert_int_equal(pki_config_read(&config, NULL), PK_OK);
    assert_string_equal(config.job, "");
}

/* Nobody gathers: in the folder of its thousand. */
static void in_a_file(void **state)
{
    pk_job_part_ part;
    (void)state;
    job_part_start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    char *text = read_file(PART, NULL);
    assert_int_equal(strncmp(text, BEGINS, strlen(BEGINS)), 0);
    assert_non_null(strstr(text, "\"work\""));
    free(text);
    assert_false(take(&part));
    assert_int_equal(count_files(), 1);
}

/* The part is what a rank's file of its own has, behind a line that says whose it is. */
static void expect_part(const char *text, size_t bytes, int rank, int ranks)
{
    char head[200];
    char *own = read_file("own.rank.json", NULL);
    int n = snprintf(head, sizeof head, HEAD, rank, ranks, strlen(own));
    assert_int_equal(bytes, (size_t)n + strlen(own));
    assert_memory_equal(text, head, (size_t)n);
    assert_memory_equal(text + n, own, strlen(own));
    free(own);
}

static void in_memory(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(2000);
    job_part_start("job.json", "own.rank.json");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 1);
    assert_true(take(&part));
    assert_string_equal(part.path, "job.json");
    expect_part(part.text, part.bytes, 1500, 2000);
    pk_job_leave_(1);
    assert_false(take(&part));
    assert_int_equal(count_files(), 1);
    pk_job_hold_(0);
}

/* The rank is that of who gathers. */
static void of_another_number(void **state)
{
    pk_job_part_ part = {.size = sizeof part, .rank = 3};
    (void)state;
    pk_job_hold_(4);
    job_part_start("job.json", "own.rank.json");
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(pk_job_take_(&part));
    expect_part(part.text, part.bytes, 3, 4);
    pk_job_leave_(1);
    pk_job_hold_(0);
}

static void not_gathered(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    job_part_start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part));
    assert_int_equal(count_files(), 0);
    pk_job_leave_(0);
    assert_true(exists(PART));
    pk_job_hold_(0);
}

/* While others are waited for it is in its file; then the folders go, too. */
static void saved(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    job_part_start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part));
    pk_job_save_();
    assert_true(exists(PART));
    pk_job_save_();
    pk_job_leave_(1);
    assert_int_equal(count_files(), 0);
    pk_job_hold_(0);
}

/* MPI_Finalize before pk_stop: what there is goes into the job's file, and the end adds nothing. */
static void of_an_open_session(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    job_part_start("job.json", NULL);
    assert_true(take(&part));
    assert_true(part.bytes > 0);
    pk_job_leave_(1);
    pk_job_hold_(0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 0);
}

static void of_an_open_session_not_gathered(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    job_part_start("job.json", NULL);
    assert_true(take(&part));
    pk_job_leave_(0);
    pk_job_hold_(0);
    assert_int_equal(count_files(), 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(exists(PART));
}

/* What nobody has taken when the next session ends. */
static void of_the_session_before(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    job_part_start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    job_part_start("next.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(exists(PART) && !exists("next.json.ranks"));
    assert_true(take(&part));
    assert_string_equal(part.path, "next.json");
    pk_job_leave_(1);
    pk_job_hold_(0);
}

/* A report that is asked for is the rank's own, and nobody else's to write. */
static void own_report(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(2);
    job_part_start(NULL, "report.txt");
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(exists("report.txt"));
    assert_false(take(&part));
    pk_job_hold_(0);
}

/* ---- the job's file ---- */

static void is_written_part_by_part(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(2000);
    job_part_start("job.json", "own.rank.json");
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part));
    assert_int_equal(pk_job_file_begin_(part.path), PK_OK);
    assert_int_equal(pk_job_file_add_(part.text, part.bytes), PK_OK);
    assert_int_equal(pk_job_file_add_(part.text, part.bytes), PK_OK);
    assert_false(exists("job.json"));
    assert_int_equal(pk_job_file_end_(1), PK_OK);
    char *text = read_file("job.json", NULL);
    assert_int_equal(strlen(text), 2 * part.bytes);
    expect_part(text + part.bytes, part.bytes, 1500, 2000);
    free(text);
    assert_int_equal(count_files(), 2);
    assert_int_equal(pk_job_file_begin_(part.path), PK_OK);
    assert_int_equal(pk_job_file_end_(0), PK_OK); /* the one that was there stays */
    assert_int_equal(count_files(), 2);
    pk_job_leave_(1);
    pk_job_hold_(0);
}

/* A rank that has waited has left its part; one that has not, nothing. */
static void of_what_is_left(void **state)
{
    (void)state;
    pk_job_hold_(2000);
    job_part_start("job.json", "own.rank.json");
    assert_int_equal(pk_stop(), PK_OK);
    pk_job_save_();
    assert_int_equal(pk_job_file_begin_("job.json"), PK_OK);
    assert_int_equal(pk_job_file_add_left_(1499), 0);
    assert_int_equal(pk_job_file_add_left_(1500), 1);
    assert_int_equal(pk_job_file_end_(1), PK_OK);
    char *text = read_file("job.json", NULL);
    expect_part(text, strlen(text), 1500, 2000);
    free(text);
    pk_job_leave_(0);
    assert_true(exists(PART));
    pk_job_hold_(0);
}

/* Each rank's is a member, one behind the other. */
static void compressed(void **state)
{
    pk_job_part_ part;
    (void)state;
    if (!pki_gz_available())
        skip();
    pk_job_hold_(2000);
    job_part_start("job.json.gz", "own.rank.json");
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part));
    assert_int_equal(pk_job_file_begin_(part.path), PK_OK);
    assert_int_equal(pk_job_file_add_(part.text, part.bytes), PK_OK);
    assert_int_equal(pk_job_file_add_(part.text, part.bytes), PK_OK);
    assert_int_equal(pk_job_file_end_(1), PK_OK);
    assert_int_equal(system("gzip -dc job.json.gz > plain"), 0);
    char *text = read_file("plain", NULL);
    expect_part(text + strlen(text) / 2, strlen(text) / 2, 1500, 2000);
    free(text);
    pk_job_leave_(1);
    pk_job_hold_(0);
}

static void no_folder(void **state)
{
    (void)state;
    job_part_start("missing/job.json", NULL);
    assert_int_equal(pk_stop(), PK_ENOENT);
    assert_non_null(strstr(pk_error_message(), "missing/job.json.ranks"));
    assert_int_equal(pk_job_file_begin_("missing/job.json"), PK_ENOENT);
    assert_int_equal(pk_job_file_add_("text", 4), PK_ENOENT);
    assert_int_equal(pk_job_file_end_(1), PK_ENOENT);
    assert_int_equal(count_files(), 0);
}

static const struct CMUnitTest job_part_tests[] = {
    in_folder(option),
    in_folder(in_a_file),
    in_folder(in_memory),
    in_folder(of_another_number),
    in_folder(not_gathered),
    in_folder(saved),
    in_folder(of_an_open_session),
    in_folder(of_an_open_session_not_gathered),
    in_folder(of_the_session_before),
    in_folder(own_report),
    in_folder(is_written_part_by_part),
    in_folder(of_what_is_left),
    in_folder(compressed),
    in_folder(no_folder),
};

int main(void)
{
    int failed = run_launchers();
    failed += cmocka_run_group_tests(stragglers_tests, NULL, NULL);
    failed += cmocka_run_group_tests(job_part_tests, NULL, NULL);
    return failed;
}
