/* A program killed at any moment leaves a run that can be read.
 *
 * The victim numbers its regions and writes, next to each end, the number to memory that outlives
 * it. After the kill `pk recover` makes the trace whole; in it every number up to the last one
 * written has to be there, once, in order, with its fields as they were: but for the very last per
 * thread, which may have been on its way.
 */
#include "kit.h"
#include "trace.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <pk/pk.h>

#define THREADS 4

typedef struct journal {
    uint64_t ended[THREADS]; /* the last number whose pk_region_end has returned */
    uint64_t steps;
} journal;

static journal *shared;
static const char *pk_command;

static void pause_a_little(uint64_t *random)
{
    for (volatile uint64_t i = kit_random(random) % 4000; i > 0; i--)
        ;
}

/* Numbers go through bytes, from 1. Slow enough for a ring to be taken in time. */
static void *number_regions(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    uint64_t random = 77 + me;
    char name[16], inside[16];
    snprintf(name, sizeof name, "thread-%u", me);
    snprintf(inside, sizeof inside, "inside-%u", me);
    pk_region *region = pk_region_named(name), *inner = pk_region_named(inside);
    for (uint64_t n = 1;; n++) {
        pk_region_begin(region);
        pk_region_begin(inner);
        pause_a_little(&random);
        pk_region_end(inner);
        pk_region_add(region, n, 3 * n);
        pk_region_end(region);
        __atomic_store_n(&shared->ended[me], n, __ATOMIC_RELEASE);
        if (me == 0 && n % 100 == 0) {
            pk_step(n);
            __atomic_store_n(&shared->steps, n / 100, __ATOMIC_RELEASE);
        }
    }
    return NULL;
}

static void be_a_victim(const char *path)
{
    pthread_t threads[THREADS];
    kit_watchdog(60);
    must_equal(pk_start(pk_options(.trace_path = path, .ring_records = 1u << 17, .flush_ms = 100,
                                   .memory_bytes = 64u << 20)),
               PK_OK);
    for (unsigned i = 1; i < THREADS; i++)
        must_equal(pthread_create(&threads[i], NULL, number_regions, (void *)(uintptr_t)i), 0);
    number_regions(NULL);
}

static void kill_after(const char *path, unsigned us)
{
    int status;
    memset(shared, 0, sizeof *shared);
    pid_t victim = fork();
    assert_true(victim >= 0);
    if (victim == 0) {
        be_a_victim(path);
        _exit(1);
    }
    while (__atomic_load_n(&shared->ended[0], __ATOMIC_ACQUIRE) == 0 &&
           waitpid(victim, &status, WNOHANG) == 0)
        kit_sleep_us(100);
    kit_sleep_us(us);
    kill(victim, SIGKILL);
    assert_int_equal(waitpid(victim, &status, 0), victim);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void recover(const char *path)
{
    char command[2000];
    snprintf(command, sizeof command, "'%s' recover '%s.arena' -o '%s' >'%s' 2>&1", pk_command,
             path, path, kit_path("said"));
    assert_int_equal(system(command), 0);
}

/* The numbers of one thread's regions in the order of the file: 1, 2, 3, ... The last one of all
 * may be missing, or be there although its end had not returned. */
static void check_thread(const trace *t, unsigned me, bool drops)
{
    char name[16];
    uint64_t last = 0, missing = 0, ended = shared->ended[me];
    snprintf(name, sizeof name, "thread-%u", me);
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        if (strcmp(e->name, name) != 0 || e->unbalanced)
            continue;
        assert_true(e->bytes > last); /* none twice, none out of order */
        assert_true(e->flops == 3 * e->bytes);
        missing += e->bytes - last - 1;
        last = e->bytes;
    }
    assert_true(last <= ended + 1);
    if (!drops)
        assert_true(missing == 0 && last + 1 >= ended);
}

static void check_steps(const trace *t)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < t->count; i++)
        steps += t->events[i].step;
    assert_true(steps + 1 >= shared->steps && steps <= shared->steps + 1);
}

static void check(const char *path)
{
    trace t;
    if (!trace_read(&t, path))
        fail_msg("%s: %s", path, t.why);
    if (!trace_nests(&t))
        fail_msg("%s: %s", path, t.why);
    assert_int_equal(t.count, t.written);
    assert_int_equal(t.begun, t.recorded + t.dropped);
    for (unsigned i = 0; i < THREADS; i++)
        check_thread(&t, i, t.dropped > 0);
    if (t.dropped == 0)
        check_steps(&t);
    trace_free(&t);
}

static void kill_many(const char *name, unsigned times, uint64_t seed)
{
    for (unsigned i = 0; i < times; i++) {
        kit_clean();
        char path[600];
        snprintf(path, sizeof path, "%s", kit_path(name));
        kill_after(path, (unsigned)(kit_random(&seed) % 150000));
        recover(path);
        check(path);
    }
}

static void plain(void **state)
{
    (void)state;
    kill_many("run.json", kit_scaled(60), 4711);
}

static void compressed(void **state)
{
    (void)state;
    kill_many("run.json.gz", kit_scaled(40), 815);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(compressed),
    };
    if (argc < 2)
        kit_skip("needs the pk command: its path is the first argument");
    pk_command = argv[1];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        kit_skip("no shared memory");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
