/* Files: descriptors that are ours, trace files, files in several parts, and what they are called.
 */
#include "folder.h"
#include "valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/memory.h"
#include "out/file.h"
#include "session/trace/output.h"

/* ---- trace files ---- */

/* How they come to their name, whole after every write, and as before after one that failed. */

#define HEAD "{\"traceEvents\":[\n{}"
#define TAIL "\n]}\n"

static pki_trace_file file_file;

static bool create(const char *path)
{
    return pki_trace_file_create(&file_file, path, false, HEAD, strlen(HEAD), TAIL, strlen(TAIL));
}

static bool append(const char *data, const char *tail)
{
    return pki_trace_file_append(&file_file, data, strlen(data), tail, strlen(tail));
}

static void expect_content(const char *path, const char *wanted)
{
    char *text = read_file(path, NULL);
    assert_string_equal(text, wanted);
    free(text);
}

static void expect_refused(const char *path, int error)
{
    unsigned before = count_files();
    errno = 0;
    assert_false(create(path));
    assert_int_equal(errno, error);
    assert_int_equal(file_file.own.fd, -1);
    assert_int_equal(count_files(), before); /* nothing left behind */
}

/* -- names -- */

static void a_new_file(void **state)
{
    struct stat s;
    (void)state;
    assert_true(create("run.json"));
    expect_content("run.json", HEAD TAIL);
    assert_int_equal(count_files(), 1); /* the name it was made under is gone */
    assert_int_equal(fstat(file_file.own.fd, &s), 0);
    assert_true(fcntl(file_file.own.fd, F_GETFD) & FD_CLOEXEC);
    pki_trace_file_close(&file_file);
    assert_int_equal(file_file.own.fd, -1);
    pki_trace_file_close(&file_file);
}

/* As any file that a program makes; what it is to be alone with says so. */
static void the_umask_decides(void **state)
{
    static const mode_t masks[] = {0, 022, 027, 077, 0277};
    char temporary[PATH_MAX];
    struct stat s;
    (void)state;
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        mode_t before = umask(masks[i]);
        bool created = create("run.json"), put = pki_file_put("report.txt", "text", 4);
        int private = pki_file_fresh("arena", PKI_FILE_PRIVATE, temporary, sizeof temporary);
        umask(before);
        assert_true(created && put && private >= 0);
        assert_int_equal(stat("run.json", &s), 0);
        assert_int_equal(s.st_mode & 07777, 0666 & ~masks[i]);
        assert_int_equal(stat("report.txt", &s), 0);
        assert_int_equal(s.st_mode & 07777, 0666 & ~masks[i]);
        assert_int_equal(fstat(private, &s), 0);
        assert_int_equal(s.st_mode & 07777, 0600 & ~masks[i]);
        close(private);
        pki_trace_file_close(&file_file);
    }
}

static void an_older_file_is_replaced_not_written_to(void **state)
{
    (void)state;
    write_file("run.json", "older and much longer than what will stand there in a moment");
    assert_int_equal(link("run.json", "other name"), 0);
    assert_true(create("run.json"));
    expect_content("run.json", HEAD TAIL);
    expect_content("other name", "older and much longer than what will stand there in a moment");
    pki_trace_file_close(&file_file);
}

/* Neither replaced nor followed. */
static void what_is_no_file_is_refused(void **state)
{
    struct stat s;
    (void)state;
    write_file("precious", "precious");
    assert_int_equal(symlink("precious", "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(symlink("folder", "to folder"), 0);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    expect_refused("link", ELOOP);
    expect_refused("dangling", ELOOP);
    expect_refused("to folder", ELOOP);
    expect_refused("folder", EISDIR);
    expect_refused("folder/", EISDIR);
    expect_refused("fifo", EEXIST);
    expect_content("precious", "precious");
    assert_true(lstat("link", &s) == 0 && S_ISLNK(s.st_mode));
    assert_true(lstat("dangling", &s) == 0 && S_ISLNK(s.st_mode));
    assert_true(lstat("fifo", &s) == 0 && S_ISFIFO(s.st_mode));
    assert_true(lstat("folder", &s) == 0 && S_ISDIR(s.st_mode));
    assert_false(exists("nowhere"));
}

static void put_whole_or_not_at_all(void **state)
{
    (void)state;
    assert_true(pki_file_put("report.txt", "a longer text", 13));
    assert_true(pki_file_put("report.txt", "text", 4));
    expect_content("report.txt", "text");
    limit_file_size(3);
    errno = 0;
    assert_false(pki_file_put("report.txt", "more", 4));
    assert_int_equal(errno, EFBIG);
    limit_file_size(RLIM_INFINITY);
    expect_content("report.txt", "text");
    assert_int_equal(count_files(), 1);
    assert_int_equal(symlink("report.txt", "link"), 0);
    assert_false(pki_file_put("link", "more", 4));
    assert_int_equal(errno, ELOOP);
    expect_content("report.txt", "text");
}

/* One that is completed before it gets its name. */
static void begun_and_published(void **state)
{
    char temporary[PATH_MAX];
    (void)state;
    write_file("run.json", "older");
    assert_true(pki_trace_file_begin(&file_file, "run.json", false, HEAD, strlen(HEAD), TAIL,
                                     strlen(TAIL), temporary));
    assert_true(append(",1", TAIL));
    expect_content("run.json", "older");
    pki_trace_file_close(&file_file);
    assert_true(pki_file_publish(temporary, "run.json"));
    expect_content("run.json", HEAD ",1" TAIL);
    assert_int_equal(count_files(), 1);
}

static void places_that_do_not_exist(void **state)
{
    char name[PATH_MAX];
    (void)state;
    write_file("file", "");
    expect_refused("missing/run.json", ENOENT);
    expect_refused("file/run.json", ENOTDIR);
    memset(name, 'n', sizeof name);
    name[255] = 0;
    expect_refused(name, ENAMETOOLONG);
    memset(name, '/', sizeof name);
    name[PATH_MAX - 6] = 'n';
    name[PATH_MAX - 5] = 0;
    expect_refused(name, ENAMETOOLONG);
}

static void fresh_files(void **state)
{
    char first[PATH_MAX], second[PATH_MAX];
    (void)state;
    pki_owned a, b;
    assert_true(pki_own_adopt(&a, pki_file_fresh("x", PKI_FILE_MODE, first, sizeof first)));
    assert_true(pki_own_adopt(&b, pki_file_fresh("x", PKI_FILE_MODE, second, sizeof second)));
    assert_string_not_equal(first, second);
    assert_int_equal(count_files(), 2);
    assert_true(pki_file_write_at(&a, "data", 4, 3));
    assert_true(pki_file_publish(first, "x"));
    assert_int_equal(mkdir("y", 0700), 0);
    assert_false(pki_file_publish(second, "y"));
    assert_false(exists(second));
    size_t n;
    char *text = read_file("x", &n);
    assert_true(n == 7 && memcmp(text, "\0\0\0data", 7) == 0);
    free(text);
    pki_own_close(&a);
    pki_own_close(&b);
}

/* -- writes -- */

static void closed_after_every_append(void **state)
{
    char wanted[20000] = HEAD;
    (void)state;
    assert_true(create("run.json"));
    for (int i = 0; i < 300; i++) {
        char event[64];
        snprintf(event, sizeof event, ",\n{\"i\":%d,\"x\":\"%.*s\"}", i, i % 20,
                 "xxxxxxxxxxxxxxxxxxxx");
        assert_true(append(event, TAIL));
        strcat(wanted, event);
        char *text = read_file("run.json", NULL);
        assert_memory_equal(text, wanted, strlen(wanted));
        assert_string_equal(text + strlen(wanted), TAIL);
        free(text);
    }
    assert_int_equal(file_file.end, strlen(wanted));
    pki_trace_file_close(&file_file);
}

static void ends_of_any_length(void **state)
{
    (void)state;
    assert_true(create("run.json"));
    assert_true(append("", "\n],\"report\":{\"long\":\"end\"}}\n"));
    expect_content("run.json", HEAD "\n],\"report\":{\"long\":\"end\"}}\n");
    assert_true(append("", "]}"));
    expect_content("run.json", HEAD "]}");
    assert_true(append(",1", TAIL));
    expect_content("run.json", HEAD ",1" TAIL);
    pki_trace_file_close(&file_file);
}

static void the_head_again(void **state)
{
    (void)state;
    assert_true(create("run.json"));
    assert_true(append(",1", TAIL));
    pki_trace_file_rewrite_head(&file_file, "{\"TRACEEVENTS", 13);
    expect_content("run.json", "{\"TRACEEVENTS\":[\n{},1" TAIL);
    pki_trace_file_close(&file_file);
    pki_trace_file_rewrite_head(&file_file, "nothing", 7); /* closed */
}

/* No signal comes, the document stays closed, and once there is room it goes on. */
static void a_write_that_failed(void **state)
{
    static char large[8192];
    (void)state;
    memset(large, ' ', sizeof large - 1);
    assert_true(create("run.json"));
    assert_true(append(",1", TAIL));
    limit_file_size(4096);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        assert_false(append(large, TAIL));
        assert_int_equal(errno, EFBIG);
        expect_content("run.json", HEAD ",1" TAIL);
    }
    assert_true(append(",2", TAIL)); /* what fits goes in */
    limit_file_size(5); /* below what is there: another kind of refusal, and of signal */
    assert_false(append(",x", TAIL));
    assert_int_equal(errno, EFBIG);
    expect_content("run.json", HEAD ",1,2" TAIL);
    limit_file_size(RLIM_INFINITY);
    assert_true(append(",3", TAIL));
    expect_content("run.json", HEAD ",1,2,3" TAIL);
    assert_true(append(large, TAIL));
    pki_trace_file_close(&file_file);
}

static void a_file_that_cannot_even_begin(void **state)
{
    (void)state;
    limit_file_size(10);
    expect_refused("run.json", EFBIG);
    limit_file_size(RLIM_INFINITY);
}

/* Where every write finds the disk full. */
static void a_full_device(void **state)
{
    (void)state;
    int fd = open("/dev/full", O_RDWR);
    if (fd < 0)
        skip();
    errno = 0;
    file_file = PKI_TRACE_FILE_NONE;
    assert_true(pki_own_adopt(&file_file.own, fd));
    assert_false(pki_file_write_at(&file_file.own, "x", 1, 0));
    assert_int_equal(errno, ENOSPC);
    assert_true(pki_file_write_at(&file_file.own, "", 0, 0));
    errno = 0;
    assert_false(append("data", TAIL));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(file_file.end, 0);
    pki_trace_file_close(&file_file);
}

static const struct CMUnitTest file_tests[] = {
    in_folder(a_new_file),
    in_folder(the_umask_decides),
    in_folder(an_older_file_is_replaced_not_written_to),
    in_folder(what_is_no_file_is_refused),
    in_folder(put_whole_or_not_at_all),
    in_folder(begun_and_published),
    in_folder(places_that_do_not_exist),
    in_folder(fresh_files),
    in_folder(closed_after_every_append),
    in_folder(ends_of_any_length),
    in_folder(the_head_again),
    in_folder(a_write_that_failed),
    in_folder(a_file_that_cannot_even_begin),
    in_folder(a_full_device),
};

/* ---- descriptors that are known to be ours, whatever the program does with their numbers ---- */

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

/* -- numbers -- */

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

/* -- whose it is -- */

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

/* -- locks -- */

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

/* -- standard streams -- */

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

static const struct CMUnitTest own_tests[] = {
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

/* ---- a file of lines in a bounded number of parts ---- */

#define LEAST (PKI_ROLLING_PARTS * 1000)

static long size_of(const char *name)
{
    struct stat s;
    return stat(name, &s) == 0 ? (long)s.st_size : -1;
}

static void put_lines(pki_rolling *file, int from, int count)
{
    char line[101];
    for (int i = from; i < from + count; i++) {
        snprintf(line, sizeof line, "%99d\n", i);
        assert_true(pki_rolling_append(file, line, 100));
    }
}

static void parts_of_a_file(void **state)
{
    static pki_rolling file;
    (void)state;
    assert_true(pki_rolling_open(&file, "w", false, LEAST));
    put_lines(&file, 0, 10);
    assert_true(size_of("w") == 1000 && size_of("w.1") == -1);
    put_lines(&file, 10, 1000);
    assert_true(size_of("w") > 0 && size_of("w") <= 1000 && size_of("w.4") == -1);
    assert_true(size_of("w.1") == 1000 && size_of("w.2") == 1000 && size_of("w.3") == 1000);
    errno = 0;
    char large[1001];
    memset(large, 'x', sizeof large);
    assert_true(!pki_rolling_append(&file, large, sizeof large) && errno == EFBIG);
    pki_rolling_close(&file);
}

static void a_file_that_is_moved(void **state)
{
    static pki_rolling file;
    (void)state;
    assert_true(pki_rolling_open(&file, "w", false, LEAST));
    put_lines(&file, 0, 3);
    assert_int_equal(rename("w", "w.old"), 0);
    put_lines(&file, 3, 2);
    assert_true(size_of("w") == 200 && size_of("w.old") == 300);
    assert_int_equal(unlink("w"), 0);
    put_lines(&file, 5, 1);
    assert_int_equal(size_of("w"), 100);
    pki_rolling_close(&file);
}

static void expect_text(const char *name, const char *text)
{
    size_t n;
    char *got = read_file(name, &n);
    assert_string_equal(got, text);
    free(got);
}

/* What an earlier run has left goes out of the way, with its parts; the one before that goes. */
static void an_earlier_run_is_kept(void **state)
{
    (void)state;
    pki_rolling_keep("w");
    assert_false(exists("w.prev"));
    write_file("w", "second\n");
    write_file("w.1", "first\n");
    pki_rolling_keep("w");
    expect_text("w.prev", "second\n");
    expect_text("w.prev.1", "first\n");
    assert_false(exists("w") || exists("w.1"));
    write_file("w", ""); /* killed before its first window */
    pki_rolling_keep("w");
    expect_text("w.prev", "second\n");
    write_file("w", "third\n");
    pki_rolling_keep("w");
    expect_text("w.prev", "third\n");
    assert_false(exists("w.prev.1"));
    write_file("w", "fourth\n");
    assert_int_equal(unlink("w.prev"), 0);
    assert_int_equal(mkdir("w.prev", 0700), 0); /* somebody else's */
    pki_rolling_keep("w");
    expect_text("w", "fourth\n");
    assert_int_equal(rmdir("w.prev"), 0);
}

static const struct CMUnitTest rolling_tests[] = {
    cmocka_unit_test_setup_teardown(parts_of_a_file, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(an_earlier_run_is_kept, enter_folder, leave_folder),
    cmocka_unit_test_setup_teardown(a_file_that_is_moved, enter_folder, leave_folder),
};

/* ---- what the files of a trace are called that is cut into several ---- */

static void expect(const char *path, const char *part)
{
    char name[PATH_MAX];
    assert_true(pki_part_name(path, 3, name));
    assert_string_equal(name, part);
    assert_true(pki_part_is_one(name) && !pki_part_is_one(path));
}

static void names(void **state)
{
    char name[PATH_MAX], longest[PATH_MAX];
    (void)state;
    expect("run.json", "run.part3.json");
    expect("a.b/run.json.gz", "a.b/run.part3.json.gz");
    expect("a.b/run", "a.b/run.part3");
    expect("./.hidden", "./.hidden.part3");
    expect("run.4.json", "run.4.part3.json");
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_false(pki_part_name(longest, 3, name));
}

static void numbers(void **state)
{
    (void)state;
    assert_int_equal(pki_part_of("run.part3.json", "run.json"), 3);
    assert_int_equal(pki_part_of("run.part4294967295.json.gz", "run.json.gz"), UINT32_MAX);
    assert_int_equal(pki_part_of("run.part4294967296.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part99999999999999999999.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part0.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part03.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part3.json.gz", "run.json"), 0);
    assert_int_equal(pki_part_of("run.part3x.json", "run.json"), 0);
    assert_int_equal(pki_part_of("other.part3.json", "run.json"), 0);
    assert_int_equal(pki_part_of("run.json", "run.json"), 0);
    assert_false(pki_part_is_one("run.part.json") || pki_part_is_one("part3") ||
                 pki_part_is_one("run.json"));
}

static const struct CMUnitTest part_name_tests[] = {cmocka_unit_test(names),
                                                    cmocka_unit_test(numbers)};

/* ---- what stands behind a trace's events ---- */

static void tail_expect(const char *wanted)
{
    size_t n;
    char *text = pki_tail_text("{}", 2, &n);
    assert_non_null(text);
    assert_int_equal(n, strlen(wanted));
    assert_memory_equal(text, wanted, n);
    free(text);
}

static void only_the_report(void **state)
{
    (void)state;
    tail_expect("\n],\"perfkitReport\":{}}\n");
}

static void members(void **state)
{
    (void)state;
    pki_tail_set("devices", "[1]");
    pki_tail_set("more", "{\"a\":2}");
    tail_expect("\n],\"devices\":[1],\"more\":{\"a\":2},\"perfkitReport\":{}}\n");
    pki_tail_set("devices", "[]"); /* in its place */
    tail_expect("\n],\"devices\":[],\"more\":{\"a\":2},\"perfkitReport\":{}}\n");
    pki_tail_reset();
    tail_expect("\n],\"perfkitReport\":{}}\n");
}

static void no_more_than_there_is_room_for(void **state)
{
    char key[] = "a";
    (void)state;
    for (; *key < 'z'; key[0]++)
        pki_tail_set(key, "1");
    tail_expect("\n],\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,"
                "\"perfkitReport\":{}}\n");
    pki_tail_reset();
}

static const struct CMUnitTest tail_tests[] = {
    cmocka_unit_test(only_the_report),
    cmocka_unit_test(members),
    cmocka_unit_test(no_more_than_there_is_room_for),
};

int main(void)
{
    int failed = cmocka_run_group_tests(file_tests, NULL, NULL);
    failed += cmocka_run_group_tests(own_tests, NULL, NULL);
    failed += cmocka_run_group_tests(rolling_tests, NULL, NULL);
    failed += cmocka_run_group_tests(part_name_tests, NULL, NULL);
    failed += cmocka_run_group_tests(tail_tests, NULL, NULL);
    return failed;
}
