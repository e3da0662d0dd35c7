/* A disk that fills up in the middle of a write, at every byte of it: the document stays closed.
 *
 * Built with the linker's --wrap: pwrite and pwritev find room up to `capacity`, and below it only
 * in what is there already, as on a file system.
 */
#include "out/file.h"

#include "folder.h"

#include <errno.h>
#include <sys/uio.h>
#include <zlib.h>

#define HEAD "{\"traceEvents\":[\n{}"
#define TAIL "\n]}\n"
#define LONG_TAIL "\n],\"perfkitReport\":{\"schema\":1}}\n"

static off_t capacity = INT64_MAX;
static unsigned interruptions;

ssize_t __real_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __real_pwrite64(int fd, const void *data, size_t n, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at);

ssize_t __wrap_pwrite64(int fd, const void *data, size_t n, off_t at)
{
    struct stat s;
    if (interruptions > 0 && interruptions--) {
        errno = EINTR;
        return -1;
    }
    if (fstat(fd, &s) != 0)
        return -1;
    off_t room = (s.st_size > capacity ? s.st_size : capacity) - at;
    if (room <= 0 && n > 0) {
        errno = ENOSPC;
        return -1;
    }
    return __real_pwrite64(fd, data, (off_t)n < room ? n : (size_t)room, at);
}

/* As one write, and as one it may be cut. */
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
{
    char all[1 << 16];
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        assert_true(n + pieces[i].iov_len <= sizeof all);
        memcpy(all + n, pieces[i].iov_base, pieces[i].iov_len);
        n += pieces[i].iov_len;
    }
    return __wrap_pwrite64(fd, all, n, at);
}

static pki_trace_file file;

static bool append(const char *data, const char *tail)
{
    return pki_trace_file_append(&file, data, strlen(data), tail, strlen(tail));
}

static void create(const char *path, bool compressed)
{
    capacity = INT64_MAX;
    assert_true(
        pki_trace_file_create(&file, path, compressed, HEAD, strlen(HEAD), TAIL, strlen(TAIL)));
}

/* gzread passes plain files through. */
static void expect_content(const char *path, const char *wanted)
{
    char text[1000];
    gzFile in = gzopen(path, "rb");
    assert_non_null(in);
    int n = gzread(in, text, sizeof text - 1);
    assert_true(n >= 0);
    text[n] = 0;
    assert_string_equal(text, wanted);
    assert_int_equal(gzclose(in), Z_OK); /* the member was complete */
}

static void fill_up(const char *path, bool compressed)
{
    for (off_t room = 0; room < 90; room++) {
        create(path, compressed);
        assert_true(append(",1", TAIL));
        struct stat s;
        assert_int_equal(fstat(file.own.fd, &s), 0);
        capacity = s.st_size + room;
        const char *data =
            ",\"a longer piece of data that does not compress: qjxkvbzwpyfgc 0918273645\"";
        bool fits = append(data, TAIL);
        char wanted[300];
        if (!fits)
            assert_int_equal(errno, ENOSPC);
        snprintf(wanted, sizeof wanted, HEAD ",1%s" TAIL, fits ? data : "");
        expect_content(path, wanted);
        assert_true(append("", TAIL)); /* the end is where there are blocks already */
        expect_content(path, wanted);
        assert_true(room < 89 || fits);
        assert_false(room == 0 && fits);
        capacity = INT64_MAX;
        assert_true(append(",3", LONG_TAIL)); /* and on it goes, without what failed */
        snprintf(wanted, sizeof wanted, HEAD ",1%s,3" LONG_TAIL, fits ? data : "");
        expect_content(path, wanted);
        pki_trace_file_close(&file);
    }
}

static void plain(void **state)
{
    (void)state;
    fill_up("run.json", false);
}

static void compressed(void **state)
{
    (void)state;
    fill_up("run.json.gz", true);
}

/* As at the end of a session: the report finds no room, the brackets do. */
static void an_end_that_does_not_fit(void **state)
{
    (void)state;
    for (int gz = 0; gz < 2; gz++) {
        const char *path = gz ? "run.json.gz" : "run.json";
        create(path, gz);
        struct stat s;
        assert_int_equal(fstat(file.own.fd, &s), 0);
        capacity = s.st_size + 5;
        assert_false(append("", LONG_TAIL));
        assert_true(append("", TAIL));
        expect_content(path, HEAD TAIL);
        pki_trace_file_close(&file);
    }
}

static void no_room_from_the_start(void **state)
{
    (void)state;
    for (capacity = 0; capacity < (off_t)strlen(HEAD TAIL); capacity++) {
        assert_false(pki_trace_file_create(&file, "run.json", false, HEAD, strlen(HEAD), TAIL,
                                           strlen(TAIL)));
        assert_int_equal(errno, ENOSPC);
        assert_int_equal(count_files(), 0);
    }
}

static void interrupted(void **state)
{
    (void)state;
    create("run.json", false);
    interruptions = 3;
    assert_true(append(",1", TAIL));
    expect_content("run.json", HEAD ",1" TAIL);
    pki_trace_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(plain),
        in_folder(compressed),
        in_folder(an_end_that_does_not_fit),
        in_folder(no_room_from_the_start),
        in_folder(interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
