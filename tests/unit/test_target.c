/* Paths that are no place for a file: refused in words that say what stands there and what to name,
 * by every option that takes one, with nothing changed. */
#include "out/file.h"
#include "../kit/tuning.h"

#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <pk/pk.h>

static const pki_target_hints hints = {"leave it empty", "\"-\" for the stream"};

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    close(fd);
}

/* "stream" is what /dev/stdout is: a test that failed must not have replaced the machine's. */
static int make_targets(void **state)
{
    int error = enter_folder(state);
    write_file("precious", "precious");
    make_socket("socket");
    return error || symlink("precious", "link") || symlink("nowhere", "dangling") ||
           symlink("/proc/self/fd/1", "stream") || mkdir("folder", 0700) || mkfifo("pipe", 0600);
}

/* ---- the words ---- */

static void expect_words(const char *path, int error, const char *words)
{
    errno = 0;
    assert_false(pki_target_is_free(path));
    assert_int_equal(errno, error);
    assert_string_equal(pki_target_why(path, errno, &hints).text, words);
    assert_int_equal(errno, error);
}

static void each_kind(void **state)
{
    (void)state;
    expect_words("link", ELOOP, "is a symbolic link (to precious): name the file itself");
    expect_words("dangling", ELOOP, "is a symbolic link (to nowhere): name the file itself");
    expect_words("folder", EISDIR, "is a directory: name a file in it");
    expect_words("pipe", EEXIST, "is a named pipe: name a file, or \"-\" for the stream");
    expect_words("socket", EEXIST, "is a socket: name a file, or \"-\" for the stream");
    const char *open = "is a link to what a process has open: name a file, or \"-\" for the stream";
    expect_words("stream", ELOOP, open);
    expect_words("/proc/self/fd/0", ELOOP, open);
    expect_words("/dev/fd/0", ELOOP, open);
    expect_words("/dev/null", EEXIST, "is the null device: leave it empty");
    expect_words("/dev/zero", EEXIST, "is a device: name a file, or \"-\" for the stream");
    assert_string_equal(pki_target_why("/dev/null", EEXIST, NULL).text,
                        "is the null device: name a file");
    assert_string_equal(pki_target_why("stream", ELOOP, NULL).text,
                        "is a link to what a process has open: name a file");
}

static void what_is_free(void **state)
{
    (void)state;
    errno = 5;
    assert_true(pki_target_is_free("precious") && pki_target_is_free("new") &&
                pki_target_is_free("missing/new") && pki_target_is_free(""));
    assert_int_equal(errno, 5);
    assert_string_equal(pki_target_why("precious", ENOSPC, &hints).text, strerror(ENOSPC));
    assert_string_equal(pki_target_why("missing/new", ENOENT, &hints).text, strerror(ENOENT));
}

static void a_long_target(void **state)
{
    char name[1000];
    (void)state;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    assert_int_equal(symlink(name, "far"), 0);
    pki_target_text words = pki_target_why("far", ELOOP, &hints);
    assert_non_null(strstr(words.text, "is a symbolic link (to nnnn"));
    assert_non_null(strstr(words.text, "): name the file itself"));
}

/* ---- the options ---- */

static const char *const targets[] = {"link", "dangling", "stream", "folder", "pipe", "socket"};

/* A path with all that has a right to be beside it is as it was. */
static void expect_untouched(unsigned files)
{
    struct stat s;
    assert_int_equal(count_files(), files);
    assert_true(lstat("link", &s) == 0 && S_ISLNK(s.st_mode));
    assert_true(lstat("dangling", &s) == 0 && S_ISLNK(s.st_mode));
    assert_true(lstat("stream", &s) == 0 && S_ISLNK(s.st_mode));
    assert_true(lstat("folder", &s) == 0 && S_ISDIR(s.st_mode));
    assert_true(lstat("pipe", &s) == 0 && S_ISFIFO(s.st_mode));
    assert_true(lstat("socket", &s) == 0 && S_ISSOCK(s.st_mode));
    char *text = read_file("precious", NULL);
    assert_string_equal(text, "precious");
    free(text);
}

static void expect_refused(const pk_options *options, const char *what, const char *path,
                           const char *instead)
{
    char wanted[256];
    unsigned files = count_files();
    assert_int_equal(pk_start(options), PK_EACCES);
    snprintf(wanted, sizeof wanted, "%s %s: is a", what, path);
    if (!strstr(pk_error_message(), wanted) || !strstr(pk_error_message(), instead))
        fail_msg("\"%s\" does not say: %s ... %s", pk_error_message(), wanted, instead);
    expect_untouched(files);
}

static const char *instead_of(const char *path)
{
    return strcmp(path, "link") == 0 || strcmp(path, "dangling") == 0 ? ": name the file itself"
                                                                      : ": name a file";
}

static void sessions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const char *path = targets[i], *instead = instead_of(path);
        expect_refused(pk_options(.trace_path = path), "trace", path, instead);
        expect_refused(pk_options(.trace_path = path, .tuning = "arena_path=none"), "trace", path,
                       instead);
        expect_refused(pk_options(.report_path = path), "report", path, instead);
        expect_refused(pk_options(.tuning = kit_tuning("arena_path=%s", path)), "arena", path,
                       instead);
    }
    expect_refused(pk_options(.report_path = "stream"), "report", "stream",
                   "name a file, or \"-\" for the standard error");
}

static void the_null_device(void **state)
{
    (void)state;
    unsigned files = count_files();
    assert_int_equal(pk_start(pk_options(.trace_path = "/dev/null")), PK_EACCES);
    assert_string_equal(pk_error_message(), "trace /dev/null: is the null device: leave trace_path "
                                            "empty for statistics only");
    assert_int_equal(pk_start(pk_options(.report_path = "/dev/null")), PK_EACCES);
    assert_string_equal(pk_error_message(),
                        "report /dev/null: is the null device: leave report_path "
                        "empty for no report");
    assert_int_equal(pk_start(pk_options(.tuning = "arena_path=/dev/null")), PK_EACCES);
    assert_non_null(strstr(pk_error_message(), "\"none\" in arena_path"));
    expect_untouched(files);
}

/* The name under which a killed run's trace would be kept. */
static void what_stands_in_the_way_of_an_older_trace(void **state)
{
    (void)state;
    write_file("run.json", "of a killed run");
    write_file("run.json.arena", "its arena");
    assert_int_equal(symlink("precious", "run.json.prev"), 0);
    expect_refused(pk_options(.trace_path = "run.json"), "trace", "run.json.prev",
                   ": name the file itself");
    assert_int_equal(unlink("run.json.prev"), 0);
    assert_int_equal(symlink("precious", "run.json.prev.arena"), 0);
    expect_refused(pk_options(.trace_path = "run.json"), "arena", "run.json.prev.arena",
                   ": name the file itself");
    char *text = read_file("run.json", NULL);
    assert_string_equal(text, "of a killed run");
    free(text);
}

/* It became a link while the program ran. */
static void a_report_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(pk_start(pk_options(.report_path = "report.txt", .backends = "none")), PK_OK);
    assert_int_equal(symlink("precious", "report.txt"), 0);
    assert_int_equal(pk_stop(), PK_EACCES);
    assert_non_null(strstr(pk_error_message(), "report.txt: is a symbolic link"));
    expect_untouched(count_files());
}

#define with_targets(test) cmocka_unit_test_setup_teardown(test, make_targets, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_targets(each_kind),           with_targets(what_is_free),
        with_targets(a_long_target),       with_targets(sessions),
        with_targets(the_null_device),     with_targets(what_stands_in_the_way_of_an_older_trace),
        with_targets(a_report_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
