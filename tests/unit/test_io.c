/* What runs and steps read and wrote, as the kernel counts it. */
#include "folder.h"
#include "../kit/rounds.h"
#include "valgrind.h"

#include <pk/goodput.h>
#include <pk/pk.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "measure/costs/sums.h"
#include "session/costs/io.h"

/* ---- what a run costs beside time ---- */

/* Files, as the kernel counts them, against what the program did. */

#define BLOCK 65536
#define BLOCKS 160 /* 10 MiB */

/* -- counts -- */

static const char counts_text[] = "rchar: 1000\nwchar: 2000\nsyscr: 10\nsyscw: 20\n"
                                  "read_bytes: 4096\nwrite_bytes: 8192\n"
                                  "cancelled_write_bytes: 0\n";

static void the_kernels_text(void **state)
{
    pki_io_counts c;
    char cut[sizeof counts_text];
    (void)state;
    assert_true(pki_io_parse(counts_text, &c));
    assert_true(c.read_chars == 1000 && c.write_chars == 2000 && c.read_calls == 10);
    assert_true(c.write_calls == 20 && c.read_device == 4096 && c.write_device == 8192);
    memcpy(cut, counts_text, sizeof cut);
    cut[60] = 0;
    assert_false(pki_io_parse(cut, &c));
    assert_false(pki_io_parse("", &c));
}

static void best_of_a_tenth_of_a_second(void **state)
{
    pki_io_account a = {0};
    pki_io_counts c = {.read_device = 500, .read_chars = 7};
    pki_io_summary s = {0};
    (void)state;
    pki_io_add(&a, &c, 1000);
    c.read_device += 1000000;
    pki_io_add(&a, &c, 1000 + 1000); /* too soon to be a rate */
    c.read_device += 1000000;
    pki_io_add(&a, &c, 1000 + 200000000); /* 2 MB in 0.2 s */
    c.read_device += 1000000;
    c.read_chars = 1; /* cannot be; less is none */
    pki_io_add(&a, &c, 1000 + 400000000);
    pki_io_fill(&a, &s);
    assert_true(s.best_read > 9.99e6 && s.best_read < 10.01e6);
    assert_int_equal(s.read_device, 3000000);
    assert_int_equal(s.read_chars, 0);
    assert_int_equal(s.observed, 400000000);
}

/* What reading the first file took is in the second alone. */
static void counts_only_grow(void **state)
{
    pki_io_account a = {0};
    pki_io_counts c = {.read_chars = 100};
    pki_io_summary s = {0};
    (void)state;
    pki_io_add(&a, &c, 1000);
    c.read_chars = 150;
    pki_io_add(&a, &c, 1000 + 200000000);
    c.read_chars = 149;
    pki_io_add(&a, &c, 1000 + 400000000);
    pki_io_fill(&a, &s);
    assert_int_equal(s.read_chars, 50);
}

/* -- by step -- */

static void add_reading(pki_io_course *c, uint64_t last, uint64_t steps, double written,
                        double device)
{
    const pki_io_reading r = {
        .last = last,
        .steps = steps,
        .values = {
            [PKI_IO_READ] = 100, [PKI_IO_WRITTEN] = written, [PKI_IO_DEVICE_WRITTEN] = device}};
    pki_io_course_add(c, &r);
}

static void a_course_of_steps(void **state)
{
    pki_io_course c = {0};
    (void)state;
    for (uint64_t i = 0; i < 99; i++)
        add_reading(&c, i, 1, 0, 0);
    add_reading(&c, 99, 1, 1e6, 4096);
    add_reading(&c, 100, 0, 5e9, 5e9); /* between steps: of none */
    add_reading(&c, 109, 10, 50, 0);   /* 10 steps that share one */
    add_reading(&c, 110, 1, 1e6, 0);   /* as much as the most: that is the first one */
    pki_io_steps s = pki_io_course_summary(&c);
    assert_int_equal(s.steps, 111);
    assert_int_equal(s.readings, 102);
    assert_int_equal(s.alone, 101);
    assert_int_equal(s.device, 1);
    assert_int_equal(s.written.each.count, 111);
    assert_true(s.written.each.sum == 2000050);
    assert_true(s.written.each.p50 == 0 && s.written.each.max == 1e6);
    assert_true(s.written.each.p90 > 4.9 && s.written.each.p90 < 5.1);
    assert_int_equal(s.written.most_step, 99);
    assert_int_equal(s.written.most_steps, 1);
    assert_true(s.read.each.min == 10 && s.read.each.max == 100);
    assert_int_equal(s.read.most_step, 0);
    assert_true(s.operations.each.max == 0);
    pki_io_course_finish(&c);
    assert_int_equal(pki_io_course_summary(&c).steps, 0);
}

/* -- sessions -- */

static uint64_t number_in(const char *report, const char *key)
{
    const char *io = strstr(report, "\"io\":");
    const char *at = io ? strstr(io, key) : NULL;
    if (!at)
        fail_msg("there is no %s", key);
    return strtoull(at + strlen(key), NULL, 10);
}

static void expect_close(uint64_t got, uint64_t done)
{
    if (got < done || got > done + done / 100)
        fail_msg("%llu for %llu", (unsigned long long)got, (unsigned long long)done);
}

/* As dd would: so many calls of so many bytes, there and back. */
static void copy_blocks(void)
{
    static pk_region out = PK_REGION_OF(PK_IO, "write"), in = PK_REGION_OF(PK_DATA, "read");
    static char block[BLOCK];
    int fd = open("data", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < BLOCKS; i++) {
        {
            PK_REGION_SCOPE(out);
            assert_int_equal(pwrite(fd, block, BLOCK, (off_t)i * BLOCK), BLOCK);
            pk_region_add(&out, BLOCK, 0);
        }
        {
            PK_REGION_SCOPE(in);
            assert_int_equal(pread(fd, block, BLOCK, (off_t)i * BLOCK), BLOCK);
            pk_region_add(&in, BLOCK, 0);
        }
        if (i % 10 == 9)
            pk_step(1);
    }
    close(fd);
}

static char *report_of(const char *costs, const char *path)
{
    size_t n;
    assert_int_equal(pk_start(pk_options(.costs = costs, .report_path = path, .backends = "none")),
                     PK_OK);
    copy_blocks();
    pk_phase_begin(PK_PHASE_CHECKPOINT);
    pk_phase_end(PK_PHASE_CHECKPOINT);
    pk_checkpoint_done(1, 12345);
    assert_int_equal(pk_stop(), PK_OK);
    return read_file(path, &n);
}

static void as_much_as_the_program_did(void **state)
{
    pki_io_counts c;
    char text[512];
    FILE *file = fopen("/proc/self/io", "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    (void)state;
    if (file)
        fclose(file);
    text[n] = 0;
    if (!pki_io_parse(text, &c)) {
        print_message("/proc/self/io cannot be read here\n");
        skip();
    }
    char *report = report_of("io", "report.json");
    expect_close(number_in(report, "\"read_chars\":"), (uint64_t)BLOCK * BLOCKS);
    expect_close(number_in(report, "\"write_chars\":"), (uint64_t)BLOCK * BLOCKS);
    uint64_t calls = number_in(report, "\"write_calls\":");
    assert_true(calls >= BLOCKS && calls <= BLOCKS + 2);
    assert_true(number_in(report, "\"exposed\":") > 0);
    assert_int_equal(number_in(report, "\"saves\":"), 1);
    assert_int_equal(number_in(report, "\"save_bytes\":"), 12345);
    free(report);
    report = report_of("io", "report.txt");
    assert_non_null(strstr(report, "FILES\n"));
    assert_non_null(strstr(report, "written 10.5 MB"));
    assert_non_null(strstr(report, "1 checkpoints"));
    free(report);
}

static void where_there_is_no_proc(void **state)
{
    (void)state;
    pki_io_folder = "/nowhere";
    char *report = report_of("io", "report.txt");
    pki_io_folder = "/proc/self";
    assert_non_null(strstr(report, "bytes and calls are unknown"));
    assert_null(strstr(report, "written "));
    free(report);
}

static void what_is_not_asked_for_is_not_there(void **state)
{
    (void)state;
    char *report = report_of(NULL, "report.json");
    assert_null(strstr(report, "\"io\":{"));
    free(report);
    assert_int_equal(pk_start(pk_options(.costs = "io,files")), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "files"));
    setenv("PK_COSTS", "energy,io,", 1);
    report = report_of(NULL, "report.json");
    unsetenv("PK_COSTS");
    assert_non_null(strstr(report, "\"io\":{"));
    free(report);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

static const struct CMUnitTest costs_tests[] = {
    cmocka_unit_test(the_kernels_text),
    cmocka_unit_test(best_of_a_tenth_of_a_second),
    cmocka_unit_test(counts_only_grow),
    cmocka_unit_test(a_course_of_steps),
    IN_FOLDER(as_much_as_the_program_did),
    IN_FOLDER(where_there_is_no_proc),
    IN_FOLDER(what_is_not_asked_for_is_not_there),
};

/* ---- what a trace says of I/O at ends of steps, and a program that copies blocks ---- */

#define IO_STEPS_BLOCK 65536u
#define MIB (1u << 20)
#define MOST 64

/* -- what the trace says -- */

typedef struct reading {
    uint64_t read, written, device_read, device_written, operations, steps;
} reading;

typedef struct readings {
    size_t count;
    reading all[MOST];
} readings;

static size_t values_of(const char *trace, const char *name, const char *unit, uint64_t out[MOST])
{
    char sample[64], member[32];
    size_t n = 0;
    snprintf(sample, sizeof sample, "\"name\":\"%s\",\"pid\"", name);
    snprintf(member, sizeof member, "\"%s\":", unit);
    for (const char *at = trace; (at = strstr(at, sample)) && n < MOST; at++) {
        const char *value = strstr(at, member);
        assert_non_null(value);
        out[n++] = (uint64_t)strtod(value + strlen(member), NULL);
    }
    return n;
}

static readings readings_of(const char *trace)
{
    static const char *const names[6] = {"io.read",           "io.written",    "io.device_read",
                                         "io.device_written", "io.operations", "io.steps"};
    static const char *const units[6] = {"bytes", "bytes", "bytes", "bytes", "calls", "steps"};
    readings r = {0};
    for (size_t i = 0; i < 6; i++) {
        uint64_t values[MOST];
        size_t n = values_of(trace, names[i], units[i], values);
        if (i > 0)
            assert_int_equal(n, r.count); /* all of a reading, or none */
        r.count = n;
        for (size_t k = 0; k < n; k++)
            ((uint64_t *)&r.all[k])[i] = values[k];
    }
    return r;
}

/* Stops the session that has been started with this trace. */
static readings stop(void)
{
    size_t size;
    assert_int_equal(pk_stop(), PK_OK);
    char *trace = read_file("run.json", &size);
    readings r = readings_of(trace);
    free(trace);
    return r;
}

static void start(const char *costs)
{
    assert_int_equal(
        pk_start(pk_options(.costs = costs, .backends = "none", .trace_path = "run.json")), PK_OK);
}

static void io_steps_expect_close(uint64_t got, uint64_t done)
{
    if (got > done + done / 100 || got < done - done / 100)
        fail_msg("%llu for %llu", (unsigned long long)got, (unsigned long long)done);
}

/* -- what a program does -- */

/* Longer than what is between two readings, however slow the machine is. */
static void last(void)
{
    uint64_t until = pki_monotonic_ns() + pki_io_steps_least() + 1000;
    while (pki_monotonic_ns() < until)
        ;
}

static bool can_be_read(void)
{
    char text[512];
    pki_io_counts c;
    FILE *file = fopen("/proc/self/io", "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = 0;
    bool can = pki_io_parse(text, &c);
    if (!can)
        print_message("/proc/self/io cannot be read here\n");
    return can;
}

/* So many bytes, in blocks, behind each other. */
static void put(int fd, uint64_t bytes)
{
    static char block[IO_STEPS_BLOCK] __attribute__((aligned(4096)));
    for (uint64_t at = 0; at < bytes; at += IO_STEPS_BLOCK)
        assert_int_equal(write(fd, block, IO_STEPS_BLOCK), IO_STEPS_BLOCK);
}

static void get(int fd, uint64_t bytes)
{
    static char block[IO_STEPS_BLOCK] __attribute__((aligned(4096)));
    for (uint64_t at = 0; at < bytes; at += IO_STEPS_BLOCK)
        assert_int_equal(pread(fd, block, IO_STEPS_BLOCK, (off_t)at), IO_STEPS_BLOCK);
}

/* Blocks that the file has already: what a file system writes down of new ones counts, too. */
static void have_blocks(int fd, uint64_t bytes)
{
    put(fd, bytes);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
}

/* So that all pages of the arena, which is a file beside the trace, have been touched. */
static void first_step(void)
{
    last();
    pk_step(1);
}

static int data(int more)
{
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | more, 0600);
    assert_true(fd >= 0 || more);
    return fd;
}

/* ---- what each step read and wrote ---- */

/* Counters against what a program did that copies blocks (costs=io), and nothing where nobody
 * asks. */

#define STEPS 6

/* -- cases -- */

static const uint64_t sizes[STEPS] = {2 * MIB, 0, MIB, 4 * MIB, 0, 2 * MIB};

static void each_step_has_what_it_did(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    have_blocks(fd, 9 * MIB);
    start("io");
    first_step();
    errno = 99;
    for (int i = 0; i < STEPS; i++) {
        put(fd, sizes[i]);
        get(fd, sizes[i] / 2);
        if (i % 2)
            fsync(fd);
        last();
        pk_step(1);
    }
    assert_int_equal(errno, 99);
    readings r = stop();
    const reading *each = &r.all[1];
    assert_int_equal(r.count, 1 + STEPS);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(each[i].steps, 1);
        assert_int_equal(each[i].written, sizes[i]);
        assert_int_equal(each[i].read, sizes[i] / 2);
        assert_int_equal(each[i].operations, (sizes[i] + sizes[i] / 2) / IO_STEPS_BLOCK);
        if (each[0].device_written &&
            sizes[i]) /* not in memory; of 0 it is the file system's own */
            io_steps_expect_close(each[i].device_written, sizes[i]);
    }
    close(fd);
}

/* Past the page cache, as far as the file system lets it. */
static void from_and_for_the_device(void **state)
{
    (void)state;
    int fd = can_be_read() ? data(O_DIRECT) : -1;
    if (fd < 0)
        skip();
    have_blocks(fd, 2 * MIB);
    start("io");
    first_step();
    put(fd, MIB);
    last();
    pk_step(1);
    get(fd, 2 * MIB);
    last();
    pk_step(1);
    readings r = stop();
    const reading *each = &r.all[1];
    assert_int_equal(r.count, 3);
    assert_int_equal(each[0].written, MIB);
    if (each[0].device_written) /* not in memory after all */
        io_steps_expect_close(each[0].device_written, MIB);
    if (each[1].device_read)
        io_steps_expect_close(each[1].device_read, 2 * MIB);
    close(fd);
}

static char *io_steps_report_of(const char *costs, const char *path)
{
    size_t size;
    int fd = data(0);
    assert_int_equal(pk_start(pk_options(.costs = costs, .backends = "none", .report_path = path,
                                         .windows_path = "w.jsonl", .tuning = "window_steps=2")),
                     PK_OK);
    for (int i = 0; i < 4; i++) {
        put(fd, i == 2 ? MIB : 0);
        last();
        pk_step_begin();
        put(fd, MIB);
        last();
        pk_step(1);
    }
    assert_int_equal(pk_stop(), PK_OK);
    close(fd);
    return read_file(path, &size);
}

static void the_report_has_steps(void **state)
{
    size_t size;
    (void)state;
    if (!can_be_read())
        skip();
    char *report = io_steps_report_of("io", "report.json"), *lines = read_file("w.jsonl", &size);
    const char *steps = strstr(report, "\"steps\":{\"steps\":4,\"readings\":4,\"alone\":4,");
    assert_non_null(steps);
    const char *written = strstr(steps, "\"written\":{\"each\":{\"count\":4,");
    assert_non_null(written);
    assert_true(strtod(strstr(written, "\"sum\":") + 6, NULL) == 4 * MIB);
    assert_non_null(strstr(written, "\"most_step\":0,\"most_steps\":1"));
    assert_non_null(strstr(lines, "\"io\":{"));
    assert_null(strstr(lines, "\"alone\"")); /* windows have sums */
    free(report);
    free(lines);
    report = io_steps_report_of("io", "report.txt");
    assert_non_null(strstr(report, "  a step                 mean "));
    assert_non_null(
        strstr(report, "  written             1.05 MB    1.05 MB    1.05 MB    1.05 MB"));
    assert_null(strstr(report, "share readings"));
    free(report);
    report = io_steps_report_of("memory", "report.json");
    assert_null(strstr(report, "\"alone\""));
    free(report);
}

/* A reading that finds no room is not taken, and nothing of it is lost: the next one has it. */
static void without_room_in_the_ring(void **state)
{
    static pk_region region = PK_REGION("region");
    pk_counts c = {.size = sizeof c};
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    assert_int_equal(pk_start(pk_options(.costs = "io", .backends = "none",
                                         .trace_path = "run.json", .tuning = "ring_records=64")),
                     PK_OK);
    kit_end_collector();
    for (int i = 0; i < 100; i++) {
        PK_REGION_SCOPE(region);
    }
    put(fd, MIB);
    last();
    pk_step(1);
    assert_int_equal(pk_flush(), PK_OK);
    last();
    pk_step(1);
    readings r = stop();
    assert_int_equal(r.count, 1);
    assert_int_equal(r.all[0].steps, 2);
    assert_true(r.all[0].written >= MIB); /* and what pk_flush wrote, on this thread */
    assert_int_equal(pk_get_counts(&c), PK_OK);
    assert_int_equal(c.points_dropped, 1); /* the step */
    close(fd);
}

/* A reading of several says so, and all of them together have everything. */
static void short_steps_share_a_reading(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    uint64_t steps = 0;
    int fd = data(0);
    start("io");
    last();
    pk_step(1); /* has its own */
    for (int i = 0; i < 20; i++) {
        put(fd, IO_STEPS_BLOCK);
        pk_step(1);
    }
    last();
    put(fd, IO_STEPS_BLOCK);
    pk_step(1);
    readings r = stop();
    assert_true(r.count >= 2);
    for (size_t i = 0; i < r.count; i++) {
        steps += r.all[i].steps;
        assert_int_equal(r.all[i].written, (r.all[i].steps - (i == 0)) * IO_STEPS_BLOCK);
        assert_int_equal(r.all[i].operations, r.all[i].steps - (i == 0));
    }
    assert_int_equal(steps, 22);
    close(fd);
}

/* What lies between steps is in none. */
static void between_steps(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    start("io");
    for (int i = 0; i < 3; i++) {
        put(fd, 2 * MIB);
        last();
        pk_step_begin();
        put(fd, MIB);
        last();
        pk_step(1);
    }
    readings r = stop();
    assert_int_equal(r.count, 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(r.all[i].steps, i % 2);
        assert_int_equal(r.all[i].written, i % 2 ? MIB : 2 * MIB);
    }
    close(fd);
}

static void *make_step(void *fd)
{
    put(*(int *)fd, MIB);
    last();
    pk_step(1);
    return NULL;
}

static void another_thread_ends_steps(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    start("io");
    make_step(&fd);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, make_step, &fd), 0);
        pthread_join(thread, NULL);
        put(fd, MIB);
        make_step(&fd);
    }
    readings r = stop(); /* in the order of threads */
    uint64_t written = 0;
    assert_int_equal(r.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(r.all[i].steps, 1);
        assert_true(r.all[i].written == MIB || r.all[i].written == 2 * MIB);
        written += r.all[i].written;
    }
    assert_int_equal(written, 7 * MIB);
    close(fd);
}

/* What has no end is in no step, and the next session does not have it either. */
static void a_session_ends_amid_a_step(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    for (int i = 0; i < 2; i++) {
        start("io");
        put(fd, MIB);
        last();
        pk_step(1);
        put(fd, 4 * MIB);
        last();
        readings r = stop();
        assert_int_equal(r.count, 1);
        assert_int_equal(r.all[0].written, MIB);
        put(fd, MIB);
    }
    close(fd);
}

static pk_region region = PK_REGION("region");

static void call_often(void)
{
    for (int k = 0; k < 2000; k++) {
        PK_REGION_SCOPE(region);
    }
}

static void *work_beside(void *until)
{
    while (!pki_load_acquire((int *)until))
        call_often();
    return NULL;
}

/* Its trace, and on the program's threads files of its own and, at begins and ends of calls,
 * descriptors of events. */
static void expect_nothing(const char *costs)
{
    pthread_t beside;
    size_t size;
    int until = 0;
    uint64_t operations = 0;
    assert_int_equal(pk_start(pk_options(.costs = costs, .backends = "none",
                                         .trace_path = "run.json", .report_path = "r.json")),
                     PK_OK);
    assert_int_equal(pthread_create(&beside, NULL, work_beside, &until), 0);
    for (int i = 0; i < 40; i++) {
        call_often();
        if (i == 20) {
            pki_store_release(&until, 1);
            pthread_join(beside, NULL);
        }
        last();
        pk_step(1);
    }
    readings r = stop();
    char *report = read_file("r.json", &size);
    assert_true(r.count > 0);
    for (size_t i = 0; i < r.count; i++) {
        assert_int_equal(r.all[i].written, 0);
        operations += r.all[i].operations;
        if (i > 22)
            assert_int_equal(r.all[i].read, 0);
    }
    assert_true(operations <= 2); /* a read of the other thread's that was not over yet */
    if (!strstr(report, "\"read_calls\":0,"))
        fail_msg("%s %.300s", costs, strstr(report, "\"io\":{"));
    free(report);
}

static void perfkits_own_is_not_in_it(void **state)
{
    (void)state;
    if (!can_be_read())
        skip();
    expect_nothing("io,memory");
    expect_nothing("io,software,hardware");
}

/* Beside sampled calls: exactly its own. */
static void as_many_calls_as_it_made(void **state)
{
    size_t size;
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    have_blocks(fd, MIB);
    assert_int_equal(pk_start(pk_options(.costs = "io,software", .backends = "none",
                                         .trace_path = "run.json", .report_path = "r.json")),
                     PK_OK);
    for (int i = 0; i < 40; i++) {
        call_often();
        get(fd, 2 * (uint64_t)IO_STEPS_BLOCK);
        last();
        pk_step(1);
    }
    readings r = stop();
    char *report = read_file("r.json", &size);
    uint64_t operations = 0, read = 0;
    for (size_t i = 0; i < r.count; i++) {
        operations += r.all[i].operations;
        read += r.all[i].read;
    }
    assert_int_equal(operations, 80);
    assert_int_equal(read, 80 * IO_STEPS_BLOCK);
    if (!strstr(report, "\"read_calls\":80,"))
        fail_msg("%.300s", strstr(report, "\"io\":{"));
    free(report);
    close(fd);
}

static void in_the_child_of_a_fork(void **state)
{
    int status;
    (void)state;
    if (forked_child_may_not_record() || !can_be_read())
        skip();
    int fd = data(0);
    start("io");
    put(fd, 2 * MIB);
    last();
    pk_step(1); /* a reading of our own, which the kernel does not count as the child's */
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pk_step(1); /* there is no session */
        if (pk_start(pk_options(.costs = "io", .backends = "none", .trace_path = "child.json")))
            _exit(1);
        put(fd, MIB);
        get(fd, MIB);
        last();
        pk_step(1);
        size_t size;
        if (pk_stop())
            _exit(2);
        char *trace = read_file("child.json", &size);
        readings r = readings_of(trace);
        free(trace);
        _exit(r.count == 1 && r.all[0].written == MIB && r.all[0].read == MIB &&
                      r.all[0].operations == 2 * MIB / IO_STEPS_BLOCK && r.all[0].steps == 1
                  ? 0
                  : 3);
    }
    last();
    pk_step(1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    last();
    pk_step(1);
    readings r = stop();
    assert_int_equal(r.count, 3);
    assert_int_equal(r.all[0].written, 2 * MIB);
    assert_true(r.all[2].written >= MIB); /* to the kernel a child's is its parent's after wait */
    close(fd);
}

/* That of the last step's end, too. */
static void a_capture_has_them(void **state)
{
    size_t size;
    (void)state;
    if (!can_be_read())
        skip();
    int fd = data(0);
    assert_int_equal(pk_start(pk_options(.costs = "io", .backends = "none", .capture = "steps=2-3",
                                         .capture_path = "capture-%s.json")),
                     PK_OK);
    for (int i = 0; i < 6; i++) {
        put(fd, i == 3 ? MIB : IO_STEPS_BLOCK);
        last();
        pk_step(1);
    }
    assert_int_equal(pk_stop(), PK_OK);
    char *trace = read_file("capture-2.json", &size);
    readings r = readings_of(trace);
    assert_true(r.count >= 2);
    assert_int_equal(r.all[r.count - 2].written, IO_STEPS_BLOCK);
    assert_int_equal(r.all[r.count - 1].written, MIB);
    free(trace);
    close(fd);
}

/* What it takes is in perfkit's own account; without costs=io nothing is read. */
static void none_without(void **state)
{
    static const char *const costs[] = {NULL, "memory,energy"};
    (void)state;
    if (!can_be_read())
        skip();
    start("io");
    last();
    pk_step(1);
    assert_true(pki_io_steps_spent() > 0);
    assert_int_equal(stop().count, 1);
    for (size_t i = 0; i < 2; i++) {
        start(costs[i]);
        last();
        pk_step(1);
        assert_int_equal(stop().count, 0);
        assert_int_equal(pki_io_steps_spent(), 0);
    }
}

static const struct CMUnitTest io_steps_tests[] = {
    IN_FOLDER(each_step_has_what_it_did),
    IN_FOLDER(from_and_for_the_device),
    IN_FOLDER(the_report_has_steps),
    IN_FOLDER(without_room_in_the_ring),
    IN_FOLDER(short_steps_share_a_reading),
    IN_FOLDER(between_steps),
    IN_FOLDER(another_thread_ends_steps),
    IN_FOLDER(a_session_ends_amid_a_step),
    IN_FOLDER(perfkits_own_is_not_in_it),
    IN_FOLDER(as_many_calls_as_it_made),
    IN_FOLDER(in_the_child_of_a_fork),
    IN_FOLDER(a_capture_has_them),
    IN_FOLDER(none_without),
};

/* ---- where a folder stands for /proc/self ---- */

/* It has what the kernel's does not have, or nothing (costs=io). */

static void kernel_says(uint64_t written, uint64_t calls)
{
    FILE *file = fopen("io", "w");
    assert_non_null(file);
    fprintf(file,
            "rchar: 1000000\nwchar: %llu\nsyscr: 1000\nsyscw: %llu\nread_bytes: 0\n"
            "write_bytes: %llu\ncancelled_write_bytes: 0\n",
            (unsigned long long)written, (unsigned long long)calls, (unsigned long long)written);
    fclose(file);
}

static void step_of(uint64_t written, uint64_t calls)
{
    kernel_says(written, calls);
    last();
    pk_step(1);
}

static void counts_that_fall(void **state)
{
    static const uint64_t expected[] = {500, 0, 0, 500};
    (void)state;
    kernel_says(1000, 10);
    pki_io_folder = ".";
    start("io");
    step_of(1500, 20000);
    step_of(700, 20000); /* 800 less */
    step_of(1500, 20000);
    step_of(2000, 20001);
    readings r = stop();
    pki_io_folder = "/proc/self";
    assert_int_equal(r.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(r.all[i].written, expected[i]);
        assert_int_equal(r.all[i].device_written, expected[i]);
        assert_int_equal(r.all[i].read, 0); /* it does not have our own reading */
        assert_int_equal(r.all[i].steps, 1);
    }
}

/* A program may give up its rights, and get them again. */
static void not_readable_for_a_while(void **state)
{
    (void)state;
    kernel_says(1000, 10);
    pki_io_folder = ".";
    start("io");
    step_of(1500, 11);
    assert_int_equal(unlink("io"), 0);
    last();
    pk_step(1);
    FILE *file = fopen("io", "w");
    fputs("rchar: 1\nwchar: 2\n", file); /* or half of it */
    fclose(file);
    last();
    pk_step(1);
    step_of(4500, 13);
    readings r = stop();
    pki_io_folder = "/proc/self";
    assert_int_equal(r.count, 2);
    assert_int_equal(r.all[1].steps, 3);
    assert_int_equal(r.all[1].written, 3000);
}

static void where_it_cannot_be_read(void **state)
{
    (void)state;
    pki_io_folder = "/nowhere";
    start("io");
    last();
    pk_step(1);
    assert_int_equal(pki_io_steps_spent(), 0);
    readings r = stop();
    pki_io_folder = "/proc/self";
    assert_int_equal(r.count, 0);
}

static const struct CMUnitTest io_unreadable_tests[] = {
    IN_FOLDER(counts_that_fall),
    IN_FOLDER(not_readable_for_a_while),
    IN_FOLDER(where_it_cannot_be_read),
};

int main(void)
{
    int failed = cmocka_run_group_tests(costs_tests, NULL, NULL);
    failed += cmocka_run_group_tests(io_steps_tests, NULL, NULL);
    failed += cmocka_run_group_tests(io_unreadable_tests, NULL, NULL);
    return failed;
}
