/* The state file that sessions write: kills, restarts, full disks, other files, two writers. */
#include "life.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <pk/pk.h>

#include "session/session.h"

#define PATH "job.goodput"

static pki_life_sum life_of_file(void)
{
    size_t n;
    char *text = read_file(PATH, &n);
    pki_life_sum s = life_of(text, n);
    free(text);
    return s;
}

static void work(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * MS}, NULL);
}

static void train(uint64_t from, unsigned steps)
{
    static pk_region load = PK_REGION_OF(PK_DATA, "load");
    pk_training_at(from);
    pk_step_begin();
    for (unsigned i = 0; i < steps; i++) {
        PK_SCOPE(load) {
            work(1);
        }
        work(2);
        pk_step(1);
    }
}

static void save(uint64_t at)
{
    pk_phase_begin(PK_PHASE_CHECKPOINT);
    work(5);
    pk_phase_end(PK_PHASE_CHECKPOINT);
    pk_checkpoint_done(at, 1000);
}

/* Until the file says so. */
static void wait_for_furthest(int64_t furthest)
{
    while (life_of_file().furthest < furthest)
        work(5);
}

/* A run that is killed once the file knows of its last step. */
static void run_and_kill(uint64_t from, unsigned steps, bool die)
{
    pid_t child = fork();
    if (child == 0) {
        if (pk_start(pk_options(.goodput_path = PATH, .backends = "none")) != PK_OK)
            _exit(1);
        train(from, steps);
        save(from + steps - 2);
        wait_for_furthest((int64_t)(from + steps));
        while (life_of_file().saved != (int64_t)(from + steps - 2))
            work(5);
        if (die)
            raise(SIGKILL);
        _exit(pk_stop() == PK_OK ? 0 : 1);
    }
    int status;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(die ? WIFSIGNALED(status) : status == 0);
}

static void kills_and_restarts(void **state)
{
    struct timespec t0, t1;
    (void)state;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    run_and_kill(0, 10, true);
    run_and_kill(8, 10, true);
    run_and_kill(16, 4, false);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    pki_life_sum s = life_of_file();
    uint64_t passed = (uint64_t)(t1.tv_sec - t0.tv_sec) * 1000000000 + (uint64_t)t1.tv_nsec -
                      (uint64_t)t0.tv_nsec;
    assert_int_equal(s.runs, 3);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.damaged, 0);
    assert_true(s.wall <= passed + 60 * MS); /* each start is known to 10 ms, and may be early */
    assert_int_equal(s.steps, 24);
    assert_int_equal(s.recomputed, 4);
    assert_int_equal(s.furthest, 20);
    assert_true(s.at_known);
    assert_int_equal(s.saves, 3);
    assert_int_equal(s.save_bytes, 3000);
    assert_int_equal(s.saved, 18);
    assert_true(s.parts[PKI_PART_CHECKPOINT] >= 15 * MS);
    assert_true(s.parts[PKI_PART_DATA] >= 20 * MS);
    assert_true(s.parts[PKI_PART_RECOMPUTED] >= 12 * MS);
    assert_true(s.parts[PKI_PART_PRODUCTIVE] >= 40 * MS);
}

static void what_is_torn_stays_behind(void **state)
{
    FILE *file;
    (void)state;
    run_and_kill(0, 3, true);
    assert_non_null(file = fopen(PATH, "a"));
    fputs(PKI_LIFE_MAGIC "why=beat run=1 n", file);
    fclose(file);
    run_and_kill(3, 3, false);
    pki_life_sum s = life_of_file();
    assert_int_equal(s.runs, 2);
    assert_int_equal(s.damaged, 1);
    assert_int_equal(s.furthest, 6);
    assert_int_equal(s.recomputed, 0);
}

/* A machine without power has left zeros where lines were to come: behind them, or, of a short
 * file, in their place. */
static void zeros_are_no_lines(void **state)
{
    enum { ZEROS = 200000 };
    size_t n;
    (void)state;
    run_and_kill(0, 3, true);
    free(read_file(PATH, &n));
    assert_int_equal(truncate(PATH, (off_t)n + ZEROS), 0);
    run_and_kill(2, 3, false);
    pki_life_sum s = life_of_file();
    assert_int_equal(s.runs, 2);
    assert_int_equal(s.steps, 6);
    assert_int_equal(s.recomputed, 1); /* it has found how far the first run had come */
    assert_int_equal(truncate(PATH, 0), 0);
    assert_int_equal(truncate(PATH, 600), 0);
    run_and_kill(0, 3, false);
    s = life_of_file();
    assert_int_equal(s.runs, 1);
    assert_int_equal(s.damaged, 0);
}

/* Runs of a moment: killed at any time they have told of nearly all that they did. */
static void short_runs_are_known(void **state)
{
    enum { RUNS = 8, RUN_MS = 400 };
    uint64_t known = 0;
    (void)state;
    for (int i = 0; i < RUNS; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (pk_start(pk_options(.goodput_path = PATH, .backends = "none")) == PK_OK)
                for (;;)
                    train(0, 1000);
            _exit(1);
        }
        work(RUN_MS);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    pki_life_sum s = life_of_file();
    assert_int_equal(s.runs, RUNS);
    assert_int_equal(s.ended, 0);
    known = s.wall - s.down;
    print_message("%g of %d ms are known, %llu steps, %llu more may be\n", (double)known / MS,
                  RUNS * RUN_MS, (unsigned long long)s.steps,
                  (unsigned long long)(s.doubt_steps + s.last_doubt_steps));
    assert_true(known >= (uint64_t)RUNS * RUN_MS * MS * 8 / 10);
    assert_true(s.doubt_steps > 0 && s.last_doubt_steps > 0);
}

static void another_kind_of_file_is_left_alone(void **state)
{
    size_t n;
    (void)state;
    write_file(PATH, "dear diary\n");
    assert_int_equal(pk_start(pk_options(.goodput_path = PATH, .backends = "none")), PK_EINVAL);
    char *text = read_file(PATH, &n);
    assert_string_equal(text, "dear diary\n");
    free(text);
    assert_int_equal(symlink(PATH, "link"), 0);
    assert_int_equal(pk_start(pk_options(.goodput_path = "link", .backends = "none")), PK_EACCES);
    assert_int_equal(pk_start(pk_options(.goodput_path = "no/such", .backends = "none")),
                     PK_ENOENT);
}

/* What one line has lost the next one has. */
static void a_full_disk_costs_lines_only(void **state)
{
    struct rlimit was, small;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(
        pk_start(pk_options(.goodput_path = PATH, .arena_path = "none", .backends = "none")),
        PK_OK);
    size_t n;
    free(read_file(PATH, &n));
    small = (struct rlimit){n + 100, was.rlim_max};
    pthread_mutex_lock(
        &pki_drain_lock); /* between a look at the limit and the write a line is torn */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pthread_mutex_unlock(&pki_drain_lock);
    train(0, 5);
    save(5);
    work(300); /* lines are tried, and none kills the program by SIGXFSZ */
    free(read_file(PATH, &n));
    assert_true(n <= small.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(pk_stop(), PK_OK);
    pki_life_sum s = life_of_file();
    assert_int_equal(s.runs, 1);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.damaged, 0);
    assert_int_equal(s.steps, 5);
    assert_int_equal(s.saves, 1);
}

/* And no next one is to come. */
static void a_disk_that_stays_full_is_told(void **state)
{
    struct rlimit was;
    size_t n;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(
        pk_start(pk_options(.goodput_path = PATH, .arena_path = "none", .backends = "none")),
        PK_OK);
    pthread_mutex_lock(&pki_drain_lock);
    free(read_file(PATH, &n));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){n + 100, was.rlim_max}), 0);
    pthread_mutex_unlock(&pki_drain_lock);
    train(0, 5);
    pk_status status = pk_stop();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_true(status != PK_OK);
    assert_non_null(strstr(pk_error_message(), "goodput " PATH));
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK); /* the next session knows nothing of it */
}

/* The same of the metrics. */
static void metrics_without_a_place_are_told(void **state)
{
    (void)state;
    assert_int_equal(mkdir("gone", 0700), 0);
    assert_int_equal(pk_start(pk_options(.metrics_path = "gone/m.prom", .backends = "none")),
                     PK_OK);
    assert_int_equal(unlink("gone/m.prom"), 0);
    assert_int_equal(rmdir("gone"), 0);
    assert_int_equal(pk_stop(), PK_ENOENT);
    assert_non_null(strstr(pk_error_message(), "gone/m.prom"));
}

/* Two processes: the second one's run begins when the first one's has ended. */
static void one_writer_at_a_time(void **state)
{
    int go[2];
    char c = 0;
    (void)state;
#ifdef __SANITIZE_THREAD__
    return; /* it does not follow threads that a fork's child starts */
#endif
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pk_start(pk_options(.goodput_path = PATH, .backends = "none")), PK_OK);
    pid_t child = fork();
    if (child == 0) {
        if (pk_start(pk_options(.goodput_path = PATH, .backends = "none")) != PK_OK)
            _exit(1);
        (void)!write(go[1], "", 1);
        wait_for_furthest(3); /* the parent's last line */
        train(3, 4);
        wait_for_furthest(7); /* it has the file */
        _exit(pk_stop() == PK_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(read(go[0], &c, 1), 1);
    train(0, 3);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pki_life_sum s = life_of_file();
    assert_int_equal(s.runs, 2);
    assert_int_equal(s.ended, 2);
    assert_int_equal(s.overlaps, 0);
    assert_int_equal(s.furthest, 7);
    close(go[0]);
    close(go[1]);
}

/* Ranks other than the first leave a file without %r alone; phases without a file cost nobody
 * anything, and are refused before a session. */
static void who_writes(void **state)
{
    (void)state;
    pk_phase_begin(PK_PHASE_CHECKPOINT);
    pk_options *o =
        pk_options(.goodput_path = PATH, .backends = "none", .rank = 1, .world_size = 2);
    assert_int_equal(pk_start(o), PK_OK);
    train(0, 2);
    assert_int_equal(pk_stop(), PK_OK);
    assert_false(exists(PATH));
    o->goodput_path = "job-%r.goodput";
    assert_int_equal(pk_start(o), PK_OK);
    pk_phase_begin((pk_phase)77);
    pk_phase_end(PK_PHASE_EVALUATION);
    for (int i = 0; i < 20; i++)
        pk_phase_begin(PK_PHASE_COMPILE);
    pk_phase_begin(PK_PHASE_EVALUATION);
    for (int i = 0; i < 20; i++)
        pk_phase_end(PK_PHASE_COMPILE);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(exists("job-1.goodput"));
}

int main(void)
{
    if (getenv("PK_TEST_QEMU")) {
        printf("qemu loses threads that a fork's child starts\n");
        return 77;
    }
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(kills_and_restarts),
        IN_FOLDER(what_is_torn_stays_behind),
        IN_FOLDER(zeros_are_no_lines),
        IN_FOLDER(short_runs_are_known),
        IN_FOLDER(another_kind_of_file_is_left_alone),
        IN_FOLDER(a_full_disk_costs_lines_only),
        IN_FOLDER(a_disk_that_stays_full_is_told),
        IN_FOLDER(metrics_without_a_place_are_told),
        IN_FOLDER(one_writer_at_a_time),
        IN_FOLDER(who_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
