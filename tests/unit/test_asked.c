/* A session that the environment alone asked for: nobody looks at how its start went, so perfkit
 * says it on stderr, once per job. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"
#include "session.h"

static char said[1024];

/* What pk_start_asked_ says on stderr lands in `said`. */
static pk_status start_asked(const pk_options *options)
{
    int real = dup(STDERR_FILENO), file = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    errno = 42;
    pk_status status = pk_start_asked_("PK_MPI_START", options);
    int kept = errno;
    dup2(real, STDERR_FILENO);
    ssize_t n = pread(file, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(real);
    close(file);
    assert_int_equal(kept, 42);
    return status;
}

static void why_it_cannot_start(void **state)
{
    (void)state;
    assert_int_equal(start_asked(pk_options(.trace_path = "missing/run.json")), PK_ENOENT);
    assert_ptr_equal(strstr(said, "perfkit: PK_MPI_START=1, but nothing is recorded: "), said);
    assert_non_null(strstr(said, "missing/run.json"));
    assert_non_null(strstr(said, ": No such file or directory (PK_ENOENT)\n"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
    setenv("PK_RING_RECORDS", "many", 1);
    assert_int_equal(start_asked(NULL), PK_EINVAL);
    assert_non_null(strstr(said, "PK_RING_RECORDS"));
    unsetenv("PK_RING_RECORDS");
}

static void once_in_a_job(void **state)
{
    (void)state;
    start_asked(pk_options(.trace_path = "missing/run.json", .rank = 1, .world_size = 2));
    assert_string_equal(said, "");
    start_asked(pk_options(.trace_path = "missing/run.json", .rank = 0, .world_size = 2));
    assert_non_null(strstr(said, "nothing is recorded"));
    setenv("PMI_RANK", "3", 1);
    setenv("PMI_SIZE", "4", 1);
    start_asked(pk_options(.trace_path = "missing/run.json"));
    assert_string_equal(said, "");
    setenv("PMI_RANK", "0", 1);
    start_asked(pk_options(.trace_path = "missing/run.json"));
    assert_non_null(strstr(said, "nothing is recorded"));
    unsetenv("PMI_RANK");
    unsetenv("PMI_SIZE");
}

static void what_is_logged_is_not_said_again(void **state)
{
    (void)state;
    setenv("PK_LOG", "stderr", 1);
    start_asked(pk_options(.trace_path = "missing/run.json"));
    unsetenv("PK_LOG");
    assert_non_null(strstr(said, "missing/run.json"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
}

static void silent_when_all_is_well(void **state)
{
    (void)state;
    assert_int_equal(start_asked(pk_options(.backends = "none")), PK_OK);
    assert_string_equal(said, "");
    assert_int_equal(start_asked(NULL), PK_EBUSY); /* the program's own session has it */
    assert_string_equal(said, "");
    assert_int_equal(pk_stop(), PK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_it_cannot_start),
        cmocka_unit_test(once_in_a_job),
        cmocka_unit_test(what_is_logged_is_not_said_again),
        cmocka_unit_test(silent_when_all_is_well),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
