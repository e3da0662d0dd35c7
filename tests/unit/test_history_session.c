/* The history of a session: where its arena lies, and what a killed run has left of it. */
#include "valgrind.h"
#include "folder.h"
#include "session.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "history/salvage.h"

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");

typedef struct shared_with_victim {
    uint64_t steps; /* whose pk_step has returned, and that have been drained */
} shared_with_victim;

static shared_with_victim *shared;

static void run_until_killed(void)
{
    if (pk_start(pk_options(.history_steps = 8, .clock = the_clock, .backends = "none")))
        _exit(1);
    for (uint64_t n = 0;; n++) {
        for (int i = 0; i < 20; i++) {
            pk_region_begin(&work);
            pk_region_end(&work);
        }
        pk_step(1);
        usleep(20); /* so that no ring becomes full, however busy the machine */
        __atomic_store_n(&shared->steps, n + 1, __ATOMIC_RELEASE);
    }
}

typedef struct seen {
    uint64_t first, next, steps, work;
} seen;

/* Steps come once each, in order. */
static bool look(void *user, const char *event, size_t n)
{
    seen *s = user;
    char text[PKI_EVENT_BYTES + 1];
    memcpy(text, event, n);
    text[n] = 0;
    const char *step = strstr(text, "ProfilerStep#");
    s->work += strstr(text, "\"work\"") != NULL;
    if (!step)
        return true;
    uint64_t number = strtoull(step + sizeof "ProfilerStep#" - 1, NULL, 10);
    if (s->steps++ == 0)
        s->first = number;
    else
        assert_int_equal(number, s->next);
    s->next = number + 1;
    return true;
}

static seen salvage_file(const char *path)
{
    pki_salvage s;
    seen all = {0};
    if (!pki_salvage_open(&s, path))
        fail_msg("%s: %s", path, s.why);
    assert_true(pki_history_salvage(&s, look, &all));
    assert_true(pki_salvage_events(&s, look, &all));
    pki_salvage_close(&s);
    return all;
}

/* What is in the history and what was still in the rings are the last steps, without a gap. */
static void a_killed_run_has_its_last_steps(void **state)
{
    (void)state;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < 10; i += is_slow() ? 3 : 1) {
        shared->steps = 0;
        pid_t victim = fork();
        if (victim == 0)
            run_until_killed();
        while (__atomic_load_n(&shared->steps, __ATOMIC_ACQUIRE) < 50 + 37 * i)
            usleep(100);
        kill(victim, SIGKILL);
        assert_int_equal(waitpid(victim, NULL, 0), victim);
        seen all = salvage_file("run-0-history.json.arena");
        assert_true(all.steps >= 8);
        assert_in_range(all.next, shared->steps, shared->steps + 1);
        assert_true(all.work >= 20 * (8 - 1));
        unlink("run-0-history.json.arena");
    }
    munmap(shared, 4096);
}

static void a_clean_stop_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    assert_true(exists("run-0-history.json.arena"));
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 0);
}

/* The folder cannot be written to: the program goes on, its history is in memory. */
static void nowhere_to_lie(void **state)
{
    (void)state;
    if (geteuid() == 0)
        skip(); /* root writes anywhere */
    assert_int_equal(chmod(".", 0500), 0);
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(chmod(".", 0700), 0);
}

/* Another process has the name: this one takes one with its pid. */
static void two_without_ranks(void **state)
{
    (void)state;
    int ready[2], go[2];
    char byte = 0;
    assert_true(pipe(ready) == 0 && pipe(go) == 0);
    pid_t other = fork();
    if (other == 0) {
        byte = pk_start(pk_options(.history_steps = 8, .backends = "none")) != PK_OK;
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
            _exit(1);
        _exit(pk_stop());
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    assert_int_equal(count_files(), 2);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_int_equal(count_files(), 0);
}

/* The child is off, and may have a history of its own. */
static void forks(void **state)
{
    (void)state;
    if (forked_child_may_not_record())
        skip();
    assert_int_equal(pk_start(pk_options(.history_steps = 8, .backends = "none")), PK_OK);
    pk_step(1);
    pid_t child = fork();
    if (child == 0) {
        pk_status status = pk_start(pk_options(.history_steps = 8, .backends = "none"));
        pk_step(1);
        _exit(status != PK_OK || pk_stop() != PK_OK);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pk_stop(), PK_OK);
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest sessions[] = {
        in_folder(a_killed_run_has_its_last_steps),
        in_folder(a_clean_stop_leaves_nothing),
        in_folder(nowhere_to_lie),
        in_folder(two_without_ranks),
        in_folder(forks),
    };
    return both_clocks(sessions);
}
