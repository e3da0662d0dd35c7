/* Sessions that begin and end, and processes that fork, wherever their threads are. */
#include "kit.h"
#include "trace.h"
#include "tuning.h"

#include <pk/pk.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* ---- forks ---- */

/* A child is off until it starts anew, with files of its own; the parent goes on as if nothing had
 * happened. Also from a thread amid its regions, and while other threads are inside perfkit. */

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner"),
                 of_child = PK_REGION("of a child");

static pk_status start(const char *pattern)
{
    return pk_start(pk_options(.trace_path = kit_path(pattern), .backends = "none",
                               .tuning = "ring_records=256"));
}

static void record(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        pk_region_begin(&outer);
        pk_region_next(&outer, &inner);
        pk_region_end(&inner);
    }
}

static void must_be_off(void)
{
    static _Thread_local pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    record(10);
    pk_step(1);
    pk_thread_set_name("off");
    must_equal(pk_get_counts(&counts), PK_EOFF);
    must_equal(pk_flush(), PK_EOFF);
    must_equal(pk_stop(), PK_EOFF);
    must_equal(pk_region_stats(&outer, &stats), PK_EOFF);
}

static void read_own_trace(uint64_t slices, bool complete)
{
    char name[40];
    trace t;
    snprintf(name, sizeof name, "fork-%d.json", (int)getpid());
    if (!trace_read(&t, kit_path(name)) || !trace_nests(&t))
        kit_give_up(__FILE__, __LINE__, t.why, 0, 0);
    must_equal(trace_slices(&t, NULL), slices);
    must_equal(t.complete, complete);
    trace_free(&t);
}

/* A session of the child's own, all of it. */
static void start_anew(void)
{
    pk_counts counts = {.size = sizeof counts};
    must_equal(start("fork-%p.json"), PK_OK);
    must_equal(pk_start(NULL), PK_EBUSY);
    record(100);
    pk_region_end(&of_child); /* of the parent's life */
    pk_region_begin(&of_child);
    pk_region_end(&of_child);
    must_equal(pk_flush(), PK_OK);
    must_equal(pk_stop(), PK_OK);
    must_equal(pk_get_counts(&counts), PK_OK);
    must_equal(counts.begun, 201);
    must_equal(counts.recorded + counts.dropped, 201);
    must_equal(counts.threads, 1);
    must_equal(counts.stray_ends, 1);
    must_equal(counts.unbalanced, 0);
    read_own_trace(counts.recorded, true);
}

static int wait_for(pid_t child)
{
    int status = -1;
    must(child > 0);
    while (waitpid(child, &status, 0) < 0)
        must(errno == EINTR);
    return status;
}

typedef enum way { BY_EXIT, BY_EXIT_RECORDING, BY__EXIT, BY__EXIT_RECORDING } way;

static void end_child(way w)
{
    if (w == BY_EXIT_RECORDING || w == BY__EXIT_RECORDING) {
        must_equal(start("fork-%p.json"), PK_OK);
        record(3);
    }
    if (w == BY_EXIT || w == BY_EXIT_RECORDING)
        exit(0); /* which ends the session */
    _exit(0);
}

static void fork_once(way w)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        kit_watchdog(240);
        must_be_off();
        start_anew();
        end_child(w);
    }
    must_equal(wait_for(child), 0);
}

/* Of children that have ended cleanly only the traces are left. */
static void children_leave_their_traces(void **state)
{
    (void)state;
    kit_clean();
    assert_int_equal(start("parent.json"), PK_OK);
    record(10);
    for (way w = BY_EXIT; w <= BY__EXIT_RECORDING; w++)
        fork_once(w);
    record(10);
    pk_counts counts = {.size = sizeof counts};
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, 40);
    assert_int_equal(counts.recorded, 40);
    assert_int_equal(kit_count_files("fork-"), 4 + 1); /* one arena, of the one that was cut off */
    assert_int_equal(kit_count_files(".arena"), 1);
    assert_int_equal(kit_count_files("parent.json"), 1);
}

/* The child is a copy of a thread that has regions open, and has grandchildren. */
static void *fork_amid_regions(void *argument)
{
    unsigned generations = 3;
    pid_t child;
    pk_region_begin(&of_child);
    pk_region_begin(&outer);
    (void)argument;
    while (generations-- > 0) {
        fflush(NULL);
        child = fork();
        if (child == 0) {
            kit_watchdog(240);
            pk_region_end(&outer);
            must_be_off();
            start_anew();
            pk_region_begin(&inner);
            continue;
        }
        must_equal(wait_for(child), 0);
        break;
    }
    if (generations < 2)
        _exit(0);
    pk_region_end(&outer);
    pk_region_end(&of_child);
    return NULL;
}

static void threads_fork_amid_regions(void **state)
{
    pthread_t threads[4];
    pk_counts counts = {.size = sizeof counts};
    (void)state;
    assert_int_equal(start("parent.json"), PK_OK);
    for (unsigned i = 0; i < 4; i++)
        must(pthread_create(&threads[i], NULL, fork_amid_regions, NULL) == 0);
    for (unsigned i = 0; i < 4; i++)
        must(pthread_join(threads[i], NULL) == 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, 8);
    assert_int_equal(counts.recorded, 8);
    assert_int_equal(counts.unbalanced + counts.stray_ends, 0);
}

/* -- while others are inside -- */

static bool busy;

static void *be_busy(void *argument)
{
    static _Thread_local pk_stats stats;
    pk_counts counts = {.size = sizeof counts};
    uint64_t *begun = argument;
    while (__atomic_load_n(&busy, __ATOMIC_RELAXED)) {
        record(200);
        *begun += 400;
        must_equal(pk_flush(), PK_OK);
        must_equal(pk_region_stats(&inner, &stats), PK_OK);
        must_equal(pk_get_counts(&counts), PK_OK);
        char name[32];
        snprintf(name, sizeof name, "n%llu", (unsigned long long)*begun % 5000);
        pk_region_begin(pk_region_named(name));
        pk_region_end(pk_region_named(name));
        *begun += 1;
    }
    return NULL;
}

static void *be_short(void *argument)
{
    record(1);
    return argument;
}

static void *have_threads(void *argument)
{
    uint64_t *begun = argument;
    pthread_t one;
    while (__atomic_load_n(&busy, __ATOMIC_RELAXED)) {
        must(pthread_create(&one, NULL, be_short, NULL) == 0);
        must(pthread_join(one, NULL) == 0);
        *begun += 2;
    }
    return NULL;
}

static void others_are_inside(void **state)
{
    pthread_t threads[4];
    uint64_t begun[4] = {0};
    pk_counts counts = {.size = sizeof counts};
    (void)state;
    kit_clean();
    assert_int_equal(start("parent.json"), PK_OK);
    __atomic_store_n(&busy, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 4; i++)
        must(pthread_create(&threads[i], NULL, i < 2 ? be_busy : have_threads, &begun[i]) == 0);
    for (unsigned i = 0; i < kit_scaled(60); i++)
        fork_once(i % 2 ? BY_EXIT : BY__EXIT);
    __atomic_store_n(&busy, false, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 4; i++)
        must(pthread_join(threads[i], NULL) == 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, begun[0] + begun[1] + begun[2] + begun[3]);
    assert_int_equal(counts.recorded + counts.dropped, counts.begun);
    assert_int_equal(kit_count_files(".arena"), 0);
}

/* Sessions begin and end while another thread forks. */
static void *begin_and_end(void *argument)
{
    while (__atomic_load_n(&busy, __ATOMIC_RELAXED)) {
        must_equal(start("turns.json"), PK_OK);
        record(100);
        must_equal(pk_stop(), PK_OK);
    }
    return argument;
}

static void sessions_begin_and_end(void **state)
{
    pthread_t thread;
    (void)state;
    __atomic_store_n(&busy, true, __ATOMIC_RELAXED);
    must(pthread_create(&thread, NULL, begin_and_end, NULL) == 0);
    for (unsigned i = 0; i < kit_scaled(60); i++)
        fork_once(BY__EXIT);
    __atomic_store_n(&busy, false, __ATOMIC_RELAXED);
    must(pthread_join(thread, NULL) == 0);
}

static int run_forks(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_leave_their_traces),
        cmocka_unit_test(threads_fork_amid_regions),
        cmocka_unit_test(others_are_inside),
        cmocka_unit_test(sessions_begin_and_end),
    };
    if (kit_sanitized("thread"))
        kit_skip("ThreadSanitizer mistakes the threads of a child for those of its parent");
    if (kit_sanitized("address"))
        kit_skip("AddressSanitizer's own locks may be held when another thread forks");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* ---- restarts ---- */

/* Sessions that begin and end while threads record at full speed: they take part in each as soon
 * as it is there, what they were doing when it ends is counted once, and nothing is left over. */

#define THREADS 6

static pk_region restart_outer = PK_REGION("outer"),
                 restart_inner = PK_REGION_OF(PK_COMPUTE, "inner"),
                 after = PK_REGION_OF(PK_IO, "after");
static pk_counter counter = PK_COUNTER("restart.counter", "");

static bool on, idle;

/* Calls about to be made, and calls that have returned: what any session has seen lies between. */
typedef struct worker {
    pthread_t thread;
    uint64_t begins_outer, begins_inner, ends_outer, ends_inner;
} worker;

static worker workers[THREADS];

static void count(uint64_t *at)
{
    __atomic_store_n(at, *at + 1, __ATOMIC_RELAXED);
}

static void record_once(worker *w, uint64_t i)
{
    count(&w->begins_outer);
    pk_region_begin(&restart_outer);
    count(&w->begins_inner);
    pk_region_begin(&restart_inner);
    if (i % 64 == 0)
        pk_region_add(&restart_inner, 1, 1);
    if (i % 16 == 0) {
        pk_region_next(&restart_inner, &after);
        pk_region_end(&after);
    } else {
        pk_region_end(&restart_inner);
    }
    count(&w->ends_inner);
    if (i % 512 == 0)
        pk_counter_set(&counter, (double)i);
    if (w == workers && i % 256 == 0)
        pk_step(1);
    pk_region_end(&restart_outer);
    count(&w->ends_outer);
}

static void *work(void *argument)
{
    worker *w = argument;
    for (uint64_t i = 0; __atomic_load_n(&on, __ATOMIC_RELAXED); i++) {
        record_once(w, i);
        while (__atomic_load_n(&idle, __ATOMIC_RELAXED))
            kit_sleep_us(500);
    }
    return NULL;
}

static void *work_briefly(void *argument)
{
    worker *w = argument;
    for (uint64_t i = 0; i < 200; i++)
        record_once(w, i);
    return NULL;
}

/* The same place, one short thread after the other. */
static void *work_in_turns(void *argument)
{
    pthread_t one;
    while (__atomic_load_n(&on, __ATOMIC_RELAXED)) {
        must(pthread_create(&one, NULL, work_briefly, argument) == 0);
        must(pthread_join(one, NULL) == 0);
    }
    return NULL;
}

static void begin_work(void)
{
    memset(workers, 0, sizeof workers);
    __atomic_store_n(&on, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_create(&workers[i].thread, NULL, i % 3 == 2 ? work_in_turns : work,
                            &workers[i]) == 0);
}

static void end_work(void)
{
    __atomic_store_n(&on, false, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < THREADS; i++)
        must(pthread_join(workers[i].thread, NULL) == 0);
}

static worker sum_up(void)
{
    worker sum = {0};
    for (unsigned i = 0; i < THREADS; i++) {
        sum.begins_outer += __atomic_load_n(&workers[i].begins_outer, __ATOMIC_RELAXED);
        sum.begins_inner += __atomic_load_n(&workers[i].begins_inner, __ATOMIC_RELAXED);
        sum.ends_outer += __atomic_load_n(&workers[i].ends_outer, __ATOMIC_RELAXED);
        sum.ends_inner += __atomic_load_n(&workers[i].ends_inner, __ATOMIC_RELAXED);
    }
    return sum;
}

static uint64_t calls_of(const pk_region *region)
{
    static pk_stats stats;
    pk_status status = pk_region_stats(region, &stats);
    assert_true(status == PK_OK || status == PK_ENOENT);
    return stats.count;
}

static void check_trace(const char *path, const pk_counts *c)
{
    trace t;
    __atomic_store_n(&idle, true, __ATOMIC_RELAXED);
    if (!trace_read(&t, path) || !trace_nests(&t))
        fail_msg("%s", t.why);
    assert_int_equal(t.count, c->written);
    assert_int_equal(t.count + c->unwritten, c->recorded + c->points);
    trace_free(&t);
    __atomic_store_n(&idle, false, __ATOMIC_RELAXED);
}

/* What nobody was counting while the session ran is the same after it. */
static void check_ended(const pk_counts *c, const worker *before)
{
    worker later = sum_up();
    uint64_t o = calls_of(&restart_outer), i = calls_of(&restart_inner);
    assert_true(c->recorded + c->dropped <= c->begun);
    assert_true(o <= later.begins_outer - before->ends_outer);
    assert_true(i <= later.begins_inner - before->ends_inner);
    assert_true(o + i + calls_of(&after) <= c->begun + THREADS); /* a call amid being dropped */
}

/* A trace is read back when the session is over: under these a megabyte takes half a minute. */
static uint64_t most_bytes(void)
{
    return kit_valgrind() || kit_sanitized("thread") ? 1u << 17 : 1u << 20;
}

static void one_session(unsigned number, const char *path, unsigned us)
{
    pk_counts c = {.size = sizeof c}, again = {.size = sizeof again};
    worker before = sum_up();
    assert_int_equal(
        pk_start(pk_options(.trace_path = path, .backends = "none",
                            .tuning = kit_tuning("trace_max_bytes=%llu,ring_records=%u",
                                                 (unsigned long long)most_bytes(),
                                                 number % 3 ? 64u << number % 5 : 4096))),
        PK_OK);
    kit_sleep_us(us);
    if (number % 4 == 0)
        assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    check_ended(&c, &before);
    if (path)
        check_trace(path, &c);
    kit_sleep_us(us / 4);
    check_ended(&c, &before);
    assert_int_equal(pk_get_counts(&again), PK_OK);
    assert_memory_equal(&c, &again, sizeof c);
}

/* Under ThreadSanitizer the collector runs after threads that are faster than it is, for seconds.
 */
static unsigned sessions(unsigned n)
{
    return kit_scaled(kit_sanitized("thread") ? n / 2 : n);
}

static void restarts(void **state)
{
    (void)state;
    unsigned files = kit_open_files(), threads = kit_threads();
    begin_work();
    for (unsigned i = 0; i < sessions(100); i++)
        one_session(i, i % 5 == 4 ? kit_path("restart.json") : NULL, i % 7 * 500);
    end_work();
    assert_true(kit_open_files() <= files + 1); /* the last session's memory, for its statistics */
    if (!kit_sanitized("thread"))               /* which has one of its own */
        assert_int_equal(kit_threads_left(threads), threads);
}

/* Statistics and counts are asked for from other threads in the midst of it. */
static void *ask(void *argument)
{
    static _Thread_local pk_stats stats;
    pk_counts c = {.size = sizeof c};
    while (__atomic_load_n(&on, __ATOMIC_RELAXED)) {
        pk_status status = pk_region_stats(argument, &stats);
        must(status == PK_OK || status == PK_ENOENT || status == PK_EOFF);
        status = pk_get_counts(&c);
        must(status == PK_OK || status == PK_EOFF);
        status = pk_flush();
        must(status == PK_OK || status == PK_EOFF);
        pk_thread_set_name("asking");
        kit_sleep_us(300);
    }
    return NULL;
}

static void restarts_while_others_ask(void **state)
{
    (void)state;
    pthread_t asking[2];
    begin_work();
    must(pthread_create(&asking[0], NULL, ask, &restart_outer) == 0);
    must(pthread_create(&asking[1], NULL, ask, &after) == 0);
    for (unsigned i = 0; i < sessions(60); i++)
        one_session(i, i % 5 == 4 ? kit_path("asked.json.gz") : NULL, 1000);
    end_work();
    must(pthread_join(asking[0], NULL) == 0);
    must(pthread_join(asking[1], NULL) == 0);
}

/* A thread that is amid a call when the session ends goes on a moment later. These do nothing else:
 * they end regions past the gate, in the midst of the stop and behind it. */
typedef struct latecomer {
    pthread_t thread;
    uint64_t chance;
    uint64_t begun;
    bool full_ring;
} latecomer;

static pthread_barrier_t all_open;

static void dawdle(uint64_t *chance)
{
    for (volatile uint64_t n = kit_random(chance) % 3000; n > 0;)
        n = n - 1;
}

static void *end_late(void *argument)
{
    latecomer *l = argument;
    for (l->begun = 0; l->begun < 50; l->begun++)
        pk_region_begin(l->begun % 2 ? &restart_inner : &restart_outer);
    pthread_barrier_wait(&all_open);
    while (l->full_ring && l->begun < 250) {
        pk_region_begin(&after);
        pk_region_end(&after);
        l->begun++;
    }
    pthread_barrier_wait(&all_open);
    for (unsigned i = 50; i-- > 0;) {
        dawdle(&l->chance);
        pk_region_end_on_(i % 2 ? &restart_inner : &restart_outer);
    }
    return NULL;
}

static void stop_amid_ends(unsigned number, bool full_ring, const char *path)
{
    latecomer late[8];
    pk_counts c = {.size = sizeof c}, again = c;
    uint64_t begun = 0, chance = number + 1;
    pthread_barrier_init(&all_open, NULL, 9);
    assert_int_equal(pk_start(pk_options(.trace_path = path, .backends = "none",
                                         .tuning = "ring_records=64,flush_ms=10")),
                     PK_OK);
    for (unsigned i = 0; i < 8; i++) {
        late[i] = (latecomer){.chance = number * 8 + i + 1, .full_ring = full_ring};
        must(pthread_create(&late[i].thread, NULL, end_late, &late[i]) == 0);
    }
    pthread_barrier_wait(&all_open);
    pthread_barrier_wait(&all_open);
    dawdle(&chance);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&c), PK_OK);
    for (unsigned i = 0; i < 8; i++) {
        must(pthread_join(late[i].thread, NULL) == 0);
        begun += late[i].begun;
    }
    assert_int_equal(pk_get_counts(&again), PK_OK);
    assert_memory_equal(&c, &again, sizeof c);
    assert_int_equal(c.recorded + c.dropped, c.begun);
    assert_in_range(c.begun, full_ring ? begun - 8 : begun, begun); /* less a drop under way */
    assert_in_range(calls_of(&restart_outer) + calls_of(&restart_inner) + calls_of(&after), c.begun,
                    begun);
    if (path)
        check_trace(path, &c);
    pthread_barrier_destroy(&all_open);
}

static void ends_amid_the_stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < kit_scaled(100); i++)
        stop_amid_ends(i, i % 4 == 1, i % 2 ? kit_path("amid.json") : NULL);
}

/* Started and stopped from many threads at once: one wins each time, nothing breaks. */
static void *start_and_stop(void *argument)
{
    uint64_t *wins = argument;
    for (unsigned i = 0; i < kit_scaled(30); i++) {
        pk_status started = pk_start(pk_options(.backends = "none", .tuning = "ring_records=64"));
        must(started == PK_OK || started == PK_EBUSY);
        pk_region_begin(&restart_outer);
        pk_region_end(&restart_outer);
        if (started == PK_OK) {
            must_equal(pk_stop(), PK_OK);
            (*wins)++;
        }
    }
    return NULL;
}

static void many_start(void **state)
{
    (void)state;
    pthread_t threads[8];
    uint64_t wins[8] = {0}, all = 0;
    for (unsigned i = 0; i < 8; i++)
        must(pthread_create(&threads[i], NULL, start_and_stop, &wins[i]) == 0);
    for (unsigned i = 0; i < 8; i++) {
        must(pthread_join(threads[i], NULL) == 0);
        all += wins[i];
    }
    assert_true(all > 0);
    assert_int_equal(pk_stop(), PK_EOFF);
}

static int run_restart(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarts),
        cmocka_unit_test(restarts_while_others_ask),
        cmocka_unit_test(ends_amid_the_stop),
        cmocka_unit_test(many_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* stress-lives NAME [ARGUMENT] */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"forks", run_forks},
        {"restart", run_restart},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
