/* A capture's file with the n-th allocation failing, and on a disk that is full after so many
 * bytes: whole, or not there. */
#include "document.h"
#include "failing_memory.h"

#include <errno.h>
#include <sys/uio.h>

#include "base/memory.h"
#include "history/history.h"
#include "out/file.h"
#include "session/captures/capture_file.h"

static off_t capacity = INT64_MAX;

ssize_t __real_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);
ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at);

ssize_t __wrap_pwritev64(int fd, const struct iovec *pieces, int count, off_t at)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += pieces[i].iov_len;
    if (at + (off_t)n <= capacity)
        return __real_pwritev64(fd, pieces, count, at);
    errno = ENOSPC;
    return -1;
}

static pki_arena *arena;
static pki_history *history;
static pki_capture_job job;

static pki_chrome_name name_of(void *user, uint32_t id)
{
    (void)user, (void)id;
    return (pki_chrome_name){.name = "work", .key = "", .length = 4};
}

/* Some thousand regions of one thread, a kernel, and four steps. */
static void fill(void)
{
    const pki_track track = {77, 7, "gpu 0", "stream 7", 1};
    const pki_activity kernel = {.kind = PKI_ACTIVITY_KERNEL,
                                 .name = "gemm",
                                 .name_length = 4,
                                 .start = 10,
                                 .end = 20,
                                 .track = 1};
    static pki_thread thread = {.tid = 5, .name_version = 1, .name = "worker"};
    uint64_t now = 1000;
    for (uint64_t n = 0; n < 4; n++) {
        uint64_t start = now;
        pki_history_round(history);
        pki_history_thread(history, &thread);
        for (unsigned i = 0; i < 1000; i++, now += 10) {
            pki_record r = {now, 5, PKI_WHAT(9, PKI_RECORD_REGION, 1), 0};
            pki_history_record(history, 5, &r, &r);
        }
        pki_record step[2] = {{start, now - start, PKI_WHAT(2, PKI_RECORD_STEP, 0), 0},
                              {n, 32, 0, 0}};
        pki_history_record(history, 5, &step[0], &step[1]);
        pki_history_step_ended(history, &step[0], &step[1], 0);
        pki_history_activity(history, &kernel, &track);
    }
}

static int begin(void **state)
{
    pki_owned own;
    if (enter_folder(state) || !pki_mem_file(&own, "capture"))
        return -1;
    arena = pki_arena_create(&own, (size_t)8 << 20);
    history = pki_history_create(arena, 10, PKI_HISTORY_LEAST);
    pki_clock_map_init(&arena->header->clock, 1, (pki_clock_sample){1, 1, 0},
                       (pki_clock_sample){2000001, 2000001, 0});
    fill();
    capacity = INT64_MAX;
    return 0;
}

static int end(void **state)
{
    memory_fails_after(-1);
    pki_history_destroy(history);
    pki_arena_destroy(arena);
    return leave_folder(state);
}

static void make_job(void)
{
    static const char head[] = "{\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"first\",\"pid\":1,"
                               "\"tid\":1,\"args\":{}}";
    memset(&job, 0, sizeof job);
    job.wish = (pki_wish){.first = 1, .last = 2, .reason = PKI_CAPTURE_STEPS};
    assert_true(pki_history_view_now(history, &job.view));
    const pki_history_step *first = pki_history_find(&job.view, 1);
    const pki_history_step *last = pki_history_find(&job.view, 2);
    job.range = (pki_history_range){.from = first->start,
                                    .until = last->start + last->ticks,
                                    .first = 1,
                                    .last = 2,
                                    .first_at = first->at};
    job.around[job.around_count++] = *first;
    job.clock = arena->header->clock;
    pki_chrome_init(&job.chrome, &job.clock, 1, name_of, NULL);
    job.head_bytes = sizeof head - 1;
    memcpy(job.head, head, sizeof head);
    job.most_bytes = (uint64_t)1 << 30;
    strcpy(job.path, "c.json");
}

/* Whole and with its name, or nothing at all. */
static bool write_and_check(void)
{
    make_job();
    bool written = pki_capture_file_write(&job);
    pki_chrome_finish(&job.chrome);
    bool failed = memory_has_failed();
    memory_fails_after(-1);
    if (written)
        assert_true(pki_file_publish(job.part, job.path));
    assert_int_equal(count_files(), written);
    if (!written)
        return failed;
    json_t *d = load_document(job.path);
    assert_int_equal(count_events(d, "X", "ProfilerStep#1"), 1);
    assert_int_equal(count_events(d, "X", "ProfilerStep#3"), 0);
    assert_true(failed || count_events(d, "X", "work") >= 2000);
    json_decref(d);
    assert_int_equal(unlink(job.path), 0);
    return failed;
}

static void without_memory(void **state)
{
    (void)state;
    unsigned n = 0;
    for (bool failed = true; failed; n++) {
        memory_fails_once(n);
        failed = write_and_check();
    }
    assert_true(n > 3);
    for (n = 0; n < 6; n++) {
        memory_fails_after(n);
        write_and_check();
    }
}

static void on_a_disk_that_fills(void **state)
{
    static const off_t rooms[] = {0, 50, 200, 1000, 100000, 200000, 300000};
    unsigned refused = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
        capacity = rooms[i];
        make_job();
        bool written = pki_capture_file_write(&job);
        pki_chrome_finish(&job.chrome);
        refused += !written;
        assert_true(written || errno == ENOSPC);
        if (written)
            assert_int_equal(unlink(job.part), 0);
        assert_int_equal(count_files(), 0);
    }
    assert_true(refused >= 4);
    capacity = INT64_MAX;
    memory_fails_after(-1);
    write_and_check();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_memory, begin, end),
        cmocka_unit_test_setup_teardown(on_a_disk_that_fills, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
