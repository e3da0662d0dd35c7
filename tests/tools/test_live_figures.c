/* What is read of a process from outside, against what its session says itself: while windows take
 * the extremes of each part of the run away (stats/slot.h), too. */
#include "live/live.h"

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
    if (pk_start(pk_options(.backends = "none", .windows_path = "w.jsonl", .window_steps = 1)))
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_session_has_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
