/* Codes, sentences and who gets to hear them. */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <pk/version.h>

static char heard[1024];
static pk_log_level heard_level;
static unsigned times;

static void listen(void *user, pk_log_level level, const char *message)
{
    assert_ptr_equal(user, &times);
    heard_level = level;
    snprintf(heard, sizeof heard, "%s", message);
    times++;
}

static int silence(void **state)
{
    (void)state;
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    heard[0] = 0;
    times = 0;
    return 0;
}

/* The values are frozen: this list is a copy on purpose. */
static void codes_and_names(void **state)
{
    static const struct {
        int value;
        const char *name;
    } codes[] = {{0, "PK_OK"},      {-1, "PK_EINVAL"},  {-2, "PK_EBUSY"},   {-3, "PK_EOFF"},
                 {-4, "PK_ENOMEM"}, {-5, "PK_EIO"},     {-6, "PK_ENOSPC"},  {-7, "PK_EACCES"},
                 {-8, "PK_ENOENT"}, {-9, "PK_ETHREAD"}, {-10, "PK_ENOTSUP"}};
    (void)state;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        assert_string_equal(pk_status_name((pk_status)codes[i].value), codes[i].name);
        assert_true(strlen(pk_status_text((pk_status)codes[i].value)) > 5);
    }
    assert_string_equal(pk_status_text(PK_OK), "success");
    assert_string_equal(pk_status_name((pk_status)-11), "PK_E?");
    assert_string_equal(pk_status_name((pk_status)1), "PK_E?");
    assert_string_equal(pk_status_text((pk_status)12345), "unknown status");
}

static void version(void **state)
{
    char wanted[32];
    (void)state;
    snprintf(wanted, sizeof wanted, "%d.%d.%d", PK_VERSION_MAJOR, PK_VERSION_MINOR,
             PK_VERSION_PATCH);
    assert_string_equal(pk_version(), wanted);
    assert_true(PK_VERSION_OF(1, 2, 3) == 10203 && PK_VERSION > 0);
}

static void system_errors(void **state)
{
    static const int access[] = {EACCES, EPERM, EROFS, EISDIR, ELOOP, EEXIST};
    (void)state;
    assert_int_equal(pki_status_of_errno(ENOSPC), PK_ENOSPC);
    assert_int_equal(pki_status_of_errno(EDQUOT), PK_ENOSPC);
    assert_int_equal(pki_status_of_errno(EFBIG), PK_ENOSPC);
    for (size_t i = 0; i < sizeof access / sizeof *access; i++)
        assert_int_equal(pki_status_of_errno(access[i]), PK_EACCES);
    assert_int_equal(pki_status_of_errno(ENOENT), PK_ENOENT);
    assert_int_equal(pki_status_of_errno(ENOTDIR), PK_ENOENT);
    assert_int_equal(pki_status_of_errno(ENOMEM), PK_ENOMEM);
    assert_int_equal(pki_status_of_errno(EIO), PK_EIO);
    assert_int_equal(pki_status_of_errno(0), PK_EIO);
}

static void *other_thread(void *first)
{
    strcpy(first, pk_error_message());
    pki_fail(PK_EIO, "of the other thread");
    return NULL;
}

static void message_of_this_thread(void **state)
{
    pthread_t thread;
    char first[400] = "x";
    (void)state;
    assert_string_equal(pk_error_message(), "");
    assert_int_equal(pki_fail(PK_EINVAL, "%s is %d", "answer", 42), PK_EINVAL);
    assert_string_equal(pk_error_message(), "answer is 42");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, first), 0);
    pthread_join(thread, NULL);
    assert_string_equal(first, "");
    assert_string_equal(pk_error_message(), "answer is 42");
}

static void long_messages_are_cut(void **state)
{
    char text[2000];
    (void)state;
    memset(text, 'm', sizeof text - 1);
    text[sizeof text - 1] = 0;
    pki_log_to(listen, &times, PK_LOG_DEBUG);
    pki_fail(PK_EIO, "%s", text);
    assert_in_range(strlen(pk_error_message()), 200, 400);
    assert_in_range(strlen(heard), 200, 400);
    pki_log(PK_LOG_INFO, "%s", text);
    assert_in_range(strlen(heard), 200, 400);
}

static void levels(void **state)
{
    static const unsigned wanted[] = {2, 1, 2, 3, 4}; /* by default, warnings and errors */
    (void)state;
    for (unsigned level = PK_LOG_DEFAULT; level <= PK_LOG_DEBUG; level++) {
        times = 0;
        pki_log_to(listen, &times, (pk_log_level)level);
        for (unsigned i = PK_LOG_ERROR; i <= PK_LOG_DEBUG; i++)
            pki_log((pk_log_level)i, "level %u", i);
        assert_int_equal(times, wanted[level]);
        assert_int_equal(heard_level, wanted[level]);
    }
}

static void failures_are_errors_of_the_log(void **state)
{
    (void)state;
    pki_log_to(listen, &times, PK_LOG_DEFAULT);
    pki_fail(PK_ENOSPC, "nothing left on %s", "disk");
    assert_string_equal(heard, "nothing left on disk");
    assert_int_equal(heard_level, PK_LOG_ERROR);
    pki_log_to(NULL, NULL, PK_LOG_DEFAULT);
    pki_fail(PK_EIO, "unheard");
    assert_int_equal(times, 1);
    assert_string_equal(pk_error_message(), "unheard");
}

static void to_stderr(void **state)
{
    int pipe_ends[2], saved = dup(STDERR_FILENO);
    char text[2000] = "";
    (void)state;
    assert_int_equal(pipe(pipe_ends), 0);
    dup2(pipe_ends[1], STDERR_FILENO);
    pki_log_to(pki_log_to_stderr, NULL, PK_LOG_DEBUG);
    pki_log(PK_LOG_ERROR, "one");
    pki_log(PK_LOG_WARNING, "two");
    pki_log(PK_LOG_INFO, "three");
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_true(read(pipe_ends[0], text, sizeof text - 1) > 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    assert_string_equal(text, "perfkit: error: one\nperfkit: warning: two\nperfkit: three\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_and_names),
        cmocka_unit_test(version),
        cmocka_unit_test(system_errors),
        cmocka_unit_test(message_of_this_thread),
        cmocka_unit_test_setup(long_messages_are_cut, silence),
        cmocka_unit_test_setup(levels, silence),
        cmocka_unit_test_setup(failures_are_errors_of_the_log, silence),
        cmocka_unit_test_setup(to_stderr, silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
