/* Without memory a measurement fails with a word, leaves nothing behind, and the next one works:
 * every allocation fails once, in pk_bench and in a whole pk_bench_main. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pk/bench.h>
#include <pk/pk.h>

#include "failing_memory.h"

static int to_nowhere = -1, real_stdout = -1, real_stderr = -1;

static void silence(bool on)
{
    dup2(on ? to_nowhere : real_stdout, STDOUT_FILENO);
    dup2(on ? to_nowhere : real_stderr, STDERR_FILENO);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void one_function(void **state)
{
    (void)state;
    struct pk_bench_options o = {
        .size = sizeof o, .iterations = 1, .max_samples = 70, .threads = 2, .max_warmup = 1};
    pk_status status = PK_ENOMEM;
    long n = 0;
    for (; status != PK_OK && n < 1000; n++) {
        pk_bench_result r = {.size = sizeof r};
        memory_fails_once(n);
        status = pk_bench("nothing", nothing, NULL, &o, &r);
        bool failed = memory_has_failed();
        memory_fails_after(-1);
        if (status == PK_OK && failed) /* the stop rule looks again later, and more room can wait */
            status = r.count > 0 ? PK_EIO : PK_OK;
        else if (status != PK_OK)
            assert_true(status == PK_ENOMEM && *pk_error_message());
        pk_bench_result_release(&r);
    }
    assert_int_equal(status, PK_OK);
    assert_true(n > 8);
}

static void body(pk_bench_run *bench)
{
    pk_bench_add_counter(bench, "one", 1, PK_BENCH_UNIT_PLAIN);
    for (uint64_t left = pk_bench_begin(bench); left; left--)
        pk_clobber();
    pk_bench_end(bench);
}

static void a_program(void **state)
{
    (void)state;
    char *argv[] = {(char[]){"program"},
                    (char[]){"--iterations=1"},
                    (char[]){"--max-samples=3"},
                    (char[]){"--max-warmup"},
                    (char[]){"1ns"},
                    (char[]){"--filter=o"},
                    (char[]){"--json=/dev/null/x"}};
    int argc = 6;
    long n = 0, refused = 0;
    assert_int_equal(pk_bench_add("one", body, NULL), PK_OK);
    assert_int_equal(pk_bench_add("two", body, NULL), PK_OK);
    silence(true);
    for (bool failed = true; failed && n < 5000; n++) {
        memory_fails_once(n);
        int status = pk_bench_main(argc, argv);
        failed = memory_has_failed();
        memory_fails_after(-1);
        refused += status == 2;
    }
    int unwritable = pk_bench_main(7, argv);
    silence(false);
    assert_in_range(n, 20, 4999);
    assert_true(refused > 15);
    assert_int_equal(unwritable, 2);
}

int main(void)
{
    to_nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    real_stdout = dup(STDOUT_FILENO);
    real_stderr = dup(STDERR_FILENO);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_function),
        cmocka_unit_test(a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
