/* Trace files that are compressed, and on a disk that fills up. */
#include "folder.h"

#include <errno.h>
#include <sys/uio.h>

#include <zlib.h>

#include "out/file.h"

/* ---- compressed trace files ---- */

/* One member, complete after every append. */

#define HEAD "{\"traceEvents\":[\n{}"
#define TAIL "\n]}\n"
#define ROOM ((size_t)1 << 24)

static pki_trace_file file;
static char *gz_wanted, *inflated;
static size_t wanted_bytes;

static int open_file(void **state)
{
    if (enter_folder(state))
        return -1;
    gz_wanted = malloc(ROOM);
    inflated = malloc(ROOM);
    wanted_bytes = strlen(HEAD);
    memcpy(gz_wanted, HEAD, wanted_bytes);
    return gz_wanted && inflated &&
                   pki_trace_file_create(&file, "run.json.gz", true, HEAD, strlen(HEAD), TAIL,
                                         strlen(TAIL))
               ? 0
               : -1;
}

static int close_file(void **state)
{
    pki_trace_file_close(&file);
    free(gz_wanted);
    free(inflated);
    return leave_folder(state);
}

static bool append(const char *data, size_t n)
{
    if (!pki_trace_file_append(&file, data, n, TAIL, strlen(TAIL)))
        return false;
    memcpy(gz_wanted + wanted_bytes, data, n);
    wanted_bytes += n;
    return true;
}

/* One gzip member and nothing behind it, whose content is what has been appended, closed. */
static size_t expect_whole(const char *tail)
{
    size_t n;
    unsigned char *bytes = (unsigned char *)read_file("run.json.gz", &n);
    z_stream z = {.next_in = bytes,
                  .avail_in = (uInt)n,
                  .next_out = (Bytef *)inflated,
                  .avail_out = (uInt)ROOM};
    assert_true(n > 18 && bytes[0] == 0x1F && bytes[1] == 0x8B);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END); /* length and checksum are right, too */
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, wanted_bytes + strlen(tail));
    assert_memory_equal(inflated, gz_wanted, wanted_bytes);
    assert_memory_equal(inflated + wanted_bytes, tail, strlen(tail));
    inflateEnd(&z);
    free(bytes);
    return n;
}

static void complete_after_every_append(void **state)
{
    (void)state;
    expect_whole(TAIL);
    for (int i = 0; i < 200; i++) {
        char event[100];
        int n = snprintf(event, sizeof event,
                         ",\n{\"ph\":\"X\",\"name\":\"work\",\"ts\":%d.%03d,\"dur\":%d.000}",
                         i * 77, i, i);
        assert_true(append(event, (size_t)n));
        expect_whole(TAIL);
    }
    assert_true(append("", 0));
    expect_whole(TAIL);
}

static void it_is_small(void **state)
{
    static char text[200000];
    size_t n = 0;
    (void)state;
    for (int i = 0; n < sizeof text - 100; i++)
        n += (size_t)snprintf(text + n, 100,
                              ",\n{\"ph\":\"X\",\"name\":\"work\",\"ts\":%d.125,\"dur\":8.000}",
                              i * 13);
    assert_true(append(text, n));
    assert_true(expect_whole(TAIL) < n / 5);
}

/* What does not compress, in pieces of all sizes up to more than one of the compressor's
 * buffers. */
static void incompressible(void **state)
{
    static const size_t sizes[] = {1, 4095, 4096, 4097, 65535, 65536, 65537, 300000, 2000000};
    char *noise = malloc(2000000);
    uint32_t random = 1;
    (void)state;
    for (size_t i = 0; i < 2000000; i++)
        noise[i] = (char)((random = random * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_true(append(noise, sizes[i]));
        expect_whole(TAIL);
    }
    free(noise);
}

static void ends_of_any_length(void **state)
{
    char *long_end = calloc(1, 100001);
    uint32_t random = 1;
    (void)state;
    for (size_t i = 0; i < 100000;
         i++) /* does not compress: about as long as a buffer, and longer */
        long_end[i] = (char)(1 + (random = random * 1664525 + 1013904223) % 255);
    for (size_t n = 30000; n <= 100000; n += 1000) {
        assert_true(pki_trace_file_append(&file, "", 0, long_end + 100000 - n, n));
        expect_whole(long_end + 100000 - n);
    }
    assert_true(pki_trace_file_append(&file, "", 0, "]", 1));
    expect_whole("]");
    assert_true(append(",1", 2));
    expect_whole(TAIL);
    free(long_end);
}

static void a_write_that_failed(void **state)
{
    char noise[20000];
    uint32_t random = 1;
    (void)state;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)((random = random * 1664525 + 1013904223) >> 24);
    assert_true(append(",1", 2));
    limit_file_size(4096);
    for (int i = 0; i < 3; i++) {
        errno = 0;
        assert_false(append(noise, sizeof noise));
        assert_int_equal(errno, EFBIG);
        expect_whole(TAIL);
    }
    assert_true(append(",2", 2));
    expect_whole(TAIL);
    limit_file_size(RLIM_INFINITY);
    assert_true(append(noise, sizeof noise)); /* and nothing of what failed is in it */
    expect_whole(TAIL);
}

static void the_head_stays(void **state)
{
    (void)state;
    pki_trace_file_rewrite_head(&file, "{\"TRACEEVENTS", 13);
    expect_whole(TAIL);
}

/* An append is final only once it is kept. */
static void undo_and_keep(void **state)
{
    pki_gz_output first, again;
    (void)state;
    pki_gz *gz = pki_gz_create();
    assert_non_null(gz);
    assert_true(pki_gz_append(gz, "data", 4, "end", 3, &first));
    size_t body = first.body_bytes, end = first.end_bytes;
    char *copy = malloc(body);
    memcpy(copy, first.body, body);
    pki_gz_undo(gz);
    pki_gz_undo(gz);
    assert_true(pki_gz_append(gz, "data", 4, "end", 3, &again)); /* as if it had never been */
    assert_true(again.body_bytes == body && again.end_bytes == end);
    assert_memory_equal(again.body, copy, body);
    pki_gz_commit(gz);
    pki_gz_commit(gz);
    assert_true(pki_gz_append(gz, "", 0, "end", 3, &again));
    assert_true(again.body_bytes == 0 && again.end_bytes > 0);
    free(copy);
    pki_gz_destroy(gz);
    pki_gz_destroy(NULL);
}

#define with_file(test) cmocka_unit_test_setup_teardown(test, open_file, close_file)

static const struct CMUnitTest gz_tests[] = {
    with_file(complete_after_every_append),
    with_file(it_is_small),
    with_file(incompressible),
    with_file(ends_of_any_length),
    with_file(a_write_that_failed),
    with_file(the_head_stays),
    cmocka_unit_test(undo_and_keep),
};

/* ---- a disk that fills up in the middle of a write, at every byte of it ---- */

/* The document stays closed.
 *
 * Built with the linker's --wrap: pwrite and pwritev find room up to `capacity`, and below it only
 * in what is there already, as on a file system. */

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
    if (capacity == INT64_MAX && !interruptions)
        return __real_pwritev64(fd, pieces, count, at);
    for (int i = 0; i < count; i++) {
        assert_true(n + pieces[i].iov_len <= sizeof all);
        memcpy(all + n, pieces[i].iov_base, pieces[i].iov_len);
        n += pieces[i].iov_len;
    }
    return __wrap_pwrite64(fd, all, n, at);
}

static pki_trace_file full_disk_file;

static bool full_disk_append(const char *data, const char *tail)
{
    return pki_trace_file_append(&full_disk_file, data, strlen(data), tail, strlen(tail));
}

static void create(const char *path, bool compressed)
{
    capacity = INT64_MAX;
    assert_true(pki_trace_file_create(&full_disk_file, path, compressed, HEAD, strlen(HEAD), TAIL,
                                      strlen(TAIL)));
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
        assert_true(full_disk_append(",1", TAIL));
        struct stat s;
        assert_int_equal(fstat(full_disk_file.own.fd, &s), 0);
        capacity = s.st_size + room;
        const char *data =
            ",\"a longer piece of data that does not compress: qjxkvbzwpyfgc 0918273645\"";
        bool fits = full_disk_append(data, TAIL);
        char wanted[300];
        if (!fits)
            assert_int_equal(errno, ENOSPC);
        snprintf(wanted, sizeof wanted, HEAD ",1%s" TAIL, fits ? data : "");
        expect_content(path, wanted);
        assert_true(full_disk_append("", TAIL)); /* the end is where there are blocks already */
        expect_content(path, wanted);
        assert_true(room < 89 || fits);
        assert_false(room == 0 && fits);
        capacity = INT64_MAX;
        assert_true(full_disk_append(",3", LONG_TAIL)); /* and on it goes, without what failed */
        snprintf(wanted, sizeof wanted, HEAD ",1%s,3" LONG_TAIL, fits ? data : "");
        expect_content(path, wanted);
        pki_trace_file_close(&full_disk_file);
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
        assert_int_equal(fstat(full_disk_file.own.fd, &s), 0);
        capacity = s.st_size + 5;
        assert_false(full_disk_append("", LONG_TAIL));
        assert_true(full_disk_append("", TAIL));
        expect_content(path, HEAD TAIL);
        pki_trace_file_close(&full_disk_file);
    }
}

static void no_room_from_the_start(void **state)
{
    (void)state;
    for (capacity = 0; capacity < (off_t)strlen(HEAD TAIL); capacity++) {
        assert_false(pki_trace_file_create(&full_disk_file, "run.json", false, HEAD, strlen(HEAD),
                                           TAIL, strlen(TAIL)));
        assert_int_equal(errno, ENOSPC);
        assert_int_equal(count_files(), 0);
    }
}

static void interrupted(void **state)
{
    (void)state;
    create("run.json", false);
    interruptions = 3;
    assert_true(full_disk_append(",1", TAIL));
    expect_content("run.json", HEAD ",1" TAIL);
    pki_trace_file_close(&full_disk_file);
}

static const struct CMUnitTest full_disk_tests[] = {
    in_folder(plain),
    in_folder(compressed),
    in_folder(an_end_that_does_not_fit),
    in_folder(no_room_from_the_start),
    in_folder(interrupted),
};

int main(void)
{
    int failed = cmocka_run_group_tests(gz_tests, NULL, NULL);
    failed += cmocka_run_group_tests(full_disk_tests, NULL, NULL);
    return failed;
}
