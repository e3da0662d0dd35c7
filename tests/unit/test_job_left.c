/* A rank's part of the job's file where it cannot be left as usual: in an exit() from a handler
 * that has interrupted malloc, and where files may not grow. */
#include "folder.h"

#include <pk/pk.h>
#include <pk/private.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define PART "job.json.ranks/0/7.rank.json"
#define AMID 9 /* exit status: malloc was asked for memory amid malloc */

/* ---- a malloc that knows whether it is inside itself ---- */

static __thread int inside;
static volatile sig_atomic_t armed;

/* Where glibc's holds its lock, and a handler comes. */
static void enter(void)
{
    if (inside++)
        _exit(AMID);
    if (armed) {
        armed = 0;
        raise(SIGUSR1);
    }
}

#define AROUND(CALL)                                                                               \
    enter();                                                                                       \
    void *block = CALL;                                                                            \
    inside--;                                                                                      \
    return block

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void __libc_free(void *block);

void *malloc(size_t bytes)
{
    AROUND(__libc_malloc(bytes));
}

void *calloc(size_t count, size_t bytes)
{
    AROUND(__libc_calloc(count, bytes));
}

void *realloc(void *old, size_t bytes)
{
    AROUND(__libc_realloc(old, bytes));
}

void free(void *block)
{
    if (!block)
        return;
    enter();
    __libc_free(block);
    inside--;
}

/* ---- exit() amid it ---- */

static pk_region work = PK_REGION("work");

static void start(void)
{
    assert_int_equal(pk_start(pk_options(.job_path = "job.json", .rank = 7, .world_size = 8,
                                         .backends = "none")),
                     PK_OK);
    pk_region_begin(&work);
    pk_region_end(&work);
}

static void leave(int signal)
{
    (void)signal;
    exit(0);
}

/* ends: before it; held: by libpk_mpi, for MPI_Finalize, which never comes. */
static void exit_amid_malloc(bool ends, bool held)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        pk_job_hold_(held ? 8 : 0);
        start();
        if (ends)
            pk_stop();
        signal(SIGUSR1, leave);
        armed = 1;
        void *volatile block = malloc(100); /* which a compiler must not leave out */
        free(block);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void part_that_waits(void **state)
{
    (void)state;
    exit_amid_malloc(true, true);
    assert_true(exists(PART));
}

static void part_of_an_open_session(void **state)
{
    (void)state;
    exit_amid_malloc(false, false);
    assert_true(exists(PART));
}

static void part_of_an_open_session_that_is_held(void **state)
{
    (void)state;
    exit_amid_malloc(false, true);
    assert_true(exists(PART));
}

/* ---- ulimit -f ---- */

static rlim_t limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    rlim_t was = limit.rlim_cur;
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return was;
}

/* Neither it, nor what it was to become. */
static void expect_no_part(void)
{
    assert_int_equal(rmdir("job.json.ranks/0"), 0);
    assert_int_equal(rmdir("job.json.ranks"), 0);
    assert_int_equal(count_files(), 0);
}

/* SIGXFSZ, which nobody has a handler for, would end the program. */
static void no_room_for_a_part(void **state)
{
    (void)state;
    start();
    rlim_t was = limit_files(100);
    pk_status status = pk_stop();
    limit_files(was);
    assert_int_equal(status, PK_ENOSPC);
    assert_non_null(strstr(pk_error_message(), PART));
    expect_no_part();
}

static void no_room_at_the_end(void **state)
{
    pk_job_part_ part = {.size = sizeof part};
    (void)state;
    pk_job_hold_(8);
    start();
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(pk_job_take_(&part));
    rlim_t was = limit_files(100);
    pk_job_save_();
    pk_job_file_begin_("job.json");
    pk_job_file_add_(part.text, part.bytes);
    pk_status written = pk_job_file_end_(1);
    pk_job_leave_(0);
    limit_files(was);
    assert_int_equal(written, PK_ENOSPC);
    expect_no_part();
    pk_job_hold_(0);
}

static void no_room_at_exit(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        pk_job_hold_(8);
        start();
        pk_stop();
        limit_files(100);
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_no_part();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(part_that_waits),
        in_folder(part_of_an_open_session),
        in_folder(part_of_an_open_session_that_is_held),
        in_folder(no_room_for_a_part),
        in_folder(no_room_at_the_end),
        in_folder(no_room_at_exit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
