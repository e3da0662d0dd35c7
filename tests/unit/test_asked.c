/* What whoever starts the program asks for: a session that the environment alone asked for, whose
 * failures nobody looks at but stderr; PK_OFF; PK_OVERRIDE. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "session.h"

static char said[1024];

static pk_status by_mpi(const pk_options *options)
{
    return pk_start_asked_("PK_MPI_START", options);
}

static pk_status stop(const pk_options *options)
{
    (void)options;
    return pk_stop();
}

/* What the call says on stderr lands in `said`. */
static pk_status hear(pk_status (*call)(const pk_options *), const pk_options *options)
{
    int real = dup(STDERR_FILENO), file = open("said", O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    errno = 42;
    pk_status status = call(options);
    int kept = errno;
    dup2(real, STDERR_FILENO);
    ssize_t n = pread(file, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    close(real);
    close(file);
    assert_int_equal(kept, 42);
    return status;
}

static pk_status start_asked(const pk_options *options)
{
    return hear(by_mpi, options);
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

/* ---- a file that the environment asks for ---- */

static void a_start_that_fails(void **state)
{
    (void)state;
    setenv("PK_TRACE_PATH", "missing/run.json", 1);
    assert_int_equal(hear(pk_start, NULL), PK_ENOENT);
    assert_ptr_equal(strstr(said, "perfkit: nothing is recorded: "), said);
    assert_non_null(strstr(said, "(PK_ENOENT)\n"));
    setenv("PK_LOG", "off", 1);
    assert_int_equal(hear(pk_start, NULL), PK_ENOENT);
    assert_string_equal(said, "");
    unsetenv("PK_LOG");
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    assert_int_equal(hear(pk_start, NULL), PK_ENOENT);
    assert_string_equal(said, ""); /* one word of each host */
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
    unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    unsetenv("PK_TRACE_PATH");
    assert_int_equal(hear(pk_start, pk_options(.trace_path = "missing/run.json")), PK_ENOENT);
    assert_string_equal(said, ""); /* the code asked, and has its answer */
}

static void a_stop_that_fails(void **state)
{
    (void)state;
    mkdir("reports", 0700);
    setenv("PK_REPORT_PATH", "reports/run.txt", 1);
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    rmdir("reports");
    pk_step(1);
    assert_int_equal(hear(stop, NULL), PK_ENOENT);
    assert_non_null(strstr(said, "reports/run.txt"));
    unsetenv("PK_REPORT_PATH");
}

/* ---- PK_OFF ---- */

static void off(void **state)
{
    pk_counts counts = {.size = sizeof counts};
    (void)state;
    setenv("PK_OFF", "1", 1);
    assert_int_equal(pk_start(pk_options(.trace_path = "off.json", .flush_ms = 1)), PK_OK);
    assert_int_equal(access("off.json", F_OK), -1);
    pk_step(1);
    assert_int_equal(pk_capture("any", 1), PK_OK);
    assert_int_equal(pk_flush(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    setenv("PK_OFF", "yes", 1);
    assert_int_equal(pk_start(NULL), PK_EINVAL);
    setenv("PK_OFF", "0", 1);
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    setenv("PK_OFF", "1", 1);
    assert_int_equal(pk_start(NULL), PK_EBUSY); /* it does not end a session that is open */
    assert_int_equal(pk_stop(), PK_OK);
    unsetenv("PK_OFF");
    assert_int_equal(pk_start(pk_options(.backends = "none")), PK_OK);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_stop(), PK_EOFF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_it_cannot_start),
        cmocka_unit_test(once_in_a_job),
        cmocka_unit_test(what_is_logged_is_not_said_again),
        cmocka_unit_test(silent_when_all_is_well),
        cmocka_unit_test(a_start_that_fails),
        cmocka_unit_test(a_stop_that_fails),
        cmocka_unit_test(off),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
