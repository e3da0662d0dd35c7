/* Trace files: how they come to their name, whole after every write, and as before after one that
 * failed. */
#include "out/file.h"

#include "folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>

#define HEAD "{\"traceEvents\":[\n{}"
#define TAIL "\n]}\n"

static pki_trace_file file;

static bool create(const char *path)
{
    return pki_trace_file_create(&file, path, false, HEAD, strlen(HEAD), TAIL, strlen(TAIL));
}

static bool append(const char *data, const char *tail)
{
    return pki_trace_file_append(&file, data, strlen(data), tail, strlen(tail));
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
    assert_int_equal(file.own.fd, -1);
    assert_int_equal(count_files(), before); /* nothing left behind */
}

/* ---- names ---- */

static void a_new_file(void **state)
{
    struct stat s;
    (void)state;
    assert_true(create("run.json"));
    expect_content("run.json", HEAD TAIL);
    assert_int_equal(count_files(), 1); /* the name it was made under is gone */
    assert_int_equal(fstat(file.own.fd, &s), 0);
    assert_true(fcntl(file.own.fd, F_GETFD) & FD_CLOEXEC);
    pki_trace_file_close(&file);
    assert_int_equal(file.own.fd, -1);
    pki_trace_file_close(&file);
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
        pki_trace_file_close(&file);
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
    pki_trace_file_close(&file);
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
    assert_true(pki_trace_file_begin(&file, "run.json", false, HEAD, strlen(HEAD), TAIL,
                                     strlen(TAIL), temporary));
    assert_true(append(",1", TAIL));
    expect_content("run.json", "older");
    pki_trace_file_close(&file);
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

/* ---- writes ---- */

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
    assert_int_equal(file.end, strlen(wanted));
    pki_trace_file_close(&file);
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
    pki_trace_file_close(&file);
}

static void the_head_again(void **state)
{
    (void)state;
    assert_true(create("run.json"));
    assert_true(append(",1", TAIL));
    pki_trace_file_rewrite_head(&file, "{\"TRACEEVENTS", 13);
    expect_content("run.json", "{\"TRACEEVENTS\":[\n{},1" TAIL);
    pki_trace_file_close(&file);
    pki_trace_file_rewrite_head(&file, "nothing", 7); /* closed */
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
    pki_trace_file_close(&file);
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
    file = PKI_TRACE_FILE_NONE;
    assert_true(pki_own_adopt(&file.own, fd));
    assert_false(pki_file_write_at(&file.own, "x", 1, 0));
    assert_int_equal(errno, ENOSPC);
    assert_true(pki_file_write_at(&file.own, "", 0, 0));
    errno = 0;
    assert_false(append("data", TAIL));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(file.end, 0);
    pki_trace_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
