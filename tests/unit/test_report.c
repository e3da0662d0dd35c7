/* Reports: realistic ones to the byte, what holds for any, and what their pictures are made of. */
#include "golden.h"
#include "report_fixture.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/text.h"
#include "measure/device/steps.h"
#include "measure/timeline.h"
#include "out/columns.h"
#include "out/json_write.h"
#include "out/report/report.h"
#include "stats/series.h"
#include "stats/slot.h"

/* ---- the JSON report ---- */

/* A realistic one to the byte, and valid whatever the summary holds. */

typedef int writer(const pki_summary *summary, FILE *file);

static char *json_of(pki_summary *summary, writer *write)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(write(summary, file), 0);
    fclose(file);
    pki_summary_finish(summary);
    return text;
}

static void a_training_run(void **state)
{
    pki_summary s;
    (void)state;
    fixture_train(&s, 40);
    char *text = json_of(&s, pki_report_json);
    golden_check("report-train.json", text);
    free(text);
}

static void two_gpus(void **state)
{
    pki_summary s;
    (void)state;
    fixture_gpu(&s, 60);
    char *text = json_of(&s, pki_report_json);
    golden_check("report-gpu.json", text);
    free(text);
}

static void two_communicators(void **state)
{
    pki_summary s;
    (void)state;
    fixture_comm(&s);
    char *text = json_of(&s, pki_report_json);
    golden_check("report-comm.json", text);
    free(text);
}

static void one_line_is_the_same_without_breaks(void **state)
{
    pki_summary s;
    (void)state;
    fixture_train(&s, 40);
    char *rows = json_of(&s, pki_report_json);
    fixture_train(&s, 40);
    char *line = json_of(&s, pki_report_json_line);
    size_t kept = 0;
    for (size_t i = 0; rows[i]; i++)
        if (rows[i] != '\n')
            rows[kept++] = rows[i];
    rows[kept] = '\0';
    assert_string_equal(line, rows);
    free(rows);
    free(line);
}

/* A strict reader of JSON (RFC 8259) that keeps nothing. */
static const char *skip_value(const char *s);

static const char *skip_string(const char *s)
{
    assert_int_equal(*s, '"');
    for (s++; *s != '"';) {
        size_t length = pki_utf8_length(s, strnlen(s, 4));
        assert_int_not_equal(length, 0);
        assert_in_range((unsigned char)*s, 0x20, 0xFF);
        if (*s == '\\') {
            assert_non_null(strchr("\"\\/bfnrtu", s[1]));
            s += s[1] == 'u' ? 6 : 2;
        } else {
            s += length;
        }
    }
    return s + 1;
}

static const char *skip_members(const char *s, bool keys, char close)
{
    if (*s == close)
        return s + 1;
    for (;; s++) {
        if (keys) {
            s = skip_string(s);
            assert_int_equal(*s, ':');
            s++;
        }
        s = skip_value(s);
        if (*s == close)
            return s + 1;
        assert_int_equal(*s, ',');
    }
}

static const char *skip_number(const char *s)
{
    s += *s == '-';
    assert_in_range(*s, '0', '9');
    size_t digits = strspn(s, "0123456789");
    assert_true(*s != '0' || digits == 1);
    s += digits;
    if (*s == '.') {
        digits = strspn(++s, "0123456789");
        assert_int_not_equal(digits, 0);
        s += digits;
    }
    if (*s == 'e') {
        s += 1 + (s[1] == '-' || s[1] == '+');
        digits = strspn(s, "0123456789");
        assert_int_not_equal(digits, 0);
        s += digits;
    }
    return s;
}

static const char *skip_value(const char *s)
{
    static const char *const words[] = {"null", "true", "false"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(s, words[i], strlen(words[i])) == 0)
            return s + strlen(words[i]);
    return *s == '{'   ? skip_members(s + 1, true, '}')
           : *s == '[' ? skip_members(s + 1, false, ']')
           : *s == '"' ? skip_string(s)
                       : skip_number(s);
}

static void check_valid(void (*fixture)(pki_summary *))
{
    pki_summary s;
    fixture(&s);
    char *line = json_of(&s, pki_report_json_line);
    assert_int_equal(*skip_value(line), '\0');
    assert_null(strstr(line, "nan"));
    assert_null(strstr(line, "inf"));
    free(line);
}

static void always_valid(void **state)
{
    (void)state;
    check_valid(fixture_empty);
    check_valid(fixture_hostile);
}

static const char *number(double value)
{
    static char text[64];
    FILE *file = fmemopen(text, sizeof text, "w");
    pki_json json = {.file = file};
    pki_json_real(&json, NULL, value);
    fclose(file);
    return text;
}

static void numbers(void **state)
{
    (void)state;
    assert_string_equal(number(0), "0");
    assert_string_equal(number(-3), "-3");
    assert_string_equal(number(9007199254740991.0), "9007199254740991");
    assert_string_equal(number(0.1), "0.1");
    assert_string_equal(number(1 / 3.0), "0.3333333333333333");
    assert_string_equal(number(1e300), "1e+300");
    assert_string_equal(number(NAN), "null");
    assert_string_equal(number(INFINITY), "null");
    assert_string_equal(number(-INFINITY), "null");
    for (double x = 1e-30; x < 1e30; x *= 7.3)
        assert_true(strtod(number(x), NULL) == x);
}

static const char *integer(uint64_t value)
{
    static char text[64];
    FILE *file = fmemopen(text, sizeof text, "w");
    pki_json json = {.file = file};
    pki_json_uint(&json, NULL, value);
    fclose(file);
    return text;
}

static void integers(void **state)
{
    (void)state;
    assert_string_equal(integer(9007199254740993), "9007199254740993");
    assert_string_equal(integer(INT64_MAX), "9223372036854775807");
    assert_string_equal(integer(UINT64_MAX), "9223372036854775807");
}

/* Strings are escaped in pieces; no piece may end inside a character. */
static void long_strings(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 8; shift++) {
        char value[2100] = "", wanted[2200], *text = NULL;
        size_t length;
        memset(value, 'a', shift);
        for (int i = 0; i < 500; i++)
            strcat(value, "\xF0\x9F\x9A\x80");
        FILE *file = open_memstream(&text, &length);
        pki_json json = {.file = file};
        pki_json_text(&json, NULL, value);
        fclose(file);
        snprintf(wanted, sizeof wanted, "\"%s\"", value);
        assert_string_equal(text, wanted);
        free(text);
    }
}

static void no_locale_gets_in(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    a_training_run(state);
    setlocale(LC_ALL, "C");
}

static void write_errors_are_seen(void **state)
{
    pki_summary s;
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    fixture_train(&s, 600);
    assert_int_equal(pki_report_json(&s, full), -ENOSPC);
    fclose(full);
    pki_summary_finish(&s);
}

static const struct CMUnitTest report_json_tests[] = {
    cmocka_unit_test(a_training_run),    cmocka_unit_test(two_gpus),
    cmocka_unit_test(two_communicators), cmocka_unit_test(one_line_is_the_same_without_breaks),
    cmocka_unit_test(always_valid),      cmocka_unit_test(numbers),
    cmocka_unit_test(integers),          cmocka_unit_test(long_strings),
    cmocka_unit_test(no_locale_gets_in), cmocka_unit_test(write_errors_are_seen),
};

/* ---- the text report ---- */

/* A realistic one to the byte, and what holds for any. */

static char *report_of(pki_summary *summary, const pki_report_options *options)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    assert_int_equal(
        options ? pki_report_text_with(summary, options, file) : pki_report_text(summary, file), 0);
    fclose(file);
    pki_summary_finish(summary);
    return text;
}

static char *train_report(const pki_report_options *options)
{
    pki_summary s;
    fixture_train(&s, 600);
    return report_of(&s, options);
}

static void report_text_a_training_run(void **state)
{
    char *text = train_report(NULL);
    (void)state;
    golden_check("report-train.txt", text);
    free(text);
}

static void report_text_two_gpus(void **state)
{
    pki_summary s;
    (void)state;
    fixture_gpu(&s, 60);
    char *text = report_of(&s, NULL);
    golden_check("report-gpu.txt", text);
    free(text);
}

static void report_text_two_communicators(void **state)
{
    pki_summary s;
    (void)state;
    fixture_comm(&s);
    char *text = report_of(&s, NULL);
    golden_check("report-comm.txt", text);
    free(text);
}

/* Eight bytes that wait 10 ms for another rank: 1.2e-6 GB/s is not .00000. */
static void the_bandwidth_of_small_messages(void **state)
{
    static const struct {
        double rate;
        const char *text;
    } known[] = {{1.2e-6, " 1.2e-6 "}, {9.96e-7, " 1.0e-6 "}, {0.00099, " 9.9e-4 "},
                 {0.001, " .00100 "},  {0.05, " .05000 "},    {0, " 0 "}};
    (void)state;
    for (size_t i = 0; i < PKI_COUNT_OF(known); i++) {
        pki_summary s;
        fixture_comm(&s);
        for (size_t r = 0; r < s.comm.collective_count; r++)
            s.comm.collectives[r].busbw.min = known[i].rate;
        char *text = report_of(&s, NULL);
        if (!strstr(text, known[i].text))
            fail_msg("%s is not in %s", known[i].text, text);
        assert_null(strstr(text, ".00000"));
        free(text);
    }
}

static void nothing_at_all(void **state)
{
    pki_summary s;
    (void)state;
    fixture_empty(&s);
    char *text = report_of(&s, NULL);
    golden_check("report-empty.txt", text);
    free(text);
}

/* Valid, safe, at most 80 columns, no blanks at ends of lines. */
static void check_page(char *text)
{
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        if (pki_width(line) > PKI_PAGE_WIDTH)
            fail_msg("%zu columns: %s", pki_width(line), line);
        assert_false(end > line && end[-1] == ' ');
        char again[4096] = "";
        FILE *file = fmemopen(again, sizeof again, "w");
        pki_put_left(file, line, PKI_PAGE_WIDTH);
        fclose(file);
        assert_memory_equal(again, line, strlen(line)); /* already safe */
    }
    free(text);
}

static void any_summary_fits_the_page(void **state)
{
    pki_summary s;
    (void)state;
    check_page(train_report(NULL));
    fixture_hostile(&s);
    check_page(report_of(&s, NULL));
    fixture_gpu(&s, 60);
    check_page(report_of(&s, NULL));
    for (uint64_t steps = 16; steps < 60; steps += 7) {
        fixture_train(&s, steps);
        check_page(report_of(&s, NULL));
    }
}

static size_t times(const char *text, const char *what)
{
    size_t count = 0;
    while ((text = strstr(text, what))) {
        count++;
        text += strlen(what);
    }
    return count;
}

static void options_are_heard(void **state)
{
    (void)state;
    char *text = train_report(&(pki_report_options){.top = 2});
    assert_non_null(strstr(text, "\n  ... and 7 more\n"));
    assert_null(strstr(text, "\n  mlp "));
    free(text);
    text = train_report(&(pki_report_options){.top = PKI_REPORT_ALL});
    assert_null(strstr(text, " more\n"));
    assert_int_equal(times(text, "  read "), 2 + 3); /* FILES has three */
    free(text);
    text = train_report(&(pki_report_options){.no_threads = true});
    assert_int_equal(times(text, "  read "), 1 + 3);
    assert_non_null(strstr(text, "\n  loader 0 "));
    free(text);
}

static void report_text_no_locale_gets_in(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    report_text_a_training_run(state);
    setlocale(LC_ALL, "C");
}

static void report_text_write_errors_are_seen(void **state)
{
    pki_summary s;
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    fixture_train(&s, 600);
    assert_non_null(full);
    assert_int_equal(pki_report_text(&s, full), -ENOSPC);
    fclose(full);
    pki_summary_finish(&s);
}

static const struct CMUnitTest report_text_tests[] = {
    cmocka_unit_test(report_text_a_training_run),
    cmocka_unit_test(report_text_two_gpus),
    cmocka_unit_test(report_text_two_communicators),
    cmocka_unit_test(the_bandwidth_of_small_messages),
    cmocka_unit_test(nothing_at_all),
    cmocka_unit_test(any_summary_fits_the_page),
    cmocka_unit_test(options_are_heard),
    cmocka_unit_test(report_text_no_locale_gets_in),
    cmocka_unit_test(report_text_write_errors_are_seen),
};

/* ---- what a report's pictures are made of ---- */

/* Shapes of distributions, counters over time, devices over the steps. */

/* -- histograms -- */

static void check_whole(const pki_histogram *h, uint64_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < h->count; i++) {
        assert_true(h->buckets[i].from < h->buckets[i].to);
        assert_true(i == 0 || h->buckets[i - 1].to <= h->buckets[i].from);
        assert_true(h->buckets[i].count > 0);
        sum += h->buckets[i].count;
    }
    assert_int_equal(sum, count);
    assert_in_range(h->count, count ? 1 : 0, PKI_HISTOGRAM_MOST);
}

static uint64_t between(const double *values, size_t count, const pki_histogram_bucket *b)
{
    uint64_t inside = 0;
    for (size_t i = 0; i < count; i++)
        inside += values[i] >= b->from && values[i] < b->to;
    return inside;
}

/* From nanoseconds to seconds: six octaves of them must share a bucket. */
static void a_tally_with_everything(void **state)
{
    static double values[20000];
    pki_tally tally = {0};
    pki_histogram h;
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        values[i] = floor(exp((double)(i * 7919 % 20000) / 20000 * 20));
        assert_true(pki_tally_add(&tally, values[i], 1));
    }
    assert_true(pki_histogram_of_tally(&tally, &h));
    check_whole(&h, 20000);
    for (size_t i = 0; i < h.count; i++)
        assert_int_equal(h.buckets[i].count, between(values, 20000, &h.buckets[i]));
    pki_histogram_finish(&h);
    pki_tally_finish(&tally);
}

static void narrow_ones_stay_fine(void **state)
{
    pki_tally tally = {0};
    pki_histogram h;
    (void)state;
    for (int i = 0; i < 1000; i++)
        assert_true(pki_tally_add(&tally, 1e6 + 1e2 * i, 1)); /* 10 % wide */
    assert_true(pki_histogram_of_tally(&tally, &h));
    check_whole(&h, 1000);
    assert_in_range(h.count, 6, 14);
    assert_true(h.buckets[0].to - h.buckets[0].from < 1e6 / 50);
    pki_histogram_finish(&h);
    pki_tally_finish(&tally);
}

static void none_and_one_and_signs(void **state)
{
    pki_tally tally = {0};
    pki_histogram h;
    (void)state;
    assert_true(pki_histogram_of_tally(&tally, &h));
    check_whole(&h, 0);
    assert_null(h.buckets);
    static const double values[] = {-3e6, -2, 0, 0, 2, 3e6};
    for (size_t i = 0; i < 6; i++)
        assert_true(pki_tally_add(&tally, values[i], 1));
    assert_true(pki_histogram_of_tally(&tally, &h));
    uint64_t sum = 0;
    for (size_t i = 0; i < h.count; i++)
        sum += h.buckets[i].count;
    assert_int_equal(sum, 6);
    assert_true(h.buckets[0].from <= -3e6 && h.buckets[0].to > -3e6);
    assert_true(h.buckets[h.count - 1].from <= 3e6 && h.buckets[h.count - 1].to > 3e6);
    pki_histogram_finish(&h);
    pki_tally_finish(&tally);
}

/* Bounds are those of the buckets that were kept. */
static void whole_nanoseconds(void **state)
{
    pki_tally times = {0};
    pki_histogram h;
    (void)state;
    assert_true(pki_tally_count(&times, 5, 2));
    assert_true(pki_tally_count(&times, pki_bucket(400000), 40));
    assert_true(pki_tally_count(&times, pki_bucket(1 << 30), 1));
    assert_true(pki_histogram_of_times(&times, &h));
    check_whole(&h, 43);
    assert_int_equal(h.count, 3);
    assert_true(h.buckets[0].from == 5 && h.buckets[0].to == 6);
    assert_true(h.buckets[1].from <= 400000 && h.buckets[1].to > 400000);
    assert_true(h.buckets[1].to - h.buckets[1].from <= 400000 / 64.0 + 1);
    assert_true(h.buckets[2].from == 1 << 30);
    pki_histogram_finish(&h);
    pki_tally_finish(&times);
}

static void all_buckets_at_once(void **state)
{
    pki_tally times = {0};
    pki_histogram h;
    (void)state;
    for (uint32_t i = 0; i < PK_STATS_BUCKETS; i++)
        assert_true(pki_tally_count(&times, i, 1));
    assert_true(pki_histogram_of_times(&times, &h));
    check_whole(&h, PK_STATS_BUCKETS);
    assert_true(h.buckets[0].from == 0);
    pki_histogram_finish(&h);
    pki_tally_finish(&times);
}

/* -- timelines -- */

static void check_points(const pki_counter_row *row, uint64_t samples)
{
    uint64_t sum = 0;
    assert_in_range(row->point_count, samples > 0, PKI_TIMELINE_MOST);
    for (size_t i = 0; i < row->point_count; i++) {
        const pki_counter_point *p = &row->points[i];
        assert_true(p->samples > 0 && p->min <= p->mean && p->mean <= p->max);
        assert_true(i == 0 || p[-1].start < p->start);
        sum += p->samples;
    }
    assert_int_equal(sum, samples);
}

/* In any order, the same picture. */
static void order_does_not_matter(void **state)
{
    pki_timeline forward = {0}, mixed = {0};
    pki_counter_row a = {0}, b = {0};
    (void)state;
    for (uint64_t i = 0; i < 10007; i++) {
        uint64_t k = i * 5003 % 10007;
        assert_true(pki_timeline_add(&forward, 1000000 * i, (double)(i % 100)));
        assert_true(pki_timeline_add(&mixed, 1000000 * k, (double)(k % 100)));
    }
    assert_true(pki_timeline_fill(&forward, &a) && pki_timeline_fill(&mixed, &b));
    check_points(&a, 10007);
    assert_int_equal(a.point_count, b.point_count);
    assert_memory_equal(a.points, b.points, a.point_count * sizeof *a.points);
    assert_in_range(a.point_count, PKI_TIMELINE_MOST / 2, PKI_TIMELINE_MOST);
    assert_true(a.points[0].start == 0 && a.points[0].min == 0);
    free(a.points);
    free(b.points);
    pki_series_finish(&forward.parts);
    pki_series_finish(&mixed.parts);
}

static void few_samples_are_each_there(void **state)
{
    pki_timeline t = {0};
    pki_counter_row row = {0};
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        assert_true(pki_timeline_add(&t, 5000000000 + 100000000 * i, -1.5 * (double)i));
    assert_false(pki_timeline_add(&t, 1, NAN));
    assert_false(pki_timeline_add(&t, 1, INFINITY));
    assert_true(pki_timeline_fill(&t, &row));
    check_points(&row, 20);
    assert_int_equal(row.point_count, 20);
    assert_true(row.points[19].start == 6900000000 && row.points[19].max == -28.5);
    free(row.points);
    pki_series_finish(&t.parts);
}

static void the_end_of_time(void **state)
{
    pki_timeline t = {0};
    pki_counter_row row = {0};
    (void)state;
    assert_true(pki_timeline_fill(&t, &row));
    assert_null(row.points);
    assert_true(pki_timeline_add(&t, UINT64_MAX, 1));
    assert_true(pki_timeline_add(&t, 0, 2));
    assert_true(pki_timeline_fill(&t, &row));
    check_points(&row, 2);
    free(row.points);
    pki_series_finish(&t.parts);
}

/* -- devices -- */

static void a_device_stays_bounded_and_whole(void **state)
{
    pki_series series = {0};
    pki_gpu_row row = {0};
    uint64_t steps = 0, busy = 0, longest = 0;
    (void)state;
    for (uint64_t i = 0; i < 100003; i++) {
        pki_gpu_series_row step = {
            .index = 1000 + i, .steps = 1, .step = 10, .busy = i % 10, .longest_gap = i % 7};
        assert_true(pki_device_series_add(&series, &step));
    }
    assert_true(pki_device_series_fill(&series, &row));
    assert_in_range(row.series_count, PKI_DEVICE_SERIES_MOST / 4, PKI_DEVICE_SERIES_MOST);
    for (size_t i = 0; i < row.series_count; i++) {
        assert_int_equal(row.series[i].index, 1000 + steps);
        assert_int_equal(row.series[i].step, 10 * row.series[i].steps);
        steps += row.series[i].steps;
        busy += row.series[i].busy;
        longest = row.series[i].longest_gap > longest ? row.series[i].longest_gap : longest;
    }
    assert_int_equal(steps, 100003);
    assert_int_equal(busy, 10000 * 45 + 3);
    assert_int_equal(longest, 6);
    free(row.series);
    pki_series_finish(&series);
}

static const struct CMUnitTest pictures_tests[] = {
    cmocka_unit_test(a_tally_with_everything),
    cmocka_unit_test(narrow_ones_stay_fine),
    cmocka_unit_test(none_and_one_and_signs),
    cmocka_unit_test(whole_nanoseconds),
    cmocka_unit_test(all_buckets_at_once),
    cmocka_unit_test(order_does_not_matter),
    cmocka_unit_test(few_samples_are_each_there),
    cmocka_unit_test(the_end_of_time),
    cmocka_unit_test(a_device_stays_bounded_and_whole),
};

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : "tests/golden";
    int failed = cmocka_run_group_tests(report_json_tests, NULL, NULL);
    failed += cmocka_run_group_tests(report_text_tests, NULL, NULL);
    failed += cmocka_run_group_tests(pictures_tests, NULL, NULL);
    return failed;
}
