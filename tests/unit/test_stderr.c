/* Writing to a stderr that may have lost its reader. */
#include "base/files.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* stderr as a pipe; the end to read from, or -1 if nobody is to read. */
static int pipe_as_stderr(int *real, bool reader)
{
    int ends[2];
    *real = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    if (reader)
        return ends[0];
    close(ends[0]);
    return -1;
}

static void give_stderr_back(int real)
{
    dup2(real, STDERR_FILENO);
    close(real);
}

static void all_of_it(void **state)
{
    char got[16] = "";
    int real, from = pipe_as_stderr(&real, true);
    bool written = pki_write_stderr("ten bytes\n", 10);
    give_stderr_back(real);
    assert_true(written);
    assert_int_equal(read(from, got, sizeof got), 10);
    assert_string_equal(got, "ten bytes\n");
    close(from);
    (void)state;
}

/* SIGPIPE has its default here: it would end this test. */
static void nobody_reads(void **state)
{
    int real;
    pipe_as_stderr(&real, false);
    errno = 0;
    bool written = pki_write_stderr("lost\n", 5);
    int error = errno;
    give_stderr_back(real);
    assert_false(written);
    assert_int_equal(error, EPIPE);
    (void)state;
}

/* A SIGPIPE that waited for the program before is still there behind it, and the mask is as it was.
 */
static void signals_stay(void **state)
{
    sigset_t mask, pending, pipe_only;
    int real;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_only, NULL);
    raise(SIGPIPE);
    pipe_as_stderr(&real, false);
    pki_write_stderr("lost\n", 5);
    give_stderr_back(real);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGPIPE));
    sigprocmask(SIG_SETMASK, NULL, &mask);
    assert_true(sigismember(&mask, SIGPIPE));
    signal(SIGPIPE, SIG_IGN); /* drops the one that waits */
    sigprocmask(SIG_UNBLOCK, &pipe_only, NULL);
    signal(SIGPIPE, SIG_DFL);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(signals_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
