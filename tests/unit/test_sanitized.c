/* What the sanitizers of this build are for ends a program: else all other tests here prove less
 * than they seem to. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static volatile int largest = INT_MAX, width = 32, one = 1;
static volatile size_t behind = 8;
static void *volatile lost;

static void nothing_wrong(void)
{
    if (largest - one < 0)
        abort();
}

static void overflow(void)
{
    largest = largest + one;
}

static void shift_too_far(void)
{
    largest = one << width;
}

static void read_behind_a_block(void)
{
    volatile char *block = malloc(8);
    one = block[behind];
}

static void leak(void)
{
    lost = malloc(1000);
    lost = NULL;
}

/* Did a child that does this end well? What it says is of no interest. */
static int ends_well(void (*body)(void))
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            abort();
        body();
        exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void mistakes_end_a_program(void **state)
{
    (void)state;
    assert_true(ends_well(nothing_wrong));
    assert_false(ends_well(overflow));
    assert_false(ends_well(shift_too_far));
    assert_false(ends_well(read_behind_a_block));
    assert_false(ends_well(leak));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mistakes_end_a_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
