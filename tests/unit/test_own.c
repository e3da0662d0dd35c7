/* Descriptors that are known to be ours, whatever the program does with their numbers. */
#include "base/files.h"

#include "base/memory.h"
#include "folder.h"
#include "out/file.h"
#include "valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pki_owned made(const char *path)
{
    pki_owned own;
    assert_true(pki_own_adopt(&own, pki_fd_open(path, O_RDWR | O_CREAT, 0600)));
    return own;
}

/* In a process of its own, which has changed what the others need. */
static void expect_in_child(bool (*holds)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(holds() ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- numbers ---- */

static void numbers_are_high(void **state)
{
    (void)state;
    pki_owned own = made("file");
    assert_in_range(own.fd, 100, 100000);
    assert_true(fcntl(own.fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(pki_fd_up(own.fd), own.fd); /* there already */
    pki_own_close(&own);
    assert_int_equal(own.fd, -1);
    errno = ENOENT;
    assert_int_equal(pki_fd_up(-1), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(pki_fd_open("nowhere", O_RDONLY, 0), -1);
    assert_int_equal(errno, ENOENT);
}

static bool limit(rlim_t descriptors)
{
    return setrlimit(RLIMIT_NOFILE, &(struct rlimit){descriptors, descriptors}) == 0;
}

/* As high as there is room for. */
static bool little_room(void)
{
    int fd;
    for (fd = 3; fd < 1000; fd++)
        close(fd);
    if (!limit(20) || (fd = pki_fd_open("/dev/null", O_RDWR, 0)) < 10 || fd >= 20)
        return false;
    while (fd >= 0)
        fd = pki_fd_open("/dev/null", O_RDWR, 0);
    return errno == EMFILE && fcntl(3, F_GETFD) >= 0 && fcntl(19, F_GETFD) >= 0;
}

static bool no_room_but_for_standard_streams(void)
{
    close(STDERR_FILENO);
    return limit(3) && pki_fd_open("/dev/null", O_RDWR, 0) == -1 && errno == EMFILE &&
           fcntl(STDERR_FILENO, F_GETFD) < 0;
}

static void a_low_limit(void **state)
{
    (void)state;
    if (under_valgrind()) {
        print_message("valgrind needs descriptors of its own\n");
        skip();
    }
    expect_in_child(little_room);
    expect_in_child(no_room_but_for_standard_streams);
}

/* ---- whose it is ---- */

/* Something else under the number of ours: never touched, never closed. */
static void expect_left_alone(pki_owned own, int other)
{
    struct stat before, after;
    pki_trace_file trace = {.own = own, .end = 5, .length = 9};
    pki_owned again = own;
    assert_int_equal(dup2(other, own.fd), own.fd);
    assert_int_equal(fstat(own.fd, &before), 0);
    errno = 0;
    assert_false(pki_own_check(&own));
    assert_int_equal(errno, EBADF);
    assert_true(pki_own_any_lost());
    assert_false(pki_file_write_at(&own, "text", 4, 0));
    assert_int_equal(errno, EBADF);
    assert_false(pki_mem_back(&own, NULL, 0, 1 << 20, false));
    assert_int_equal(errno, EBADF);
    assert_false(pki_own_lock(&own));
    assert_false(pki_trace_file_append(&trace, "more", 4, "]}", 2));
    assert_true(errno == EBADF && trace.end == 5 && trace.length == 9);
    pki_trace_file_rewrite_head(&trace, "head", 4);
    pki_trace_file_close(&trace);
    pki_own_close(&again);
    assert_int_equal(again.fd, -1);
    assert_int_equal(fstat(own.fd, &after), 0); /* still open */
    assert_int_equal(before.st_size, after.st_size);
    assert_true(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
    close(own.fd);
}

static void another_file(void **state)
{
    pki_owned own = made("ours");
    (void)state;
    int other = open("theirs", O_RDWR | O_CREAT, 0600);
    assert_int_equal(write(other, "precious", 8), 8);
    expect_left_alone(own, other);
    close(other);
    char *text = read_file("theirs", NULL);
    assert_string_equal(text, "precious");
    free(text);
}

/* The program looks at our file by itself: the same inode, but an opening of its own. */
static void the_same_file_opened_by_others(void **state)
{
    pki_owned own = made("ours");
    (void)state;
    int other = open("ours", O_RDWR);
    expect_left_alone(own, other);
    close(other);
}

static void other_kinds(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    expect_left_alone(made("ours"), ends[1]);
    int null = open("/dev/null", O_RDWR);
    expect_left_alone(made("ours"), null);
    close(null);
    close(ends[0]);
    close(ends[1]);
}

static void closed(void **state)
{
    pki_owned own = made("ours"), none = {.fd = -1}, zeros = {.fd = 0};
    (void)state;
    assert_true(pki_own_check(&own));
    close(own.fd);
    assert_false(pki_own_check(&own));
    assert_false(pki_own_check(&none));
    pki_own_close(&own);
    pki_own_close(&none);
    pki_own_close(&zeros); /* not the program's stdin */
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    errno = 0;
    assert_false(pki_own_adopt(&own, -1));
}

/* What we do ourselves leaves the mark where it is; memory files have one, too. */
static void ours_stays_ours(void **state)
{
    pki_owned file = made("ours"), memory;
    (void)state;
    assert_true(pki_file_write_at(&file, "text", 4, 0));
    assert_true(pki_own_check(&file) && pki_own_lock(&file));
    assert_true(pki_mem_file(&memory, "test"));
    assert_in_range(memory.fd, 100, 100000);
    bool locked;
    char *base = pki_mem_map(&memory, 1 << 20, &locked);
    assert_non_null(base);
    assert_true(pki_mem_back(&memory, base, 4096, 8192, locked));
    memset(base + 4096, 1, 8192);
    assert_true(pki_own_check(&memory));
    pki_mem_unmap(base, 1 << 20);
    int copy = dup(memory.fd);
    assert_int_equal(dup2(copy, memory.fd), memory.fd); /* the same opening under the same number */
    assert_true(pki_own_check(&memory));
    close(copy);
    pki_own_close(&memory);
    pki_own_close(&file);
    assert_string_equal(pki_own_why(ENOSPC), strerror(ENOSPC));
    assert_non_null(strstr(pki_own_why(EBADF), "closed"));
}

static void what_a_path_names(void **state)
{
    pki_owned own = made("ours"), none = {.fd = -1};
    (void)state;
    assert_true(pki_own_is_at(&own, "ours"));
    assert_false(pki_own_is_at(&none, "ours"));
    assert_int_equal(rename("ours", "moved"), 0);
    assert_false(pki_own_is_at(&own, "ours"));
    write_file("ours", "another");
    assert_false(pki_own_is_at(&own, "ours"));
    assert_true(pki_own_is_at(&own, "moved"));
    assert_int_equal(symlink("moved", "link"), 0);
    assert_false(pki_own_is_at(&own, "link"));
    pki_own_close(&own);
}

/* ---- locks ---- */

static void locks_outlast_a_backup(void **state)
{
    pki_owned own = made("ours");
    (void)state;
    assert_false(pki_file_is_locked("ours"));
    assert_true(pki_own_lock(&own));
    assert_true(pki_file_is_locked("ours"));
    free(read_file("ours", NULL)); /* with which a process's own lock would be gone */
    assert_true(pki_file_is_locked("ours"));
    pki_owned other;
    assert_true(pki_own_adopt(&other, pki_fd_open("ours", O_RDWR, 0)));
    assert_false(pki_own_lock(&other));
    pki_own_unlock(&own);
    assert_false(pki_file_is_locked("ours"));
    assert_true(pki_own_lock(&other));
    pki_own_close(&other);
    assert_false(pki_file_is_locked("ours"));
    assert_false(pki_file_is_locked("nowhere") || pki_file_is_locked(".") ||
                 pki_file_is_locked("/dev/null"));
    pki_own_close(&own);
}

/* ---- standard streams ---- */

static bool once_closed_never_again(void)
{
    if (!pki_standard_is_there(STDERR_FILENO) || !pki_standard_is_there(STDOUT_FILENO))
        return false;
    close(STDERR_FILENO);
    pki_standard_check();
    return open("data", O_RDWR | O_CREAT, 0600) == STDERR_FILENO &&
           !pki_standard_is_there(STDERR_FILENO) && errno == EBADF &&
           pki_standard_is_there(STDOUT_FILENO);
}

/* A program may send it elsewhere; but not when it closes what is not its own. */
static bool replaced(void)
{
    int data = open("data", O_RDWR | O_CREAT, 0600);
    pki_owned own = made("ours");
    pki_standard_check();
    dup2(data, STDERR_FILENO);
    if (!pki_standard_is_there(STDERR_FILENO))
        return false;
    close(own.fd);
    pki_own_check(&own);
    return !pki_standard_is_there(STDERR_FILENO) && pki_standard_is_there(STDOUT_FILENO);
}

static void standard_streams(void **state)
{
    (void)state;
    assert_false(pki_own_any_lost()); /* the first test: nothing has been lost yet */
    expect_in_child(once_closed_never_again);
    expect_in_child(replaced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(standard_streams),
        in_folder(numbers_are_high),
        in_folder(a_low_limit),
        in_folder(another_file),
        in_folder(the_same_file_opened_by_others),
        in_folder(other_kinds),
        in_folder(closed),
        in_folder(ours_stays_ours),
        in_folder(what_a_path_names),
        in_folder(locks_outlast_a_backup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
