/* What is written about benchmarks: each form of a made-up program's results, to the byte. */
#include "golden.h"

#include "bench_fixture.h"
#include "bench/rounds.h"
#include "out/json_write.h"

#include <locale.h>
#include <time.h>

typedef void form(const pki_bench_document *document, FILE *file);

static char *text_of(form *put)
{
    char *text = NULL;
    size_t size;
    pki_bench_document d;
    pki_plain plain;
    fixture_bench(&d);
    assert_true(pki_plain_enter(&plain));
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    put(&d, file);
    assert_int_equal(ferror(file), 0);
    fclose(file);
    pki_plain_leave(&plain);
    fixture_bench_finish(&d);
    return text;
}

static void check(const char *name, form *put)
{
    char *text = text_of(put);
    golden_check(name, text);
    free(text);
}

static void plain_text(const pki_bench_document *document, FILE *file)
{
    pki_bench_text(document, PKI_BENCH_NO_PICTURE, file);
}

static void pictures(const pki_bench_document *document, FILE *file)
{
    pki_bench_text(document, PKI_BENCH_SPARKLINE, file);
    pki_bench_text(document, PKI_BENCH_HISTOGRAM, file);
}

static void forms(void **state)
{
    (void)state;
    check("bench.json", pki_bench_json);
    check("bench.csv", pki_bench_csv);
    check("bench.md", pki_bench_markdown);
    check("bench-junit.xml", pki_bench_junit);
    check("bench.txt", plain_text);
    check("bench-pictures.txt", pictures);
}

static void no_locale_gets_in(void **state)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) {
        print_message("no locale with a decimal comma is installed\n");
        skip();
    }
    forms(state);
    setlocale(LC_ALL, "C");
}

static void times(void **state)
{
    (void)state;
    assert_string_equal(pki_bench_time(0).text, "0.000 ns");
    assert_string_equal(pki_bench_time(0.25).text, "0.250 ns");
    assert_string_equal(pki_bench_time(9.9996).text, "10.00 ns");
    assert_string_equal(pki_bench_time(123.44).text, "123.4 ns");
    assert_string_equal(pki_bench_time(1234).text, "1.234 us");
    assert_string_equal(pki_bench_time(12345678).text, "12.35 ms");
    assert_string_equal(pki_bench_time(2.5e9).text, "2.500 s");
    assert_string_equal(pki_bench_time(1e300 * 1e300).text, "-");
}

static void progress(void **state)
{
    (void)state;
    char text[160];
    double sample = 250;
    pki_bench_line line = {.on = true, .repetition = 1, .repetitions = 3};
    pki_bench_case c;
    memset(&c, 0, sizeof c);
    c.name = "a\x1b[31mb";
    pki_bench_line_text(&line, &c, 3, 12, text, sizeof text);
    assert_string_equal(text, "[3/12] repetition 2/3 a?[31mb  warming up");
    c.time = &sample;
    c.count = 1;
    line.repetitions = 1;
    pki_bench_line_text(&line, &c, 3, 12, text, sizeof text);
    assert_string_equal(text, "[3/12] a?[31mb  1 samples, last 250.0 ns");
}

static void aggregates(void **state)
{
    (void)state;
    pki_bench_row rows[4] = {{.result = {.median = 10, .cpu = 1}},
                             {.result = {.outcome = PK_BENCH_OUTCOME_SKIPPED}},
                             {.result = {.median = 20, .cpu = 3}},
                             {.result = {.median = 60}}};
    pki_bench_aggregate all[PKI_BENCH_AGGREGATES];
    assert_int_equal(pki_bench_aggregates(rows, 1, all), 0);
    assert_int_equal(pki_bench_aggregates(rows, 2, all), 0);
    assert_int_equal(pki_bench_aggregates(rows, 4, all), 4);
    assert_true(all[0].real == 30 && all[1].real == 20 && all[1].cpu == 1);
    assert_true(all[2].real > 26.4575 && all[2].real < 26.4576); /* sqrt(700) */
    assert_true(all[3].real > 0.8819 && all[3].real < 0.8820);
}

int main(int argc, char **argv)
{
    golden_folder = argc > 1 ? argv[1] : "tests/golden";
    setenv("TZ", "UTC", 1);
    tzset();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),    cmocka_unit_test(no_locale_gets_in), cmocka_unit_test(times),
        cmocka_unit_test(progress), cmocka_unit_test(aggregates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
