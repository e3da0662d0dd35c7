/* A child is off until it starts anew, with files of its own; the parent goes on as if nothing had
 * happened. Also from a thread amid its regions, and while other threads are inside perfkit.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include <pk/pk.h>

#include "kit.h"
#include "trace.h"

static pk_region outer = PK_REGION("outer"), inner = PK_REGION_OF(PK_COMPUTE, "inner"),
                 of_child = PK_REGION("of a child");

static pk_status start(const char *pattern)
{
    return pk_start(
        pk_options(.trace_path = kit_path(pattern), .ring_records = 256, .backends = "none"));
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
    pk_thread_name("off");
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

/* ---- while others are inside ---- */

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

int main(void)
{
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
