/* A whole program of benchmarks, and the system's watchdog. */
#include "valgrind.h"

#include <pk/bench.h>
#include <pk/pk.h>

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "bench/queue.h"

/* ---- a whole program of benchmarks, run with arguments ---- */

/* What it prints and writes, and its exit status. */

static bool broken, absent;

PK_BENCH(first)
{
    PK_BENCH_LOOP {
        pk_clobber();
    }
}
PK_BENCH_ARGS(first, "n", 1, 2)

PK_BENCH(second)
{
    if (broken)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_FAILED, "broken");
    if (absent)
        pk_bench_give_up(bench, PK_BENCH_OUTCOME_SKIPPED, "absent");
    PK_BENCH_LOOP {
        void *block = malloc(8);
        pk_keep(block); /* else clang drops the pair */
        free(block);
    }
}

PK_BENCH_COUNT_ALLOCATIONS

static char folder[] = "/tmp/perfkit-test-XXXXXX", out[4096], err[4096];

static void read_back(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(fd);
}

static int temporary(void)
{
    int fd = memfd_create("printed", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The program's exit status; what it printed goes to out and err. */
static int run(const char *line)
{
    char words[512], *argv[32] = {(char[]){"bench"}}, *rest = NULL;
    int argc = 1, to_out = temporary(), to_err = temporary();
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    fflush(NULL);
    int real_out = dup(STDOUT_FILENO), real_err = dup(STDERR_FILENO);
    dup2(to_out, STDOUT_FILENO);
    dup2(to_err, STDERR_FILENO);
    int status = pk_bench_main(argc, argv);
    dup2(real_out, STDOUT_FILENO);
    dup2(real_err, STDERR_FILENO);
    close(real_out);
    close(real_err);
    read_back(to_out, out, sizeof out);
    read_back(to_err, err, sizeof err);
    return status;
}

#define QUICK " --max-samples 5 --max-warmup 1ms "

static bool said(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

static void lists(void **state)
{
    (void)state;
    assert_int_equal(run("--list"), 0);
    assert_string_equal(out, "first/n:1\nfirst/n:2\nsecond\n");
    assert_int_equal(run("--list --filter 2$|sec"), 0);
    assert_string_equal(out, "first/n:2\nsecond\n");
    assert_int_equal(run("--list --filter=-^first"), 0);
    assert_string_equal(out, "second\n");
    assert_int_equal(run("--list --filter nothing"), 0);
    assert_string_equal(out, "");
    assert_int_equal(run("--version"), 0);
    assert_true(said(out, pk_version()));
    assert_int_equal(run("--help"), 0);
    assert_true(said(out, "usage: bench"));
    assert_string_equal(err, "");
}

static void unusable_arguments(void **state)
{
    (void)state;
    assert_int_equal(run("--wrong"), 2);
    assert_true(said(err, "perfkit: there is no option \"--wrong\""));
    assert_int_equal(run("--filter nothing"), 2);
    assert_true(said(err, "no benchmark has a name"));
    assert_int_equal(run("--filter ("), 2);
    assert_true(said(err, "no regular expression"));
    assert_int_equal(run(QUICK "--json /nowhere/x.json"), 2);
    assert_true(said(err, "/nowhere/x.json: No such file"));
    assert_int_equal(run("--threads 2"), 2);
    assert_string_equal(out, "");
}

static void measures(void **state)
{
    (void)state;
    assert_int_equal(run(QUICK), 0);
    assert_true(said(out, "\nfirst/n:1 ") && said(out, "\nfirst/n:2 ") && said(out, "\nsecond "));
    assert_string_equal(err, ""); /* no terminal: no progress */
    assert_int_equal(run(QUICK "--quiet"), 0);
    assert_string_equal(out, "");
    assert_int_equal(run(QUICK "--csv - --filter second --repetitions 3 --alone"), 0);
    assert_true(said(out, "\n\"second\",2,1,5,"));
    assert_int_equal(strncmp(out, "name,", 5), 0);
}

static void failures_show_in_the_status(void **state)
{
    (void)state;
    broken = true;
    assert_int_equal(run(QUICK), 1);
    assert_true(said(out, "failed: broken"));
    broken = false;
    absent = true;
    assert_int_equal(run(QUICK), 0);
    assert_true(said(out, "skipped: absent"));
    absent = false;
}

static void files(void **state)
{
    (void)state;
    char line[512], path[128];
    struct stat is;
    snprintf(line, sizeof line, QUICK "--json %s/a --csv %s/b --markdown %s/c --junit %s/d", folder,
             folder, folder, folder);
    assert_int_equal(run(line), 0);
    for (char name = 'a'; name <= 'd'; name++) {
        snprintf(path, sizeof path, "%s/%c", folder, name);
        assert_int_equal(stat(path, &is), 0);
        assert_true(is.st_size > 100);
        unlink(path);
    }
}

/* Told before anything is measured, and left as it was. */
static void what_is_no_file_is_refused(void **state)
{
    static const char *const forms[] = {"json", "csv", "markdown", "junit"};
    char line[512], link[128];
    struct stat is;
    (void)state;
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink("/proc/self/fd/1", link), 0);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        snprintf(line, sizeof line, QUICK "--%s %s", forms[i], link);
        assert_int_equal(run(line), 2);
        assert_string_equal(out, "");
        assert_true(said(err, "/link: is a link to what a process has open: name a file, or \"-\" "
                              "for the standard output"));
        assert_true(lstat(link, &is) == 0 && S_ISLNK(is.st_mode));
    }
    unlink(link);
}

/* A sanitizer's malloc is its own. */
static void allocations_are_counted(void **state)
{
    (void)state;
#if defined(__GLIBC__) && !defined(PK_BENCH_SANITIZED_)
    if (under_valgrind())
        skip();
    assert_int_equal(run(QUICK "--allocations --filter second"), 0);
    assert_true(said(out, "1 allocations, 8 allocated bytes"));
#else
    skip();
#endif
}

static void a_full_disk_is_no_success(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), real = dup(STDOUT_FILENO);
    char *argv[] = {(char[]){"bench"}, (char[]){"--list"}};
    int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC), real_err = dup(STDERR_FILENO);
    fflush(NULL);
    dup2(full, STDOUT_FILENO);
    dup2(quiet, STDERR_FILENO);
    int status = pk_bench_main(2, argv);
    dup2(real, STDOUT_FILENO);
    dup2(real_err, STDERR_FILENO);
    close(full);
    close(quiet);
    close(real);
    close(real_err);
    assert_int_equal(status, 2);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static const struct CMUnitTest bench_main_tests[] = {
    cmocka_unit_test(lists),
    cmocka_unit_test(unusable_arguments),
    cmocka_unit_test(measures),
    cmocka_unit_test(failures_show_in_the_status),
    cmocka_unit_test(files),
    cmocka_unit_test(what_is_no_file_is_refused),
    cmocka_unit_test(allocations_are_counted),
    cmocka_unit_test(a_full_disk_is_no_success),
};

/* ---- the system's watchdog, on its own thread and clock ---- */

/* No test asks how late it is. */

static unsigned barks;

static void bark(void *arg)
{
    assert_ptr_equal(arg, &barks);
    __atomic_fetch_add(&barks, 1, __ATOMIC_RELEASE);
}

static const pki_bench_watchdog *const w = &pki_bench_system_watchdog;

static void barks_once(void **state)
{
    (void)state;
    void *dog = w->open(bark, &barks);
    assert_non_null(dog);
    for (unsigned i = 1; i <= 2; i++) {
        w->set(dog, 1);
        while (pki_load_acquire(&barks) < i)
            sched_yield();
        assert_true(w->call_off(dog));
        assert_false(w->call_off(dog)); /* told once */
    }
    w->close(dog);
    assert_int_equal(barks, 2);
}

/* One that has nothing to do sleeps, and wakes when it has. */
static void sleeps_in_between(void **state)
{
    (void)state;
    const struct timespec longer = {0, 3 * (long)PKI_BENCH_WATCHDOG_LOOK};
    void *dog = w->open(bark, &barks);
    pki_store_release(&barks, 0);
    for (unsigned i = 1; i <= 3; i++) {
        w->set(dog, UINT64_C(3600000000000));
        assert_false(w->call_off(dog));
        nanosleep(&longer, NULL);
        w->set(dog, 1);
        while (pki_load_acquire(&barks) < i)
            sched_yield();
        assert_true(w->call_off(dog));
    }
    w->close(dog);
}

static void is_called_off(void **state)
{
    (void)state;
    void *dog = w->open(bark, &barks);
    barks = 0;
    assert_false(w->call_off(dog)); /* never set */
    w->set(dog, UINT64_C(3600000000000));
    assert_false(w->call_off(dog));
    w->set(dog, UINT64_C(3600000000000));
    w->close(dog);
    assert_int_equal(barks, 0);
}

static const struct CMUnitTest bench_watchdog_tests[] = {
    cmocka_unit_test(barks_once),
    cmocka_unit_test(sleeps_in_between),
    cmocka_unit_test(is_called_off),
};

int main(void)
{
    int failed = cmocka_run_group_tests(bench_main_tests, make_folder, remove_folder);
    failed += cmocka_run_group_tests(bench_watchdog_tests, NULL, NULL);
    return failed;
}
