/* What a job's wall time was good for. */
#include "folder.h"
#include "valgrind.h"

#include <pk/goodput.h>
#include <pk/pk.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "measure/goodput/goodput.h"
#include "session/session.h"

/* ---- a state file's text, added up ---- */

/* a state file's text, added up. */

#define MS 1000000u

static uint64_t sum_of(const uint64_t parts[PKI_PARTS])
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PKI_PARTS; i++)
        sum += parts[i];
    return sum;
}

/* Whatever is in it. */
static pki_life_sum life_of(const char *text, size_t n)
{
    pki_life *life = pki_life_begin();
    for (const char *at = text, *end = text + n, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        pki_life_add(life, at, (size_t)(stop - at));
    }
    pki_life_sum s = pki_life_end(life);
    assert_int_equal(s.wall, s.down + sum_of(s.parts));
    return s;
}

/* ---- what a job's wall time was good for ---- */

/* The account of a run, the lines of its state file, and how runs add up. */

/* -- the account -- */

static void step(pki_account *a, uint64_t index, uint64_t start, uint64_t end, uint64_t data,
                 const char *kind)
{
    const pki_account_step s = {index, start * MS, (end - start) * MS, data * MS, kind, false};
    pki_account_add(a, &s);
}

static void between(pki_account *a, uint64_t start, uint64_t end)
{
    const pki_account_step s = {0, start * MS, (end - start) * MS, 0, NULL, true};
    pki_account_add(a, &s);
}

static void expect(const pki_account *a, uint64_t now, bool last, const uint64_t wanted[PKI_PARTS])
{
    uint64_t parts[PKI_PARTS];
    pki_account_parts(a, now * MS, last, parts);
    for (size_t i = 0; i < PKI_PARTS; i++)
        if (parts[i] != wanted[i] * MS)
            fail_msg("%s: %llu us, not %llu", pki_part_names[i],
                     (unsigned long long)parts[i] / 1000, (unsigned long long)wanted[i] * 1000);
    assert_int_equal(sum_of(parts), now * MS + a->before);
}

#define PARTS(...) ((const uint64_t[PKI_PARTS]){__VA_ARGS__})

static void each_moment_is_in_one_part(void **state)
{
    static pki_account a;
    (void)state;
    pki_account_begin(&a, 20 * MS, -1);
    expect(&a, 0, false, PARTS([PKI_PART_STARTUP] = 20));
    expect(&a, 30, false, PARTS([PKI_PART_STARTUP] = 50));
    step(&a, 0, 0, 100, 0, NULL); /* 100 ms, of which a usual step is 10 */
    expect(&a, 100, false, PARTS([PKI_PART_STARTUP] = 120));
    step(&a, 1, 100, 110, 3, NULL);
    expect(&a, 115, false,
           PARTS([PKI_PART_STARTUP] = 110, [PKI_PART_PRODUCTIVE] = 17, [PKI_PART_DATA] = 3,
                 [PKI_PART_UNFINISHED] = 5));
    step(&a, 2, 110, 140, 0, "evaluation");
    between(&a, 140, 145);
    expect(&a, 150, true,
           PARTS([PKI_PART_STARTUP] = 110, [PKI_PART_PRODUCTIVE] = 17, [PKI_PART_DATA] = 3,
                 [PKI_PART_EVALUATION] = 30, [PKI_PART_OTHER] = 10));
    assert_int_equal(a.steps, 2);
    assert_int_equal(a.at, -1);
}

static void phases_and_hangs_are_taken_out(void **state)
{
    static pki_account a;
    (void)state;
    pki_account_begin(&a, 0, -1);
    between(&a, 0, 10); /* pk_step_begin */
    pki_account_phase(&a, 15 * MS, PKI_PART_CHECKPOINT);
    step(&a, 0, 10, 20, 9, NULL); /* the phase goes on */
    expect(&a, 22, false,
           PARTS([PKI_PART_STARTUP] = 10, [PKI_PART_DATA] = 5, [PKI_PART_CHECKPOINT] = 7));
    pki_account_phase(&a, 0, 0);
    pki_account_span_add(&a, 15 * MS, 25 * MS, PKI_PART_CHECKPOINT);
    pki_account_span_add(&a, 30 * MS, 40 * MS, PKI_PART_COMPILE);
    pki_account_hang(&a, 35 * MS);
    expect(&a, 45, false,
           PARTS([PKI_PART_STARTUP] = 10, [PKI_PART_DATA] = 5, [PKI_PART_CHECKPOINT] = 10,
                 [PKI_PART_COMPILE] = 5, [PKI_PART_HANG] = 10, [PKI_PART_UNFINISHED] = 5));
    step(&a, 1, 20, 50, 0, NULL); /* it was the hang's end */
    expect(&a, 60, false,
           PARTS([PKI_PART_STARTUP] = 10, [PKI_PART_DATA] = 5, [PKI_PART_PRODUCTIVE] = 5,
                 [PKI_PART_CHECKPOINT] = 10, [PKI_PART_COMPILE] = 5, [PKI_PART_HANG] = 15,
                 [PKI_PART_UNFINISHED] = 10));
    pki_account_hang(&a, 52 * MS);
    pki_account_hang_over(&a, 54 * MS); /* without a step's end */
    expect(&a, 60, false,
           PARTS([PKI_PART_STARTUP] = 10, [PKI_PART_DATA] = 5, [PKI_PART_PRODUCTIVE] = 5,
                 [PKI_PART_CHECKPOINT] = 10, [PKI_PART_COMPILE] = 5, [PKI_PART_HANG] = 17,
                 [PKI_PART_UNFINISHED] = 8));
}

static void steps_made_before_are_recomputed(void **state)
{
    static pki_account a;
    (void)state;
    pki_account_begin(&a, 0, 12);
    between(&a, 0, 10);
    pki_account_at(&a, 10, 0); /* the checkpoint's; 11 and 12 are lost */
    for (uint64_t i = 0; i < 4; i++)
        step(&a, i, 10 + 10 * i, 20 + 10 * i, 2, NULL);
    expect(&a, 50, true,
           PARTS([PKI_PART_STARTUP] = 10, [PKI_PART_RECOMPUTED] = 20, [PKI_PART_PRODUCTIVE] = 16,
                 [PKI_PART_DATA] = 4));
    assert_int_equal(a.at, 14);
    assert_int_equal(a.recomputed, 2);
    pki_account_at(&a, 5, 5); /* back, from the step after the next one on */
    step(&a, 4, 50, 60, 0, NULL);
    assert_int_equal(a.at, 15);
    step(&a, 5, 60, 70, 0, NULL);
    assert_int_equal(a.at, 6);
}

static void more_phases_than_there_is_room_for(void **state)
{
    static pki_account a;
    uint64_t parts[PKI_PARTS];
    (void)state;
    pki_account_begin(&a, 0, -1);
    for (uint64_t i = 0; i < 1000; i++)
        pki_account_span_add(&a, i * MS, (i + 1) * MS, PKI_PART_CHECKPOINT);
    pki_account_span_add(&a, 0, 900 * MS, PKI_PART_HANG);
    step(&a, 0, 0, 2000, 0, NULL);
    pki_account_parts(&a, 2000 * (uint64_t)MS, true, parts);
    assert_int_equal(sum_of(parts), 2000 * (uint64_t)MS);
}

/* -- lines and lives -- */

static pki_life_line line_of(uint64_t run, uint64_t n, uint64_t boot_ms, uint64_t up_ms)
{
    pki_life_line l = {.run = run, .n = n, .why = PKI_LIFE_BEAT, .boot = 7};
    l.boot_ns = boot_ms * MS;
    l.unix_ns = 1700000000000000000u + l.boot_ns;
    l.up = up_ms * MS;
    l.beat = 200 * MS;
    l.at = l.furthest = (int64_t)(up_ms / 10);
    l.steps = up_ms / 10;
    l.saved = -1;
    l.parts[PKI_PART_PRODUCTIVE] = l.up / 2;
    l.parts[PKI_PART_STARTUP] = l.up - l.up / 2;
    return l;
}

static void a_line_says_it_all(void **state)
{
    char text[PKI_LIFE_LINE];
    pki_life_line l = line_of(UINT64_MAX, 3, 1000, 500), got;
    (void)state;
    l.at = -1;
    l.why = PKI_LIFE_END;
    for (size_t i = 0; i < PKI_PARTS; i++)
        l.parts[i] = UINT64_MAX - i; /* the longest there is */
    size_t n = pki_life_put(&l, text);
    assert_true(n < PKI_LIFE_LINE - 1 && text[n - 1] == '\n');
    assert_false(pki_life_read(text, n - 1, &got)); /* whole, and not so */
    for (size_t i = 0; i < PKI_PARTS; i++)
        l.parts[i] = l.up - i;
    n = pki_life_put(&l, text);
    assert_true(pki_life_read(text, n - 1, &got));
    assert_memory_equal(&got, &l, sizeof l);
    for (size_t i = 0; i < n - 1; i++) {
        assert_false(pki_life_read(text, i, &got));
        text[i] ^= 1;
        assert_false(pki_life_read(text, n - 1, &got));
        text[i] ^= 1;
    }
}

typedef struct lines {
    size_t used;
    char text[64 * PKI_LIFE_LINE];
} lines;

static void put(lines *to, pki_life_line l)
{
    to->used += pki_life_put(&l, to->text + to->used);
}

static lines f;

static void runs_add_up(void **state)
{
    (void)state;
    f.used = 0;
    put(&f, line_of(1, 0, 1000, 0));
    put(&f, line_of(1, 1, 1400, 400));
    put(&f, line_of(2, 0, 2000, 100)); /* began at 1900 */
    pki_life_line last = line_of(2, 9, 2500, 600);
    last.why = PKI_LIFE_END;
    put(&f, last);
    pki_life_sum s = life_of(f.text, f.used);
    assert_int_equal(s.runs, 2);
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.wall, 1500 * (uint64_t)MS);
    assert_int_equal(s.down, 500 * MS);
    assert_int_equal(s.doubt, 200 * MS);
    assert_int_equal(s.parts[PKI_PART_PRODUCTIVE], 500 * MS);
    assert_int_equal(s.furthest, 60);
    assert_int_equal(s.steps, 100);
    assert_true(s.at_known && s.goodput > 0.333 && s.goodput < 0.334);
}

/* Wherever a kill cuts the file, what is left adds up, and says no more than the whole. */
static void cut_at_every_byte(void **state)
{
    (void)state;
    f.used = 0;
    for (uint64_t i = 0; i < 5; i++)
        put(&f, line_of(1 + i / 3, i % 3, 1000 + 100 * i, 50 + 100 * (i % 3)));
    uint64_t whole = life_of(f.text, f.used).wall, before = 0;
    for (size_t n = 0; n <= f.used; n++) {
        pki_life_sum s = life_of(f.text, n);
        assert_true(s.wall >= before && s.wall <= whole);
        assert_true(s.damaged <= 1);
        before = s.wall;
    }
    assert_int_equal(before, whole);
}

static void clocks_that_are_set(void **state)
{
    (void)state;
    f.used = 0;
    put(&f, line_of(1, 0, 1000, 1000));
    pki_life_line next = line_of(2, 0, 3000, 500);
    next.unix_ns = 1; /* set back by decades; the machine has not been started since */
    put(&f, next);
    pki_life_sum s = life_of(f.text, f.used);
    assert_int_equal(s.down, 1500 * (uint64_t)MS);
    assert_int_equal(s.clock_set, 0);
    next.run = 3;
    next.boot = 8; /* it has: nothing but the calendar is left */
    put(&f, next);
    next.run = 4;
    next.unix_ns = line_of(0, 0, 0, 0).unix_ns;
    put(&f, next);
    next.run = 5;
    next.boot = 9;
    next.unix_ns -= 3600 * (uint64_t)1000 * MS;
    put(&f, next);
    s = life_of(f.text, f.used);
    assert_int_equal(s.runs, 5);
    assert_int_equal(s.clock_set, 2); /* ahead by decades, and back by an hour */
    assert_int_equal(s.down, 1500 * (uint64_t)MS);
    next.run = 6;
    next.unix_ns += 2000 * (uint64_t)MS;
    put(&f, next);
    next.run = 7;
    next.boot_ns += 10000 * (uint64_t)MS;
    put(&f, next);
    s = life_of(f.text, f.used);
    assert_int_equal(s.clock_set, 2); /* what comes behind them goes by their clock */
    assert_int_equal(s.down, (1500 + 9500) * (uint64_t)MS);
}

/* A line that is whole and says what cannot be is left out; those before and behind it stand. */
static void a_line_that_cannot_be(void **state)
{
    pki_life_line bad[5];
    (void)state;
    for (int i = 0; i < 5; i++)
        bad[i] = line_of(2, 5, 2000, 500);
    bad[0].up = UINT64_MAX - 5;
    bad[1].unix_ns = UINT64_MAX / 4 * 3;
    bad[2].boot_ns = (uint64_t)1 << 62;
    bad[3].beat = UINT64_MAX;
    bad[4].parts[PKI_PART_HANG] = UINT64_MAX / 2;
    for (int i = 0; i < 5; i++) {
        f.used = 0;
        put(&f, line_of(1, 0, 1000, 500));
        put(&f, line_of(2, 4, 2000, 400));
        put(&f, bad[i]);
        put(&f, line_of(3, 0, 3000, 100));
        pki_life_sum s = life_of(f.text, f.used);
        assert_int_equal(s.runs, 3);
        assert_int_equal(s.damaged, 1);
        assert_int_equal(s.wall, 2500 * (uint64_t)MS);
    }
}

/* Steps that no line has: as many as the time without a line holds of the known ones. */
static void steps_in_doubt(void **state)
{
    (void)state;
    f.used = 0;
    put(&f, line_of(1, 0, 1000, 1000)); /* 100 steps in 500 ms; then a gap of 900 */
    put(&f, line_of(2, 0, 2000, 100));
    put(&f, line_of(2, 1, 2900, 1000)); /* 100 more, and no word since */
    pki_life_sum s = life_of(f.text, f.used);
    assert_int_equal(s.steps, 200);
    assert_int_equal(s.doubt, 200 * MS);
    assert_int_equal(s.doubt_steps, 40);
    assert_int_equal(s.last_doubt_steps, 40);
    pki_life_line end = line_of(2, 2, 2900, 1000);
    end.why = PKI_LIFE_END;
    put(&f, end);
    s = life_of(f.text, f.used);
    assert_int_equal(s.doubt_steps, 40);
    assert_int_equal(s.last_doubt_steps, 0);
}

/* Copies of a program on a file system without locks; a machine that sleeps. */
static void runs_beside_each_other(void **state)
{
    (void)state;
    f.used = 0;
    put(&f, line_of(1, 0, 1000, 1000));
    put(&f, line_of(2, 0, 1000, 800));
    put(&f, line_of(1, 1, 2000, 2000));
    put(&f, line_of(2, 1, 7000, 1800)); /* 5 s asleep */
    pki_life_sum s = life_of(f.text, f.used);
    assert_int_equal(s.runs, 2);
    assert_int_equal(s.overlaps, 1);
    assert_int_equal(s.overlap, 1800 * (uint64_t)MS);
    assert_int_equal(s.down, 5000 * (uint64_t)MS);
    assert_int_equal(s.wall, (2000 + 1800 + 5000) * (uint64_t)MS);
}

/* One that begins later and ends earlier: what comes behind both counts from the later end. */
static void runs_within_another(void **state)
{
    (void)state;
    f.used = 0;
    put(&f, line_of(1, 0, 1000, 1000));
    put(&f, line_of(2, 0, 3000, 1000));
    put(&f, line_of(2, 1, 4000, 2000));
    put(&f, line_of(1, 1, 9000, 9000));
    put(&f, line_of(3, 0, 10500, 500));
    pki_life_sum s = life_of(f.text, f.used);
    assert_int_equal(s.overlaps, 1);
    assert_int_equal(s.overlap, 2000 * (uint64_t)MS);
    assert_int_equal(s.down, 1000 * (uint64_t)MS);
    assert_int_equal(s.last_unix, line_of(3, 0, 10500, 500).unix_ns);
}

static const struct CMUnitTest goodput_tests[] = {
    cmocka_unit_test(each_moment_is_in_one_part),
    cmocka_unit_test(phases_and_hangs_are_taken_out),
    cmocka_unit_test(steps_made_before_are_recomputed),
    cmocka_unit_test(more_phases_than_there_is_room_for),
    cmocka_unit_test(a_line_says_it_all),
    cmocka_unit_test(runs_add_up),
    cmocka_unit_test(cut_at_every_byte),
    cmocka_unit_test(clocks_that_are_set),
    cmocka_unit_test(a_line_that_cannot_be),
    cmocka_unit_test(steps_in_doubt),
    cmocka_unit_test(runs_beside_each_other),
    cmocka_unit_test(runs_within_another),
};

/* ---- the state file that sessions write ---- */

/* Kills, restarts, full disks, other files, two writers. */

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
    pk_training_set_step(from);
    pk_step_begin();
    for (unsigned i = 0; i < steps; i++) {
        {
            PK_REGION_SCOPE(load);
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

/* What a child that is killed has done, from its start to its last step. */
static void live(_Atomic uint64_t *lived)
{
    uint64_t before = pki_monotonic_ns();
    if (pk_start(pk_options(.goodput_path = PATH, .backends = "none")) != PK_OK)
        _exit(1);
    for (uint64_t step = 0;; step++) {
        train(step, 1);
        *lived = pki_monotonic_ns() - before;
    }
}

/* Runs of a moment: killed at any time they have told of nearly all that they did. How long they
 * take to begin is the machine's. */
static void short_runs_are_known(void **state)
{
    enum { RUNS = 8, RUN_MS = 400 };
    uint64_t known = 0, all = 0;
    _Atomic uint64_t *lived =
        mmap(NULL, sizeof *lived, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(lived != MAP_FAILED);
    for (uint64_t i = 0; i < RUNS; i++) {
        pid_t child = fork();
        if (child == 0)
            live(lived);
        while (access(PATH, F_OK) != 0 || life_of_file().runs <= i) {
            assert_int_equal(waitpid(child, NULL, WNOHANG), 0);
            work(5);
        }
        work(RUN_MS);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        all += *lived;
    }
    munmap((void *)lived, sizeof *lived);
    pki_life_sum s = life_of_file();
    assert_int_equal(s.runs, RUNS);
    assert_int_equal(s.ended, 0);
    known = s.wall - s.down;
    print_message("%g of %g ms are known, %llu steps, %llu more may be\n", (double)known / MS,
                  (double)all / MS, (unsigned long long)s.steps,
                  (unsigned long long)(s.doubt_steps + s.last_doubt_steps));
    assert_true(known >= all * 8 / 10);
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
        pk_start(pk_options(.goodput_path = PATH, .backends = "none", .tuning = "arena_path=none")),
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
        pk_start(pk_options(.goodput_path = PATH, .backends = "none", .tuning = "arena_path=none")),
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

static const struct CMUnitTest goodput_file_tests[] = {
    in_folder(kills_and_restarts),
    in_folder(what_is_torn_stays_behind),
    in_folder(zeros_are_no_lines),
    in_folder(short_runs_are_known),
    in_folder(another_kind_of_file_is_left_alone),
    in_folder(a_full_disk_costs_lines_only),
    in_folder(a_disk_that_stays_full_is_told),
    in_folder(metrics_without_a_place_are_told),
    in_folder(one_writer_at_a_time),
    in_folder(who_writes),
};

static int run_goodput_file(void)
{
    /* How soon something is written is told by the clock, and valgrind's is fifty times as slow. */
    if (getenv("PK_TEST_QEMU") || under_valgrind())
        return 0;
    return cmocka_run_group_tests(goodput_file_tests, NULL, NULL);
}

int main(void)
{
    int failed = cmocka_run_group_tests(goodput_tests, NULL, NULL);
    failed += run_goodput_file();
    return failed;
}
