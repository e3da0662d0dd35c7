/* The same of a session as it runs for weeks: windows, metrics, captures from history, a trace in
 * several files.
 *
 * Without a thread of perfkit's, so that each run makes the same calls. Whatever fails, the calls
 * answer with a status, what was begun is recorded or counted as dropped, each file that is there
 * is whole, and no half one lies beside them.
 */
#include "failing.h"
#include "fault.h"
#include "kit.h"
#include "trace.h"
#include "../unit/lengthy.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <glob.h>
#include <jansson.h>

#include <pk/pk.h>

#define STEPS 24u

static pk_region work = PK_REGION_OF(PK_COMPUTE, "work");
static pk_counter loss = PK_COUNTER("loss", "");
static pk_region *busy = &work;

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
        if (step % 4 == 3)
            pk_flush();
    }
    return begun;
}

/* ---- what lies there ---- */

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

static void check_trace(const char *path)
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
    unsigned known = each("run*.json", check_trace) + each("slow-*.json", check_trace) +
                     each("windows.jsonl*", check_windows) + each("pk.prom", check_metrics);
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

/* ---- the session ---- */

static pk_options options(const fault *f, char (*paths)[600])
{
    static const char *const names[] = {"windows.jsonl", "pk.prom", "slow-%s.json"};
    snprintf(paths[0], sizeof *paths, "%s", kit_path(f->trace));
    for (unsigned i = 0; i < 3; i++)
        snprintf(paths[i + 1], sizeof *paths, "%s", kit_path(names[i]));
    return (pk_options){.size = sizeof(pk_options),
                        .trace_path = paths[0],
                        .windows_path = paths[1],
                        .window_steps = 8,
                        .metrics_path = paths[2],
                        .capture_path = paths[3],
                        .capture = "every=10;steps=3-4",
                        .history_steps = 8,
                        .collector = "none",
                        .backends = "none",
                        .memory_bytes = 16u << 20};
}

static void check_no_start(unsigned files_open)
{
    must(pk_error_message()[0] != 0);
    must_equal(pk_stop(), PK_EOFF);
    must_equal(kit_count_files(""), 0);
    must_equal(kit_open_files(), files_open);
}

static void run(const fault *f, unsigned regions, uint64_t rotate)
{
    char paths[4][600];
    unsigned files_open = kit_open_files(), threads = kit_threads();
    pk_counts counts = {.size = sizeof counts};
    pk_options o = options(f, paths);
    o.trace_rotate_bytes = rotate;
    o.trace_keep = rotate ? 3 : 0;
    fault_arm(f);
    pk_status started = pk_start(&o);
    uint64_t begun = make_steps(regions);
    if (started) {
        check_no_start(files_open);
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
    busy = rotated ? &lengthy : &work;
    run(f, rotated ? 900 : 20, rotated ? 2u << 20 : 0);
}

static void sweep(const char *function, failing_way how, int error)
{
    fault_sweep(make_run,
                (fault){function, how, error, how == FAILING_SHORT, "run.json", false, {0}});
}

static void memory(void **state)
{
    (void)state;
    sweep("malloc", FAILING_ERROR, ENOMEM);
    sweep("calloc", FAILING_ERROR, ENOMEM);
    sweep("realloc", FAILING_ERROR, ENOMEM);
    sweep("mmap64", FAILING_ERROR, ENOMEM);
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

static void files(void **state)
{
    (void)state;
    sweep_both((fault){"open64", FAILING_ERROR, EMFILE, false, "run.json", false, {0}},
               (fault){"open64", FAILING_ERROR, ENOSPC, false, "run.json", true, {0}});
    sweep_both((fault){"rename", FAILING_ERROR, EACCES, false, "run.json", false, {0}},
               (fault){"rename", FAILING_ERROR, EACCES, false, "run.json", true, {0}});
    fault_sweep(make_run, (fault){"open64", FAILING_ERROR, ENOSPC, false, "run.json", true, {0}});
    sweep("ftruncate64", FAILING_ERROR, EFBIG);
}

static void writes(void **state)
{
    (void)state;
    sweep("pwritev64", FAILING_ERROR, ENOSPC);
    sweep("pwrite64", FAILING_ERROR, ENOSPC);
    sweep("pwritev64", FAILING_SHORT, 0);
    sweep("pwrite64", FAILING_SHORT, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory), cmocka_unit_test(files),
                                       cmocka_unit_test(writes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
