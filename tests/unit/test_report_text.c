/* The text report: a realistic one to the byte, and what holds for any. */
#include "base/compiler.h"
#include "golden.h"
#include "out/columns.h"
#include "out/report/report.h"
#include "report_fixture.h"

#include <errno.h>
#include <locale.h>

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

static void a_training_run(void **state)
{
    char *text = train_report(NULL);
    (void)state;
    golden_check("report-train.txt", text);
    free(text);
}

static void two_gpus(void **state)
{
    pki_summary s;
    (void)state;
    fixture_gpu(&s, 60);
    char *text = report_of(&s, NULL);
    golden_check("report-gpu.txt", text);
    free(text);
}

static void two_communicators(void **state)
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
    fixture_train(&s, 600);
    assert_non_null(full);
    assert_int_equal(pki_report_text(&s, full), -ENOSPC);
    fclose(full);
    pki_summary_finish(&s);
}

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : "tests/golden";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_run),        cmocka_unit_test(two_gpus),
        cmocka_unit_test(two_communicators),     cmocka_unit_test(the_bandwidth_of_small_messages),
        cmocka_unit_test(nothing_at_all),        cmocka_unit_test(any_summary_fits_the_page),
        cmocka_unit_test(options_are_heard),     cmocka_unit_test(no_locale_gets_in),
        cmocka_unit_test(write_errors_are_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
