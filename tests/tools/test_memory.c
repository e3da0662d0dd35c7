/* Parts of commands without memory: all of it, a reason, or the command's end. NAME FILE... */
#include "failing_memory.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "compare/compare.h"
#include "load/load.h"
#include "read/json.h"
#include "read/scan.h"
#include "rows/rows.h"

/* ---- part of a command with an allocation that fails ---- */

/* Part of a command with an allocation that fails, in a process of its own: for want of memory a
 * command ends (tools/memory.h). */

typedef void failing(long n);
typedef bool part_of_command(const void *of); /* false: it went wrong without words */

/* How it ended: it had all the memory it asked for, did without some, or said that there was none
 * and exited as commands do. Anything else is WRONG. */
typedef enum ending { WHOLE, DID_WITHOUT, NO_MEMORY, WRONG } ending;

#ifdef __SANITIZE_ADDRESS__
/* LeakSanitizer asks for it as a process ends. A command that ends for want of memory gives nothing
 * back, and to look for it takes as long as all else in such a child. */
static bool ends_by_exit;

int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return ends_by_exit;
}
#else
static bool ends_by_exit;
#endif

static ending run_failing(failing *way, long n, part_of_command *does, const void *of)
{
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        ends_by_exit = true;
        way(n);
        bool right = does(of);
        _exit(!right ? WRONG : memory_has_failed() ? DID_WITHOUT : WHOLE);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return WRONG;
    return WEXITSTATUS(status) <= NO_MEMORY ? (ending)WEXITSTATUS(status) : WRONG;
}

/* Under a sanitizer the two ways to fail share the calls. */
#ifdef __SANITIZE_ADDRESS__
#define ENDING_EACH 2
#else
#define ENDING_EACH 1
#endif

/* With each allocation failing that tells something by it (failing_memory.h), and with none; how
 * many there are in all, or -1 if one of the runs went wrong. first: of sweeps that are called from
 * one line; in the others those allocations fail that have not been come to in the same way. */
static long sweep_memory(failing *way, part_of_command *does, const void *of, bool first)
{
    size_t count;
    long total;
    if (first)
        memory_watch(0);
    else
        memory_watch_on(0);
    bool right = does(of);
    memory_fails_after(-1);
    const long *chosen = memory_watched(&count, &total);
    for (size_t i = way == memory_fails_once ? ENDING_EACH - 1 : 0; right && i < count;
         i += ENDING_EACH) {
        ending e = run_failing(way, chosen[i], does, of);
        right = e == DID_WITHOUT || e == NO_MEMORY;
    }
    return right && run_failing(way, total, does, of) == WHOLE ? total : -1;
}

/* ---- files that are loaded ---- */

/* Each file of the command line loaded with the n-th allocation failing: a summary, a reason, or
 * the command's end. */

static int files;
static char **paths;

static bool load(const void *path)
{
    pki_summary summary;
    complaint why = {""};
    bool loaded = load_run(path, &(load_options){.per_thread = true}, &summary, &why);
    if (loaded)
        pki_summary_finish(&summary);
    return loaded == !why.text[0] && (loaded || memory_has_failed());
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < files; i++)
        assert_in_range(sweep_memory(memory_fails_after, load, paths[i], i == 0), 20, 100000);
    for (int i = 0; i < files; i++) {
        assert_in_range(sweep_memory(memory_fails_once, load, paths[i], i == 0), 20, 100000);
        assert_true(load(paths[i])); /* here, where a leak would be seen */
    }
}

/* A small file can be a large tree, or many empty rows: what these may take is bounded. */
static void memory_is_bounded(void **state)
{
    (void)state;
    pki_summary summary;
    complaint why = {""};
    scan_limit_memory(2000);
    assert_false(load_run(paths[0], &(load_options){0}, &summary, &why));
    assert_string_equal(why.text, "is too large: what it says would take more memory than is good");
    scan_limit_memory(SCAN_MEMORY_MOST);
    json_limit_memory(2000);
    why.text[0] = '\0';
    assert_false(load_run(paths[5], &(load_options){0}, &summary, &why));
    assert_string_equal(why.text, "is too large to be read whole (only traces with one event per"
                                  " line are read piece by piece)");
}

static int run_load_memory(int argc, char **argv)
{
    files = argc - 1;
    paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(memory_is_bounded),
    };
    return files ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

/* ---- files as rows, and these in order ---- */

/* Each file of the command line as rows, and these in order, with the n-th allocation failing: all
 * of it, a reason, or the command's end. */

static int rows_memory_files;
static char **rows_memory_paths;

static bool read_and_order(const void *path)
{
    rows_wish wish = {.lenient = true};
    order_by by = {.of = ROWS_CALLS, .count = 2, .columns = {6, 0}, .descending = {true, false}};
    complaint why = {""};
    order o = {.count = 0};
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        wish.columns[of] = ROWS_ALL;
    rows *r = rows_create(&wish);
    bool added = rows_add_file(r, path, false, &why);
    bool right = added == !why.text[0] && (added || memory_has_failed()) &&
                 (!added || (order_make(&o, r, &by) && rows_count(r, ROWS_FILES) == 1));
    order_finish(&o);
    rows_destroy(r);
    return right;
}

static void rows_memory_every_allocation_may_fail(void **state)
{
    (void)state;
    for (int i = 0; i < rows_memory_files; i++)
        assert_in_range(
            sweep_memory(memory_fails_after, read_and_order, rows_memory_paths[i], i == 0), 50,
            100000);
    for (int i = 0; i < rows_memory_files; i++) {
        assert_in_range(
            sweep_memory(memory_fails_once, read_and_order, rows_memory_paths[i], i == 0), 50,
            100000);
        assert_true(read_and_order(rows_memory_paths[i])); /* here, where a leak would be seen */
    }
}

static int run_rows_memory(int argc, char **argv)
{
    rows_memory_files = argc - 1;
    rows_memory_paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_memory_every_allocation_may_fail)};
    return rows_memory_files ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

/* ---- files of benchmarks that are compared ---- */

/* Two files of the command line loaded, compared and taken into another with the n-th allocation
 * failing: a comparison, a reason, or the command's end. */

static char **compare_memory_paths;

static bool compare_and_take(bench_file *old, bench_file *fresh)
{
    const compare_options options = {
        COMPARE_THRESHOLD, COMPARE_ALPHA, COMPARE_MOMENTS, false, false, NULL};
    const bench_file *olds[] = {old};
    complaint why = {""};
    comparison c;
    bench_file all;
    bool compared = compare_files(olds, 1, fresh, &options, &c, &why);
    if (compared)
        comparison_finish(&c);
    bench_file_init(&all, "all");
    bench_file_append(&all, fresh, "id", 1);
    bench_file_finish(&all);
    return compared;
}

static bool load_and_compare(const void *of)
{
    char *const *both = of;
    bench_file old, fresh;
    complaint why = {""};
    if (!bench_file_load(&old, both[0], &why))
        return why.text[0] && memory_has_failed();
    bool loaded = bench_file_load(&fresh, both[1], &why);
    bool compared = loaded && compare_and_take(&old, &fresh);
    if (loaded)
        bench_file_finish(&fresh);
    bench_file_finish(&old);
    return loaded == !why.text[0] && (compared || memory_has_failed());
}

static void compare_memory_every_allocation_may_fail(void **state)
{
    (void)state;
    assert_in_range(sweep_memory(memory_fails_after, load_and_compare, compare_memory_paths, true),
                    100, 100000);
    assert_in_range(sweep_memory(memory_fails_once, load_and_compare, compare_memory_paths, true),
                    100, 100000);
    assert_true(load_and_compare(compare_memory_paths)); /* here, where a leak would be seen */
}

static int run_compare_memory(int argc, char **argv)
{
    compare_memory_paths = argv + 1;
    json_limit_memory((size_t)1 << 30);
    const struct CMUnitTest tests[] = {cmocka_unit_test(compare_memory_every_allocation_may_fail)};
    return argc == 3 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}

/* test_memory load|rows|compare FILE... */
int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
        {"load", run_load_memory},
        {"rows", run_rows_memory},
        {"compare", run_compare_memory},
    };
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argc - 1, argv + 1);
    return 2;
}
