/* What a run costs beside time: files, as the kernel counts them, against what the program did. */
#include "folder.h"

#include <fcntl.h>

#include <pk/pk.h>

#include "measure/costs/io.h"
#include "measure/costs/io_steps.h"
#include "session/costs/io.h"

#define BLOCK 65536
#define BLOCKS 160 /* 10 MiB */

/* ---- counts ---- */

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

/* ---- by step ---- */

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

/* ---- sessions ---- */

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
        PK_SCOPE(out) {
            assert_int_equal(pwrite(fd, block, BLOCK, (off_t)i * BLOCK), BLOCK);
            pk_region_add(&out, BLOCK, 0);
        }
        PK_SCOPE(in) {
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

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernels_text),
        cmocka_unit_test(best_of_a_tenth_of_a_second),
        cmocka_unit_test(counts_only_grow),
        cmocka_unit_test(a_course_of_steps),
        IN_FOLDER(as_much_as_the_program_did),
        IN_FOLDER(where_there_is_no_proc),
        IN_FOLDER(what_is_not_asked_for_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
