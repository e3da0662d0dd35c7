/* The live commands: what is read of processes from outside, where they stand, and TARGETs of the
 * commands. */
#include <pk/pk.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../kit/rounds.h"
#include "live/live.h"
#include "../kit/tuning.h"

/* ---- what is read of a process from outside, against what its session says itself ---- */

/* While windows take the extremes of each part of the run away (stats/slot.h), too. */

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");

typedef struct figures {
    uint64_t count, sum, min, max, self, p50, p99;
} figures;

static figures of(const pk_stats *s)
{
    return (figures){s->count,
                     s->sum,
                     s->min,
                     s->max,
                     s->self,
                     pk_stats_quantile(s, 0.5),
                     pk_stats_quantile(s, 0.99)};
}

/* The longest call is in the first window, and each step is one. */
static int record(int to)
{
    static pk_stats stats;
    if (pk_start(
            pk_options(.backends = "none", .windows_path = "w.jsonl", .tuning = "window_steps=1")))
        return 1;
    for (int i = 0; i < 40; i++) {
        pk_region_begin(&work);
        usleep(i == 0 ? 5000 : 100);
        pk_region_end(&work);
        pk_step(1);
        pk_flush();
    }
    stats.size = sizeof stats;
    if (pk_region_stats(&work, &stats))
        return 1;
    figures f = of(&stats);
    if (write(to, &f, sizeof f) != sizeof f)
        return 1;
    alarm(60);
    pause();
    return 1;
}

static const live_calls *find(const snapshot *s)
{
    for (size_t i = 0; i < s->call_count; i++)
        if (strcmp(live_name_of(&s->names, s->calls[i].id)->text, "work") == 0)
            return &s->calls[i];
    return NULL;
}

static void compare(target *t, const figures *its)
{
    static pk_stats stats;
    snapshot s = {0};
    assert_true(snapshot_take(&s, t));
    const live_calls *row = find(&s);
    assert_non_null(row);
    assert_true(snapshot_stats(t, row, &stats));
    figures seen = of(&stats);
    assert_memory_equal(&seen, its, sizeof seen);
    assert_true(row->count == its->count && row->sum == its->sum && row->self == its->self);
    assert_true(row->min == its->min && row->max == its->max);
    snapshot_finish(&s);
}

static void as_the_session_has_it(void **state)
{
    char name[32], folder[] = "/tmp/pk-live-XXXXXX";
    targets t;
    complaint why = {""};
    figures its;
    int ready[2];
    (void)state;
    assert_true(mkdtemp(folder) && chdir(folder) == 0 && pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(record(ready[1]));
    close(ready[1]);
    assert_int_equal(read(ready[0], &its, sizeof its), sizeof its);
    snprintf(name, sizeof name, "%d", (int)pid);
    assert_true(targets_open(&t, (char *[]){name}, 1, &why));
    compare(&t.all[0], &its);
    assert_int_equal(its.count, 40);
    assert_true(its.max >= 5000000);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    targets_close(&t);
    close(ready[0]);
    unlink("w.jsonl");
    assert_true(chdir("/") == 0 && rmdir(folder) == 0);
}

static const struct CMUnitTest live_figures_tests[] = {cmocka_unit_test(as_the_session_has_it)};

/* ---- where processes stand ---- */

/* Read while they move as fast as they can; and who is behind whom, from what was read. */

/* -- a process that moves -- */

static pk_region a = PK_REGION("a"), b = PK_REGION("b"),
                 live_snapshot_c = PK_REGION_OF(PK_COMPUTE, "c");

/* Regions of a few nanoseconds, in a ring that is full all the time; new names now and then. */
static void *move(void *unused)
{
    for (int64_t i = 0;; i++) {
        pk_region_begin(&a);
        pk_region_begin(&b);
        for (int k = 0; k < 500; k++) {
            pk_region_begin(&live_snapshot_c);
            pk_region_end(&live_snapshot_c);
        }
        pk_region_end(&b);
        pk_region_end(&a);
        if (i % 64 == 0 && i < 64000)
            pk_region_mark(pk_region_variant(&live_snapshot_c, "i", i));
        pk_step(1);
    }
    return unused;
}

static pid_t start_moving(void)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        alarm(240);
        if (pk_start(pk_options(.backends = "none", .tuning = "ring_records=64")) != PK_OK ||
            pthread_create(&thread, NULL, move, NULL) != 0 || write(ready[1], &byte, 1) != 1)
            _exit(1);
        move(NULL);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

/* Whatever is open is a prefix of a, b, c, and began in this order, not in the future. */
static unsigned check_thread(const snapshot *s, const live_thread *t)
{
    static const char *const live_snapshot_names[] = {"a", "b", "c"};
    uint64_t before = 0;
    assert_in_range(t->depth, 0, 3);
    for (unsigned d = 0; d < t->depth; d++) {
        const live_name *n = live_name_of(&s->names, t->open[d].id);
        if (strcmp(n->text, "(unknown)") != 0) /* it may have been begun before it was told */
            assert_string_equal(n->text, live_snapshot_names[d]);
        assert_true(t->open[d].since_ns >= before);
        before = t->open[d].since_ns;
    }
    return t->depth;
}

/* a, b, c, c[i=64] and so on: whole. */
static void check_name(const char *text)
{
    size_t n = strlen(text);
    bool variant = strncmp(text, "c[i=", 4) == 0 && text[n - 1] == ']';
    assert_true(n == 1 || (variant && strspn(text + 4, "0123456789") == n - 5));
}

static void while_it_moves(void **state)
{
    char name[32];
    targets t;
    complaint why = {""};
    snapshot s = {0};
    unsigned deepest = 0;
    uint64_t steps = 0;
    (void)state;
    pid_t pid = start_moving();
    snprintf(name, sizeof name, "%d", (int)pid);
    assert_true(targets_open(&t, (char *[]){name}, 1, &why));
    for (int i = 0; i < 1500; i++) {
        assert_true(snapshot_take(&s, &t.all[0]));
        assert_true(s.steps >= steps);
        steps = s.steps;
        for (size_t k = 0; k < s.thread_count; k++) {
            unsigned depth = check_thread(&s, &s.threads[k]);
            deepest = PKI_MAX(deepest, depth);
        }
    }
    assert_true(steps > 0);
    assert_true(deepest >= 2);
    for (uint32_t id = PKI_NAME_FIRST; id < s.names.room; id++)
        if (s.names.all[id].text && s.names.all[id].kind <= PK_WAIT)
            check_name(s.names.all[id].text);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    snapshot_finish(&s);
    targets_close(&t);
}

static void figures_of_the_dead(void **state)
{
    char name[32];
    targets t;
    complaint why = {""};
    snapshot s = {0};
    static pk_stats stats;
    (void)state;
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(240);
        if (pk_start(pk_options(.backends = "none")) != PK_OK)
            _exit(1);
        kit_end_collector();
        for (int i = 0; i < 1000; i++) {
            pk_region_begin(&live_snapshot_c);
            pk_region_end(&live_snapshot_c);
        }
        pk_flush();
        pk_step(1); /* which nobody collects */
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(name, sizeof name, "%d", (int)pid);
    assert_true(targets_open(&t, (char *[]){name}, 1, &why));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(snapshot_take(&s, &t.all[0]));
    const live_calls *row = NULL;
    for (size_t i = 0; i < s.call_count; i++)
        if (strcmp(live_name_of(&s.names, s.calls[i].id)->text, "c") == 0)
            row = &s.calls[i];
    assert_non_null(row);
    assert_int_equal(row->count, 1000);
    assert_int_equal(row->kind, PK_COMPUTE);
    assert_true(snapshot_stats(&t.all[0], row, &stats));
    uint64_t all = 0;
    for (size_t i = 0; i < PK_STATS_BUCKETS; i++)
        all += stats.buckets[i];
    assert_int_equal(all, 1000);
    assert_true(s.steps == 1 && s.step_since_ns > 0);
    assert_in_range(pk_stats_quantile(&stats, 0.5), row->min, row->max);
    snapshot_finish(&s);
    targets_close(&t);
}

/* -- who is behind, of ranks made up here -- */

#define RANKS 4
#define WORLD 10 /* the communicator's name */
#define PART 11  /* another one, of ranks 0 and 1 */
#define WORK 12
#define WAITS 13

static target all_targets[RANKS];
static pki_arena_header headers[RANKS];
static live_thread threads[RANKS];
static live_comm comms[RANKS][2];
static live_name live_snapshot_names[WAITS + 1];
static view views[RANKS];
static behind found;

static void name(uint32_t id, uint32_t kind, const char *text, const char *key, int64_t value)
{
    live_snapshot_names[id] =
        (live_name){kind, value, (char *)(uintptr_t)text, (char *)(uintptr_t)key};
}

/* All wait in operation 101 of "world". */
static int make_ranks(void **state)
{
    (void)state;
    name(WORLD, PKI_KIND_INTERNAL, "world", "mpi", (int64_t)RANKS << 32);
    name(PART, PKI_KIND_INTERNAL, "part", "mpi", (int64_t)2 << 32);
    name(WORK, PK_COMPUTE, "work", "", 0);
    name(WAITS, PK_COMM, "wait", "", 0);
    for (int i = 0; i < RANKS; i++) {
        headers[i] = (pki_arena_header){.rank = i, .world_size = RANKS, .pid = 100 + (unsigned)i};
        all_targets[i] = (target){.header = &headers[i], .state = TARGET_RUNNING};
        threads[i] = (live_thread){.depth = 1, .open = {{.id = WAITS}}, .steps = 5};
        comms[i][0] = (live_comm){WORLD, 1, 101, 101, 100, false};
        views[i] = (view){.t = &all_targets[i],
                          .s = {.now_ns = 1000000000,
                                .steps = 5,
                                .threads = &threads[i],
                                .thread_count = 1,
                                .comms = comms[i],
                                .comm_count = 1,
                                .names = {.all = live_snapshot_names, .room = WAITS + 1}}};
    }
    return 0;
}

static int forget(void **state)
{
    (void)state;
    behind_finish(&found);
    return 0;
}

static void works(int rank)
{
    threads[rank].open[0].id = WORK;
    comms[rank][0] = (live_comm){WORLD, 0, 100, 100, 100, false};
}

static void only(size_t rank, behind_why why, const char *says)
{
    assert_true(behind_find(&found, views, RANKS));
    assert_int_equal(found.count, 1);
    assert_int_equal(found.rows[0].of, rank);
    assert_int_equal(found.rows[0].why, why);
    assert_non_null(strstr(found.rows[0].words, says));
}

static void nobody(const char *says)
{
    assert_true(behind_find(&found, views, RANKS));
    assert_int_equal(found.count, 0);
    assert_non_null(strstr(found.verdict, says));
}

static void all_are_inside(void **state)
{
    (void)state;
    nobody("All 4 wait, and nobody is behind");
}

static void one_has_not_entered(void **state)
{
    (void)state;
    works(3);
    only(3, BEHIND_MISSING,
         "has not entered operation 101 on world, in which 3 others are for 1.00 s");
    assert_string_equal(found.verdict, "The others wait for rank 3.");
}

/* Enqueued ahead of time, as NCCL's are: what counts is where the others have begun. */
static void one_has_not_started(void **state)
{
    (void)state;
    for (int i = 0; i < RANKS; i++)
        comms[i][0] = (live_comm){WORLD, 10, 110, 101, 100, false};
    comms[2][0].started = 100;
    comms[1][0].enqueued = 105; /* is enough */
    only(2, BEHIND_MISSING, "has not started operation 101 on world");
}

static void one_has_no_operation_yet(void **state)
{
    (void)state;
    works(1);
    views[1].s.comm_count = 0;
    only(1, BEHIND_MISSING, "has not entered operation 101");
}

/* Rank 1 is missing in "world" since it waits for rank 0 in "part". */
static void who_waits_is_not_to_blame(void **state)
{
    (void)state;
    works(0);
    works(1);
    comms[0][1] = (live_comm){PART, 0, 7, 7, 7, false};
    comms[1][1] = (live_comm){PART, 1, 8, 8, 7, false};
    views[0].s.comm_count = views[1].s.comm_count = 2;
    threads[1].open[0].id = WAITS;
    only(0, BEHIND_MISSING, "has not entered operation ");
}

static void each_waits_for_another(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        views[i].s.comm_count = 2;
        comms[i][0] = (live_comm){WORLD, i == 0, 100 + (i == 0), 100 + (i == 0), 100, false};
        comms[i][1] = (live_comm){PART, i == 1, 7 + (i == 1), 7 + (i == 1), 7, false};
    }
    for (int i = 2; i < RANKS; i++)
        views[i].s.comm_count = 0, headers[i].world_size = 0,
        live_snapshot_names[WORLD].value = (int64_t)2 << 32;
    assert_true(behind_find(&found, views, 2));
    assert_int_equal(found.count, 2);
    assert_string_equal(found.verdict, "Each waits for another: rank 1, rank 0. Not among the "
                                       "targets: rank 2, 3.");
}

static void messages_tell_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < RANKS; i++)
        comms[i][0].messages = true;
    comms[2][0].enqueued = comms[2][0].completed = 50;
    nobody("All 4 wait");
    behind_finish(&found);
    threads[2].open[0].id = WORK;
    views[2].s.steps = 4;
    only(2, BEHIND_STEP, "is 1 step behind 3 others");
    behind_finish(&found);
    live_calls steps = {.id = PKI_NAME_STEP, .count = 4, .sum = 4 * 501000000ull};
    views[2].s.calls = &steps; /* they take half as long as it has been in this one, and more */
    views[2].s.call_count = 1;
    nobody("Nobody is behind");
}

static void the_gone_and_the_stopped_come_first(void **state)
{
    (void)state;
    works(1);
    all_targets[1].state = TARGET_STOPPED;
    only(1, BEHIND_STOPPED, "is stopped");
    behind_finish(&found);
    all_targets[1].state = TARGET_GONE;
    only(1, BEHIND_GONE, "has ended without pk_stop; it is in step 5, in work for 1.00 s");
    behind_finish(&found);
    works(2);
    threads[2].open[0].id = WAITS; /* for a message of the one that is gone, perhaps */
    only(1, BEHIND_GONE, "");
    assert_non_null(found.perhaps == 1 ? strstr(found.rows[1].words, "perhaps for rank 1") : NULL);
}

static void nobody_is_left_to_wait(void **state)
{
    (void)state;
    for (int i = 0; i < RANKS; i++)
        all_targets[i].state = TARGET_STOPPED;
    assert_true(behind_find(&found, views, RANKS));
    assert_string_equal(found.verdict, "All of them: rank 0, rank 1, rank 2, rank 3.");
    behind_finish(&found);
    headers[0].world_size = 1;
    assert_true(behind_find(&found, views, 1));
    assert_int_equal(found.count, 1);
    assert_string_equal(found.verdict, "");
}

static void inside_what_others_have_left(void **state)
{
    live_calls calls[RANKS];
    (void)state;
    for (int i = 0; i < RANKS; i++) {
        views[i].s.comm_count = 0;
        calls[i] = (live_calls){.id = WORK, .kind = PK_COMPUTE, .count = 6};
        views[i].s.calls = &calls[i];
        views[i].s.call_count = 1;
    }
    threads[2].open[0].id = WORK;
    calls[2].count = 5;
    only(2, BEHIND_REGION, "is inside work, which 3 others have left and wait since");
    behind_finish(&found);
    calls[2].count = 6; /* its next one: that may be what it waits with */
    nobody("Nobody is behind");
}

static void ranks_that_are_not_there(void **state)
{
    (void)state;
    headers[0].world_size = 6;
    nobody("Not among the targets: rank 4, 5.");
}

#define MADE(test) cmocka_unit_test_setup_teardown(test, make_ranks, forget)

static const struct CMUnitTest live_snapshot_tests[] = {
    cmocka_unit_test(while_it_moves),
    cmocka_unit_test(figures_of_the_dead),
    MADE(all_are_inside),
    MADE(one_has_not_entered),
    MADE(one_has_not_started),
    MADE(one_has_no_operation_yet),
    MADE(who_waits_is_not_to_blame),
    MADE(each_waits_for_another),
    MADE(messages_tell_nothing),
    MADE(the_gone_and_the_stopped_come_first),
    MADE(nobody_is_left_to_wait),
    MADE(inside_what_others_have_left),
    MADE(ranks_that_are_not_there),
};

/* ---- TARGETs of the live commands ---- */

/* Processes, files and folders, whole, torn, foreign, and gone. */

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/pk-target-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

typedef struct child {
    pid_t pid;
    int tell; /* closing it lets the child end its session, cleanly */
    int heard;
} child;

static void live(int ready, int end, int rank, bool in_memory)
{
    static pk_region outer = PK_REGION("outer");
    char byte = 0, trace[PATH_MAX];
    snprintf(trace, sizeof trace, "%s/run-%d.json", folder, rank);
    if (pk_start(pk_options(.trace_path = trace, .rank = rank, .world_size = 8, .backends = "none",
                            .tuning = kit_tuning("arena_path=%s", in_memory ? "none" : ""))) !=
        PK_OK)
        _exit(1);
    pk_region_begin(&outer);
    pk_step(1);
    alarm(240);
    if (write(ready, &byte, 1) != 1 || read(end, &byte, 1) != 0)
        _exit(2);
    pk_region_end(&outer);
    _exit(pk_stop() != PK_OK);
}

static child start(int rank, bool in_memory)
{
    int ready[2], end[2];
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(end[1]);
        live(ready[1], end[0], rank, in_memory);
    }
    close(ready[1]);
    close(end[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    return (child){pid, end[1], ready[0]};
}

static void finish(child c)
{
    int status;
    close(c.tell);
    close(c.heard);
    waitpid(c.pid, &status, 0);
}

static void kill_it(child c)
{
    kill(c.pid, SIGKILL);
    finish(c);
}

static complaint why;

static bool open_named(targets *t, const char *name)
{
    char *names[] = {(char *)(uintptr_t)name};
    why.text[0] = 0;
    return targets_open(t, names, 1, &why);
}

static bool open_pid(targets *t, pid_t pid)
{
    char name[32];
    snprintf(name, sizeof name, "%d", (int)pid);
    return open_named(t, name);
}

static void is_of(const target *t, const child *c, int rank)
{
    char text[TARGET_TEXT], wanted[64];
    assert_int_equal(t->process.pid, c->pid);
    assert_int_equal(t->header->pid, c->pid);
    assert_int_equal(t->header->rank, rank);
    assert_int_equal(t->header->world_size, 8);
    assert_int_equal(t->header->steps, 1);
    assert_int_equal(t->state, TARGET_RUNNING);
    snprintf(wanted, sizeof wanted, "rank %d, pid %d on ", rank, (int)c->pid);
    target_describe(t, text);
    assert_memory_equal(text, wanted, strlen(wanted));
}

static void by_pid_in_a_file_and_in_memory(void **state)
{
    (void)state;
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        targets t;
        child c = start(3, in_memory);
        assert_true(open_pid(&t, c.pid));
        assert_int_equal(t.count, 1);
        assert_int_equal(t.all[0].in_memory, in_memory);
        is_of(&t.all[0], &c, 3);
        uint64_t now = target_now_ns(&t.all[0]);
        assert_true(now > 0 && now < 60000000000u);
        kill_it(c);
        assert_true(target_refresh(&t.all[0]));
        assert_int_equal(t.all[0].state, TARGET_GONE);
        assert_int_equal(t.all[0].process_state, 0);
        targets_close(&t);
        assert_false(open_pid(&t, c.pid));
        assert_non_null(strstr(why.text, "there is no process"));
        targets_close(&t);
    }
}

static void states(void **state)
{
    int status;
    targets t;
    (void)state;
    child c = start(1, false);
    assert_true(open_named(&t, path_of("run-1.json.arena")));
    is_of(&t.all[0], &c, 1);
    kill(c.pid, SIGSTOP);
    assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
    assert_true(target_refresh(&t.all[0]));
    assert_int_equal(t.all[0].state, TARGET_STOPPED);
    kill(c.pid, SIGCONT);
    finish(c);
    assert_true(target_refresh(&t.all[0]));
    assert_int_equal(t.all[0].state, TARGET_ENDED);
    assert_string_equal(target_state_text(t.all[0].state), "ended");
    targets_close(&t);
    assert_false(open_named(&t, path_of("run-1.json.arena"))); /* a clean stop leaves none */
    assert_non_null(strstr(why.text, "No such file"));
    targets_close(&t);
}

static void write_file(const char *path, const void *text, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void a_folder_by_rank(void **state)
{
    targets t;
    child all[3];
    (void)state;
    assert_false(open_named(&t, folder));
    assert_non_null(strstr(why.text, "no arena is in this folder"));
    targets_close(&t);
    for (int i = 0; i < 3; i++)
        all[i] = start(2 - i, false);
    kill_it(all[1]);
    write_file(path_of("a.txt"), "no arena", 8);
    write_file(path_of("torn.arena"), PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC);
    write_file(path_of("empty.arena"), "", 0);
    write_file(path_of("old.prev.arena"), "", 0);
    assert_true(open_named(&t, folder));
    assert_int_equal(t.count, 3);
    assert_int_equal(t.skipped_count, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t.all[i].header->rank, i);
    is_of(&t.all[0], &all[2], 0);
    is_of(&t.all[2], &all[0], 2);
    assert_int_equal(t.all[1].state, TARGET_GONE);
    assert_int_equal(t.all[1].process.pid, 0);
    targets_close(&t);

    char pid[32], arena[PATH_MAX];
    snprintf(pid, sizeof pid, "%d", (int)all[0].pid);
    strcpy(arena, path_of("run-2.json.arena"));
    assert_true(targets_open(&t, (char *[]){pid, arena, folder}, 3, &why));
    assert_int_equal(t.count, 3); /* each once */
    targets_close(&t);
    finish(all[2]); /* the one that was forked last: it holds the pipes of the others */
    finish(all[0]);
}

static void what_is_none(void **state)
{
    static const char *const names[] = {"",          "nowhere",  "99999999999999999999", "0", "-1",
                                        "/dev/null", "/dev/zero"};
    targets t;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(open_named(&t, names[i]));
        assert_true(why.text[0]);
        targets_close(&t);
    }
    assert_false(open_pid(&t, getpid())); /* without a session */
    assert_non_null(strstr(why.text, "has no arena"));
    targets_close(&t);
    assert_int_equal(mkfifo(path_of("fifo.arena"), 0600), 0);
    assert_false(open_named(&t, path_of("fifo.arena"))); /* and does not wait for a writer */
    targets_close(&t);
}

/* A word of the header set to something else, in a file of its own. */
static bool opens_with(const void *whole, size_t bytes, size_t at, uint32_t word)
{
    targets t;
    const char *path = path_of("spoilt.arena");
    write_file(path, whole, bytes);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, &word, sizeof word, (off_t)at), sizeof word);
    close(fd);
    bool opened = open_named(&t, path);
    if (opened) {
        assert_true(target_now_ns(&t.all[0]) < UINT64_MAX);
        assert_true(t.all[0].header->block_count <= PKI_BLOCKS_MAX);
    }
    targets_close(&t);
    return opened;
}

static void torn_and_foreign(void **state)
{
    targets t;
    (void)state;
    child c = start(0, false);
    kill_it(c);
    assert_true(open_named(&t, path_of("run-0.json.arena")));
    size_t bytes = t.all[0].header->names + PKI_NAMES_SPAN_BYTES;
    char *whole = malloc(bytes);
    assert_non_null(whole);
    assert_true(target_read(&t.all[0], 0, whole, bytes));
    assert_false(target_read(&t.all[0], t.all[0].bytes, whole, 1));
    assert_false(target_read(&t.all[0], UINT64_MAX, whole, 2));
    assert_int_equal(truncate(path_of("run-0.json.arena"), 4096), 0); /* under the reader's hands */
    assert_false(target_read(&t.all[0], 8192, whole, 1));
    assert_false(target_refresh(&t.all[0]));
    targets_close(&t);

    assert_true(opens_with(whole, bytes, offsetof(pki_arena_header, rank), 77));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, version), 0));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, version), 99));
    assert_non_null(strstr(why.text, "another perfkit"));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, layout), 99));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, clock.count), 0));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, clock.count), 99999));
    assert_false(opens_with(whole, bytes, offsetof(pki_arena_header, block_count), UINT32_MAX));
    assert_true(opens_with(whole, bytes, offsetof(pki_arena_header, generation), UINT32_MAX));
    for (size_t n = 0; n < sizeof(pki_arena_header); n = n * 2 + 5)
        assert_false(opens_with(whole, n, 0, 0x41504B50));
    for (size_t at = 8; at < offsetof(pki_arena_header, clock.segments); at += 4)
        opens_with(whole, bytes, at, UINT32_MAX);
    free(whole);
}

static const struct CMUnitTest live_target_tests[] = {
    cmocka_unit_test_setup_teardown(by_pid_in_a_file_and_in_memory, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(states, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(a_folder_by_rank, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_is_none, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(torn_and_foreign, make_folder, remove_folder),
};

int main(void)
{
    int failed = cmocka_run_group_tests(live_figures_tests, NULL, NULL);
    failed += cmocka_run_group_tests(live_snapshot_tests, NULL, NULL);
    failed += cmocka_run_group_tests(live_target_tests, NULL, NULL);
    return failed;
}
