/* Every library function that perfkit depends on, failing by each way that leads to it.
 *
 * Each run is a child of its own: a session with everything in it, in an empty folder. Whatever
 * fails, the calls answer with a status, the program's own work goes on, what was begun is recorded
 * or counted as dropped, a trace that is there is a whole document, and nothing else is left
 * behind: no file, no descriptor, no thread, no memory (LeakSanitizer's part).
 */
#include "failing.h"
#include "fault.h"
#include "kit.h"
#include "trace.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pk/pk.h>

#define THREADS 3
#define CALLS 400u /* per thread; more than a ring holds */

static pk_region outer = PK_REGION_OF(PK_COMPUTE, "outer");
static pk_region inner = PK_REGION_OF(PK_DATA, "inner \"quoted\" \xff");
static pk_counter level = PK_COUNTER("level", "m");

#define SOME_ERRNO 4321

static const char *costs; /* what sessions are asked for beside time */

/* A call of perfkit's, which leaves errno alone. */
#define STATUS(status, call) (errno = SOME_ERRNO, (status) = (call), must_equal(errno, SOME_ERRNO))

static void *work(void *arg)
{
    errno = SOME_ERRNO;
    for (unsigned i = 0; i < CALLS; i++) {
        pk_region_begin(&outer);
        pk_region_begin(&inner);
        pk_region_add(&inner, i, 2 * i);
        pk_region_next(&inner, pk_region_variant(&outer, "part", i % 3));
        pk_region_end(pk_region_variant(&outer, "part", i % 3));
        pk_region_end(&outer);
        pk_counter_set(&level, (double)i);
        if (arg && i % 50 == 0)
            pk_step(i);
        must_equal(errno, SOME_ERRNO);
    }
    return NULL;
}

/* The real ones: a thread that the program cannot start is not perfkit's doing. */
static unsigned work_on_threads(void)
{
    pthread_t threads[THREADS];
    unsigned made = 0;
    for (unsigned i = 0; i < THREADS; i++)
        made += pthread_create(&threads[made], NULL, work, NULL) == 0;
    work(&level);
    for (unsigned i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    return made + 1;
}

static void check_trace(const char *path, const pk_counts *counts, bool good)
{
    trace t;
    if (!trace_read(&t, path)) {
        fprintf(stderr, "%s: %s\n", path, t.why);
        kit_give_up(__FILE__, __LINE__, "the trace is a whole document", 0, 1);
    }
    must_equal(t.count, counts->written);
    must(!good || t.has_report);
    trace_free(&t);
}

/* begun is the program's own count; the rest has to add up to it. */
static void check_counts(const pk_counts *counts, unsigned threads)
{
    must_equal(counts->begun, 3ull * CALLS * threads);
    must_equal(counts->recorded + counts->dropped, counts->begun);
}

static void check_statistics(unsigned threads)
{
    static pk_stats stats;
    pk_status status = pk_region_stats(&inner, &stats);
    must(status == PK_OK || status == PK_ENOENT);
    must(stats.count <= (uint64_t)CALLS * threads);
}

/* What a start that failed leaves: nothing. */
static void check_no_start(pk_status status, unsigned files_open, unsigned threads)
{
    pk_counts counts = {.size = sizeof counts};
    must(pk_error_message()[0] != 0);
    must(strcmp(pk_status_name(status), "PK_E?") != 0);
    must_equal(pk_get_counts(&counts), PK_EOFF);
    must_equal(pk_stop(), PK_EOFF);
    must_equal(kit_count_files(""), 0);
    must_equal(kit_open_files(), files_open);
    must_equal(kit_threads_left(threads), threads);
}

static void run_session(const fault *f)
{
    char path[600];
    unsigned files_open = kit_open_files(), threads = kit_threads();
    pk_counts counts = {.size = sizeof counts};
    snprintf(path, sizeof path, "%s", kit_path(f->trace));
    fault_arm(f);
    pk_status started;
    STATUS(started,
           pk_start(pk_options(.trace_path = path, .ring_records = 256, .memory_bytes = 8u << 20,
                               .costs = costs, .report_path = kit_path("report.json"))));
    unsigned workers = work_on_threads();
    if (started) {
        check_no_start(started, files_open, threads);
        return;
    }
    pk_status flushed, stopped;
    STATUS(flushed, pk_flush());
    check_statistics(workers);
    STATUS(stopped, pk_stop());
    failing_arm(NULL, 0, FAILING_ERROR, 0);
    must(!f->harmless || (!flushed && !stopped));
    must_equal(pk_get_counts(&counts), PK_OK);
    check_counts(&counts, workers);
    check_trace(path, &counts, !flushed && !stopped);
    must(stopped || kit_count_files("report.json") == 1);
    must_equal(kit_count_files("") - kit_count_files(".arena") - kit_count_files("report.json"), 1);
    must(stopped || kit_count_files(".arena") == 0);
    must_equal(kit_open_files(), files_open + 1); /* the arena, until the next start */
}

static void sweep(fault f)
{
    fault_sweep(run_session, f);
}

static void memory(void **state)
{
    static const char *const functions[] = {"malloc",  "calloc",        "realloc",       "strdup",
                                            "strndup", "aligned_alloc", "open_memstream"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        sweep((fault){functions[i], FAILING_ERROR, ENOMEM, false, "run.json", false, {0}});
    sweep((fault){"malloc", FAILING_ERROR, ENOMEM, false, "run.json.gz", false, {0}});
    sweep((fault){"calloc", FAILING_ERROR, ENOMEM, false, "run.json.gz", false, {0}});
    (void)state;
}

static void mappings(void **state)
{
    sweep((fault){"mmap64", FAILING_ERROR, ENOMEM, false, "run.json", false, {0}});
    sweep((fault){"mremap", FAILING_ERROR, ENOMEM, false, "run.json", false, {0}});
    sweep((fault){"mprotect", FAILING_ERROR, ENOMEM, false, "run.json", false, {0}});
    sweep((fault){"ftruncate64", FAILING_ERROR, EFBIG, false, "run.json", false, {0}});
    sweep((fault){"posix_fallocate64", FAILING_ERROR, ENOSPC, false, "run.json", false, {0}});
    sweep((fault){"madvise", FAILING_ERROR, EINVAL, true, "run.json", false, {0}});
    (void)state;
}

/* Where each thread takes memory for its events. */
static void mappings_with_costs(void **state)
{
    costs = "software";
    sweep((fault){"mmap64", FAILING_ERROR, ENOMEM, false, "run.json", false, {0}});
    costs = NULL;
    (void)state;
}

static void files(void **state)
{
    sweep((fault){"open64", FAILING_ERROR, EACCES, false, "run.json", false, {0}});
    sweep((fault){"open64", FAILING_ERROR, EMFILE, false, "run.json", false, {0}});
    sweep((fault){"fcntl64", FAILING_ERROR, EMFILE, true, "run.json", false, {0}});
    sweep((fault){"rename", FAILING_ERROR, EACCES, false, "run.json", false, {0}});
    sweep((fault){"getrandom", FAILING_ERROR, EAGAIN, true, "run.json", false, {0}});
    (void)state;
}

static void writes(void **state)
{
    sweep((fault){"pwritev64", FAILING_ERROR, ENOSPC, false, "run.json", false, {0}});
    sweep((fault){"pwritev64", FAILING_ERROR, EIO, false, "run.json.gz", false, {0}});
    sweep((fault){"pwrite64", FAILING_ERROR, ENOSPC, false, "run.json", false, {0}});
    (void)state;
}

/* Interrupted and short writes are no failures: nothing is lost. */
static void writes_that_go_on(void **state)
{
    sweep((fault){"pwritev64", FAILING_ERROR, EINTR, true, "run.json", false, {0}});
    sweep((fault){"pwritev64", FAILING_SHORT, 0, true, "run.json", false, {0}});
    sweep((fault){"pwritev64", FAILING_SHORT, 0, true, "run.json.gz", false, {0}});
    sweep((fault){"pwrite64", FAILING_ERROR, EINTR, true, "run.json", false, {0}});
    (void)state;
}

static void threads(void **state)
{
    sweep((fault){"pthread_create", FAILING_ERROR, EAGAIN, false, "run.json", false, {0}});
    sweep((fault){"pthread_setspecific", FAILING_ERROR, ENOMEM, false, "run.json", false, {0}});
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory),
        cmocka_unit_test(mappings),
        cmocka_unit_test(mappings_with_costs),
        cmocka_unit_test(files),
        cmocka_unit_test(writes),
        cmocka_unit_test(writes_that_go_on),
        cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
