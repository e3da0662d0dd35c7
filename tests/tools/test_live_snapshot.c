/* Where processes stand: read while they move as fast as they can; and who is behind whom, from
 * what was read. */
#include "live/live.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <pk/pk.h>

/* ---- a process that moves ---- */

static pk_region a = PK_REGION("a"), b = PK_REGION("b"), c = PK_REGION_OF(PK_COMPUTE, "c");

/* Regions of a few nanoseconds, in a ring that is full all the time; new names now and then. */
static void *move(void *unused)
{
    for (int64_t i = 0;; i++) {
        pk_region_begin(&a);
        pk_region_begin(&b);
        for (int k = 0; k < 500; k++) {
            pk_region_begin(&c);
            pk_region_end(&c);
        }
        pk_region_end(&b);
        pk_region_end(&a);
        if (i % 64 == 0 && i < 64000)
            pk_region_mark(pk_region_variant(&c, "i", i));
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
        if (pk_start(pk_options(.ring_records = 64, .backends = "none")) != PK_OK ||
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
    static const char *const names[] = {"a", "b", "c"};
    uint64_t before = 0;
    assert_in_range(t->depth, 0, 3);
    for (unsigned d = 0; d < t->depth; d++) {
        const live_name *n = live_name_of(&s->names, t->open[d].id);
        if (strcmp(n->text, "(unknown)") != 0) /* it may have been begun before it was told */
            assert_string_equal(n->text, names[d]);
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
        if (pk_start(pk_options(.backends = "none", .collector = "none")) != PK_OK)
            _exit(1);
        for (int i = 0; i < 1000; i++) {
            pk_region_begin(&c);
            pk_region_end(&c);
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

/* ---- who is behind, of ranks made up here ---- */

#define RANKS 4
#define WORLD 10 /* the communicator's name */
#define PART 11  /* another one, of ranks 0 and 1 */
#define WORK 12
#define WAITS 13

static target all_targets[RANKS];
static pki_arena_header headers[RANKS];
static live_thread threads[RANKS];
static live_comm comms[RANKS][2];
static live_name names[WAITS + 1];
static view views[RANKS];
static behind found;

static void name(uint32_t id, uint32_t kind, const char *text, const char *key, int64_t value)
{
    names[id] = (live_name){kind, value, (char *)(uintptr_t)text, (char *)(uintptr_t)key};
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
                                .names = {.all = names, .room = WAITS + 1}}};
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
        views[i].s.comm_count = 0, headers[i].world_size = 0, names[WORLD].value = (int64_t)2 << 32;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
