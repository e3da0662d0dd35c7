/* The watchdog: the rule on a clock of its own, what is open seen from another thread, and a
 * command that the program does not notice. */
#include "valgrind.h"
#include "session/live/live.h"

#include <errno.h>
#include <fcntl.h>
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

#include "base/process.h"
#include "base/clock.h"
#include "core/frames.h"
#include "core/names.h"
#include "core/registry.h"

/* ---- the rule ---- */

#define S UINT64_C(1000000000)

static pki_watch watch;
static pki_watch_input input;
static unsigned alarms, ends;
static uint64_t alarm_at;

static int begin(void **state)
{
    (void)state;
    watch = (pki_watch){.hang = 10 * S, .period = S / 2};
    input = (pki_watch_input){.now = 1000 * S, .any = true};
    alarms = ends = 0;
    return 0;
}

/* Nothing ends for so long, or is it that something does at each look. */
static void pass(uint64_t ns, bool busy)
{
    for (uint64_t until = input.now + ns; input.now < until;) {
        input.now += watch.period;
        input.ended += busy;
        pki_watch_event event = pki_watch_update(&watch, &input);
        if (event == PKI_WATCH_HANG)
            alarm_at = input.now;
        alarms += event == PKI_WATCH_HANG;
        ends += event == PKI_WATCH_GOES_ON;
    }
}

static void quiet_is_a_hang_once(void **state)
{
    (void)state;
    pass(100 * S, true);
    assert_int_equal(alarms, 0);
    uint64_t last = input.now;
    pass(9 * S, false);
    assert_int_equal(alarms, 0);
    pass(1000 * S, false);
    assert_int_equal(alarms, 1);
    assert_in_range(alarm_at - last, 10 * S, 10 * S + watch.period);
    pass(S, true);
    assert_int_equal(ends, 1);
    pass(30 * S, false);
    assert_int_equal(alarms, 2);
}

static void what_takes_long_has_longer(void **state)
{
    (void)state;
    input.usual = 4 * S; /* p99 */
    pass(S, true);
    pass(19 * S, false);
    assert_int_equal(alarms, 0);
    pass(2 * S, false);
    assert_int_equal(alarms, 1);
}

static void nothing_open_is_no_hang(void **state)
{
    (void)state;
    input.any = false;
    pass(1000 * S, false);
    assert_int_equal(alarms, 0);
}

/* An hour of steps of a second with a checkpoint of 30 each hundredth, of kind PK_IO, and one step
 * of 20 in a region with a limit of 60; then a hang. */
static void an_hour(void **state)
{
    (void)state;
    for (unsigned step = 0; input.now < 4600 * S; step++) {
        input.limit = step == 0 ? 60 * S : 0;
        input.since = input.now;
        pass(step == 0 ? 20 * S : S, false);
        input.limit = 0;
        input.excused = step % 100 == 99;
        pass(input.excused ? 30 * S : 0, false);
        input.excused = false;
        input.ended++;
        input.usual = S;
    }
    assert_int_equal(alarms, 0);
    pass(12 * S, false);
    assert_int_equal(alarms, 1);
}

static void a_limit_takes_the_place_of_both(void **state)
{
    (void)state;
    pass(S, true);
    pass(4 * S, false);
    input.limit = 3 * S; /* shorter than hang_seconds, from its own begin on */
    input.since = input.now;
    pass(2 * S, false);
    assert_int_equal(alarms, 0);
    pass(2 * S, false);
    assert_int_equal(alarms, 1);
}

/* The process was stopped for an hour, or the machine slept. */
static void absence_does_not_count(void **state)
{
    (void)state;
    pass(S, true);
    pass(5 * S, false);
    input.now += 3600 * S;
    pass(S, false);
    assert_int_equal(alarms, 0);
    pass(10 * S, false);
    assert_int_equal(alarms, 1);
}

/* ---- limits of regions ---- */

static void limits(void **state)
{
    static pk_region compile = PK_REGION("compile");
    static const double none[] = {0, -1, 0.0 / 0.0};
    (void)state;
    pk_region_set_limit(&compile, 60);
    assert_int_equal(pki_name_limit(compile.id), 60 * S);
    assert_int_equal(pki_name_limit(pk_region_named("compile")->id), 60 * S);
    pk_region_set_limit(&compile, 1.0 / 0.0);
    assert_true(pki_name_limit(compile.id) > 1000000 * S);
    for (size_t i = 0; i < 3; i++) {
        pk_region_set_limit(&compile, none[i]);
        assert_int_equal(pki_name_limit(compile.id), 0);
    }
    assert_int_equal(pki_name_limit(65535), 0);
}

/* ---- what is open, seen by another thread ---- */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION("inner");
static bool enough;

static void *move(void *unused)
{
    while (!pki_load(&enough)) {
        pk_region_begin(&outer);
        for (int i = 0; i < 100; i++) {
            pk_region_begin(&inner);
            pk_region_end(&inner);
        }
        pk_region_end(&outer);
    }
    return unused;
}

static void a_thread_that_moves(void **state)
{
    pthread_t thread;
    pki_open_frames look;
    unsigned seen = 0;
    (void)state;
    assert_int_equal(pk_start(pk_options(.backends = "none", .tuning = "ring_records=64")), PK_OK);
    assert_int_equal(pthread_create(&thread, NULL, move, NULL), 0);
    pki_registry *r = pki_registry_now();
    while (pki_registry_blocks(r) == 0)
        ;
    for (int i = 0; i < 20000 || !seen; i++) {
        if (!pki_open_frames_of(pki_registry_block(r, 0), &look))
            continue;
        assert_in_range(look.depth, 0, 2);
        assert_true(look.depth < 1 || look.open[0].id == outer.id);
        assert_true(look.depth < 2 || look.open[1].id == inner.id);
        assert_true(look.depth < 2 || look.open[1].start >= look.open[0].start);
        seen += look.depth > 0;
    }

    pki_store(&enough, true);
    pthread_join(thread, NULL);
    assert_int_equal(pk_stop(), PK_OK);
}

/* ---- a command ---- */

static volatile sig_atomic_t told;

static void note(int signal)
{
    (void)signal;
    told++;
}

static char *read_file(const char *path, char *text, size_t size)
{
    for (int i = 0; i < 3000; i++) { /* until it is there */
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(text, 1, size - 1, f) : 0;
        if (f)
            fclose(f);
        text[n] = 0;
        if (n && text[n - 1] == '\n')
            return text;
        usleep(10000);
    }
    return text;
}

static void a_command_beside_the_program(void **state)
{
    char path[] = "/tmp/pk-aside-XXXXXX", command[200], text[400];
    pid_t pid = 0;
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    int open_here = dup2(fd, 77); /* not close-on-exec: the command must not have it */
    assert_int_equal(open_here, 77);
    signal(SIGCHLD, note);
    snprintf(command, sizeof command,
             "{ ls /proc/$$/fd/77 2>/dev/null || printf 'none '; echo $PPID; } > %s", path);
    if (is_slow()) {
        printf("neither valgrind nor an emulator shares memory with what vfork makes\n");
        skip();
    }
    assert_int_equal(pki_run_detached(command, &pid), 0);
    assert_true(pid > 0);
    read_file(path, text, sizeof text);
    assert_memory_equal(text, "none ", 5);
    assert_int_not_equal(atoi(text + 5), getpid());
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child that the program knows */
    assert_int_equal(errno, ECHILD);
    assert_int_equal(told, 0);
    assert_true(pki_detached_is_over(pid));
    assert_int_equal(fcntl(open_here, F_GETFD), 0); /* here all is as it was */
    signal(SIGCHLD, SIG_DFL);
    close(open_here);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(quiet_is_a_hang_once, begin),
        cmocka_unit_test_setup(what_takes_long_has_longer, begin),
        cmocka_unit_test_setup(nothing_open_is_no_hang, begin),
        cmocka_unit_test_setup(an_hour, begin),
        cmocka_unit_test_setup(a_limit_takes_the_place_of_both, begin),
        cmocka_unit_test_setup(absence_does_not_count, begin),
        cmocka_unit_test(limits),
        cmocka_unit_test(a_thread_that_moves),
        cmocka_unit_test(a_command_beside_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
