/* Every library function that perfkit depends on, failing by each way that leads to it. */
#include "failing.h"
#include "kit.h"
#include "rounds.h"
#include "trace.h"
#include "tuning.h"

#include <pk/pk.h>

#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <jansson.h>

#include "../unit/lengthy.h"

/* ---- a session in which one call of one function fails ---- */

/* A session in which one call of one function fails, again and again in a child of its own, until
 * each way to that function has met it. */

typedef struct fault {
    const char *function;
    failing_way way;
    int error;
    bool harmless; /* nothing may be lost by it */
    const char *trace;
    bool once; /* of each way the first call alone */
    way which; /* the call; none at first, when the ways are counted */
} fault;

/* ---- sweeps ---- */

#define NOT_MADE 77 /* a child's status: the call that was to fail was never made */

typedef struct attempt {
    void (*session)(const fault *f);
    const fault *fault;
} attempt;

/* What a session does once it is ready. */
static void fault_arm(const fault *f)
{
    failing_arm(f->function, f->which.name ? &f->which : NULL, f->way, f->error);
}

static void child(void *arg)
{
    const attempt *a = arg;
    a->session(a->fault);
    if (!failing_hit())
        exit(NOT_MADE);
}

static int run(void (*session)(const fault *f), const fault *f)
{
    kit_clean();
    int status = kit_child(child, &(attempt){session, f}, 240);
    if (status != 0 && status != NOT_MADE)
        fail_msg("%s failing (error %d) at call %u by way %u of %u: the child ended with %d",
                 f->function, f->error, f->which.times, (unsigned)f->which.name,
                 failing_ways->count, status);
    return status;
}

static ways *shared_ways(void)
{
    if (!failing_ways)
        failing_ways = mmap(NULL, sizeof *failing_ways, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(failing_ways, MAP_FAILED);
    memset(failing_ways, 0, sizeof *failing_ways);
    return failing_ways;
}

/* The next call that tells something, behind this one; false: there is none. */
static bool next_call(const ways *w, bool once, unsigned *at, way *which)
{
    for (; *at < WAYS_MOST; (*at)++, which->times = 0)
        while (which->times < w->seen[*at].times)
            if (way_tells(++which->times) && (which->times == 1 || !once)) {
                which->name = w->seen[*at].name;
                return true;
            }
    return false;
}

/* Leaves in w the ways that are new. */
static void without_known(ways *w, ways *known)
{
    for (unsigned at = 0; at < WAYS_MOST; at++)
        if (w->seen[at].name && ways_count(known, w->seen[at].name) > 1)
            w->seen[at].times = 0;
}

static void check_calls(const fault *f, const ways *w, unsigned made, unsigned chosen)
{
    if (made == 0)
        fail_msg("%s is never called: this tests nothing", f->function);
    if (2 * made < chosen)
        fail_msg("%s: only %u of %u calls came again: ways have other names there", f->function,
                 made, chosen);
    if (w->count == WAYS_MOST / 2)
        fail_msg("%s: more ways than there is room for", f->function);
}

/* First with none that fails. All from one line, which is part of each way. Threads may come by a
 * way less often than they did when the ways were counted. */
static void sweep_once(void (*session)(const fault *f), fault *f, ways *known, ways *w,
                       unsigned *made, unsigned *chosen)
{
    unsigned at = 0;
    *made = *chosen = 0;
    f->which = (way){0};
    do {
        int status = run(session, f);
        assert_true(f->which.name || status == NOT_MADE);
        if (!f->which.name)
            without_known(w, known);
        *chosen += f->which.name != 0;
        *made += status == 0;
    } while (next_call(w, f->once, &at, &f->which));
}

/* But for the ways in `known`, to which it adds its own. Ways have the same names in two sweeps
 * only if both are called from one line. On a busy machine a collector makes calls that a flush
 * makes elsewhere: where few came again, all of it is done once more. */
static void fault_sweep_on(void (*session)(const fault *f), fault f, ways *known)
{
    unsigned made = 0, chosen = 1;
    static ways before;
    ways *w = NULL;
    memcpy(&before, known, sizeof before);
    (void)way_here(); /* loads what it needs, here and for all children */
    for (int tries = 0; tries < 2 && 2 * made < chosen; tries++) {
        memcpy(known, &before, sizeof before);
        w = shared_ways();
        sweep_once(session, &f, known, w, &made, &chosen);
    }
    check_calls(&f, w, made, chosen);
}

/* `session` arms it and checks with must() what is left; in an empty kit_folder(). */
static void fault_sweep(void (*session)(const fault *f), fault f)
{
    static ways none;
    memset(&none, 0, sizeof none);
    fault_sweep_on(session, f, &none);
}

/* ---- sweep ---- */

/* Every library function that perfkit depends on, failing by each way that leads to it.
 *
 * Each run is a child of its own: a session with everything in it, in an empty folder. Whatever
 * fails, the calls answer with a status, the program's own work goes on, what was begun is
 * recorded or counted as dropped, a trace that is there is a whole document, and nothing else is
 * left behind: no file, no descriptor, no thread, no memory (LeakSanitizer's part). */

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
    STATUS(started, pk_start(pk_options(.trace_path = path, .memory_bytes = 8u << 20,
                                        .costs = costs, .report_path = kit_path("report.json"),
                                        .tuning = "ring_records=256")));
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

static int run_sweep(int argc, char **argv)
{
    (void)argc, (void)argv;
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

/* ---- the same of a session as it runs for weeks ---- */

/* Windows, metrics, captures from history, a trace in several files.
 *
 * The rounds are this thread's, so that each run makes the same calls. Whatever fails, the calls
 * answer with a status, what was begun is recorded or counted as dropped, each file that is there
 * is whole, and no half one lies beside them. */

#define STEPS 24u

static pk_region production_work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_counter loss = PK_COUNTER("loss", "");
static pk_region *busy = &production_work;

static uint64_t make_step(unsigned step, unsigned regions)
{
    for (unsigned i = 0; i < regions; i++) {
        pk_region_begin(busy);
        pk_region_end(busy);
    }
    pk_counter_set(&loss, 1.0 / (step + 1));
    pk_step(8);
    return regions;
}

/* A failing flush loses nothing but what it says. */
static uint64_t make_steps(unsigned regions)
{
    uint64_t begun = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        begun += make_step(step, regions);
        if (step % 4 == 3) {
            kit_round();
            pk_flush();
        }
    }
    return begun;
}

/* -- what lies there -- */

static unsigned each(const char *pattern, void (*check)(const char *path))
{
    glob_t found;
    unsigned count = 0;
    if (glob(kit_path(pattern), 0, NULL, &found) == 0) {
        count = (unsigned)found.gl_pathc;
        for (unsigned i = 0; i < count; i++)
            check(found.gl_pathv[i]);
    }
    globfree(&found);
    return count;
}

static void production_check_trace(const char *path)
{
    trace t;
    if (!trace_read(&t, path)) {
        fprintf(stderr, "%s: %s\n", path, t.why);
        kit_give_up(__FILE__, __LINE__, "the trace is a whole document", 0, 1);
    }
    trace_free(&t);
}

static void check_windows(const char *path)
{
    trace t;
    size_t bytes = 0;
    char *text = trace_load(&t, path, &bytes);
    must(text != NULL);
    for (size_t at = 0; at < bytes;) {
        const char *newline = memchr(text + at, '\n', bytes - at);
        must(newline != NULL);
        json_t *line = json_loadb(text + at, (size_t)(newline - text) - at, 0, NULL);
        must(json_is_object(line));
        json_decref(line);
        at = (size_t)(newline + 1 - text);
    }
    free(text);
}

static void check_metrics(const char *path)
{
    char line[4096] = "";
    unsigned samples = 0;
    FILE *file = fopen(path, "r");
    must(file != NULL);
    while (fgets(line, sizeof line, file)) {
        must(line[strlen(line) - 1] == '\n');
        must(line[0] == '#' || strncmp(line, "pk_", 3) == 0);
        samples += line[0] != '#';
    }
    fclose(file);
    must(samples > 0);
}

static void check_files(void)
{
    unsigned known = each("run*.json", production_check_trace) +
                     each("slow-*.json", production_check_trace) +
                     each("windows.jsonl*", check_windows) + each("pk.prom", check_metrics);
    if (kit_count_files("") - kit_count_files(".arena") != known)
        (void)!system("ls -la >&2"); /* which one is it? */
    must_equal(kit_count_files("") - kit_count_files(".arena"), known);
}

/* Where nothing has failed, all of it is there: else the rest tests nothing. */
static void check_all(bool rotated)
{
    must_equal(kit_count_files("slow-"), 3); /* step 3, 10, 20 */
    must_equal(kit_count_files("windows.jsonl"), 1);
    must_equal(kit_count_files("pk.prom"), 1);
    must_equal(kit_count_files("run"), rotated ? 3 : 1);
}

/* -- the session -- */

static pk_options options(const fault *f, char (*paths)[600])
{
    static const char *const names[] = {"windows.jsonl", "pk.prom", "slow-%s.json"};
    snprintf(paths[0], sizeof *paths, "%s", kit_path(f->trace));
    for (unsigned i = 0; i < 3; i++)
        snprintf(paths[i + 1], sizeof *paths, "%s", kit_path(names[i]));
    return (pk_options){.size = sizeof(pk_options),
                        .trace_path = paths[0],
                        .windows_path = paths[1],
                        .metrics_path = paths[2],
                        .capture_path = paths[3],
                        .capture = "every=10;steps=3-4",
                        .history_steps = 8,
                        .backends = "none",
                        .memory_bytes = 16u << 20};
}

static void production_check_no_start(unsigned files_open)
{
    must(pk_error_message()[0] != 0);
    must_equal(pk_stop(), PK_EOFF);
    must_equal(kit_count_files(""), 0);
    must_equal(kit_open_files(), files_open);
}

static void production_run(const fault *f, unsigned regions, uint64_t rotate)
{
    char paths[4][600];
    unsigned files_open = kit_open_files(), threads = kit_threads();
    pk_counts counts = {.size = sizeof counts};
    pk_options o = options(f, paths);
    o.tuning = kit_tuning("window_steps=8,trace_rotate_bytes=%llu,trace_keep=%u",
                          (unsigned long long)rotate, rotate ? 3 : 0);
    fault_arm(f);
    pk_status started = pk_start(&o);
    kit_end_collector();
    uint64_t begun = make_steps(regions);
    if (started) {
        production_check_no_start(files_open);
        return;
    }
    pk_status stopped = pk_stop();
    failing_arm(NULL, 0, FAILING_ERROR, 0);
    must(!f->harmless || !stopped);
    must_equal(pk_get_counts(&counts), PK_OK);
    must_equal(counts.begun, begun);
    must_equal(counts.recorded + counts.dropped, begun);
    must(stopped || kit_count_files("windows.jsonl") == 1);
    check_files();
    if (!failing_hit())
        check_all(rotate != 0);
    must_equal(kit_open_files(), files_open + 1); /* the arena, until the next start */
    must_equal(kit_threads_left(threads), threads);
}

static bool rotated; /* the trace goes through four files, of which three stay */

static void make_run(const fault *f)
{
    busy = rotated ? &lengthy : &production_work;
    production_run(f, rotated ? 900 : 20, rotated ? 2u << 20 : 0);
}

static void production_sweep(const char *function, failing_way how, int error)
{
    fault_sweep(make_run,
                (fault){function, how, error, how == FAILING_SHORT, "run.json", false, {0}});
}

static void production_memory(void **state)
{
    (void)state;
    production_sweep("malloc", FAILING_ERROR, ENOMEM);
    production_sweep("calloc", FAILING_ERROR, ENOMEM);
    production_sweep("realloc", FAILING_ERROR, ENOMEM);
    production_sweep("mmap64", FAILING_ERROR, ENOMEM);
}

/* A trace in one file, and then what else is called where there are several. */
static void sweep_both(fault one, fault several)
{
    static ways known;
    memset(&known, 0, sizeof known);
    for (int i = 0; i < 2; i++) {
        rotated = i == 1;
        fault_sweep_on(make_run, rotated ? several : one, &known);
    }
    rotated = false;
}

static void production_files(void **state)
{
    (void)state;
    sweep_both((fault){"open64", FAILING_ERROR, EMFILE, false, "run.json", false, {0}},
               (fault){"open64", FAILING_ERROR, ENOSPC, false, "run.json", true, {0}});
    sweep_both((fault){"rename", FAILING_ERROR, EACCES, false, "run.json", false, {0}},
               (fault){"rename", FAILING_ERROR, EACCES, false, "run.json", true, {0}});
    fault_sweep(make_run, (fault){"open64", FAILING_ERROR, ENOSPC, false, "run.json", true, {0}});
    production_sweep("ftruncate64", FAILING_ERROR, EFBIG);
}

static void production_writes(void **state)
{
    (void)state;
    production_sweep("pwritev64", FAILING_ERROR, ENOSPC);
    production_sweep("pwrite64", FAILING_ERROR, ENOSPC);
    production_sweep("pwritev64", FAILING_SHORT, 0);
    production_sweep("pwrite64", FAILING_SHORT, 0);
}

static int run_production(int argc, char **argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(production_memory),
                                       cmocka_unit_test(production_files),
                                       cmocka_unit_test(production_writes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* fault NAME */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"sweep", run_sweep},
        {"production", run_production},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
