/* The command line of a program of benchmarks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/options.h"

static pki_bench_args args;

/* Words are separated by blanks. */
static bool parse(const char *line)
{
    static char words[512];
    char *argv[64] = {(char[]){"program"}}, *rest = NULL;
    int argc = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return pki_bench_args_parse(&args, argc, argv);
}

static void everything(void **state)
{
    (void)state;
    assert_true(parse("--filter ^sum/ --list --repetitions 9 --precision 0.5% --confidence 0.99"
                      " --min-time 0.5 --max-time=3s --min-samples 7 --max-samples 70"
                      " --sample-time 50us --iterations 12 --max-warmup 20ms --hardware"
                      " --allocations --alone --seed 42 --json a --csv b --markdown c --junit -"
                      " --histogram --quiet"));
    assert_string_equal(args.filter, "^sum/");
    assert_true(args.list && args.alone && args.quiet && !args.help);
    assert_int_equal(args.repetitions, 9);
    assert_true(args.over.precision == 0.005 && args.over.confidence == 0.99);
    assert_int_equal(args.over.min_time, 500000000);
    assert_int_equal(args.over.max_time, 3000000000);
    assert_int_equal(args.over.min_samples, 7);
    assert_int_equal(args.over.max_samples, 70);
    assert_int_equal(args.over.sample_time, 50000);
    assert_int_equal(args.over.iterations, 12);
    assert_int_equal(args.over.max_warmup, 20000000);
    assert_int_equal(args.over.hardware, 1);
    assert_int_equal(args.over.allocations, 1);
    assert_int_equal(args.over.seed, 42);
    assert_string_equal(args.files[PKI_BENCH_JSON], "a");
    assert_string_equal(args.files[PKI_BENCH_CSV], "b");
    assert_string_equal(args.files[PKI_BENCH_MARKDOWN], "c");
    assert_string_equal(args.files[PKI_BENCH_JUNIT], "-");
    assert_int_equal(args.picture, PKI_BENCH_HISTOGRAM);
}

static void nothing(void **state)
{
    (void)state;
    assert_true(parse(""));
    assert_int_equal(args.repetitions, 1);
    assert_null(args.filter);
    assert_int_equal(args.over.size, sizeof args.over);
    assert_true(parse("--cold -h --unqueued --sparkline"));
    assert_true(args.over.unqueued == 1);
    assert_true(args.help && args.over.cold == 1 && args.picture == PKI_BENCH_SPARKLINE);
}

static void refused(const char *line, const char *why)
{
    if (parse(line))
        fail_msg("%s: taken", line);
    if (!strstr(args.complaint, why))
        fail_msg("%s: \"%s\" says nothing of \"%s\"", line, args.complaint, why);
}

static void complaints(void **state)
{
    (void)state;
    refused("--fliter x", "no option \"--fliter\"");
    refused("--filte x", "no option");
    refused("--filters x", "no option");
    refused("sum", "\"sum\" is no option");
    refused("-x", "is no option");
    refused("--", "no option");
    refused("--json", "needs a value");
    refused("--json=", "is no value");
    refused("--list=yes", "takes no value");
    refused("--repetitions 0", "is no value");
    refused("--repetitions -1", "is no value");
    refused("--repetitions 1.5", "is no value");
    refused("--repetitions 99999999999", "is no value");
    refused("--repetitions 1001", "above 1000");
    refused("--seed 99999999999999999999", "is no value");
    refused("--min-time x", "is no value");
    refused("--min-time 0", "is no value");
    refused("--min-time 5d", "is no value");
    refused("--min-time 0x5s", "is no value");
    refused("--min-time -1s", "is no value");
    refused("--min-time 1e300", "is no value");
    refused("--min-time nan", "is no value");
    refused("--precision 100%", "is no value");
    refused("--precision 1%%", "is no value");
    refused("--precision 1", "is no value");
    refused("--confidence 0.2", "below 50%");
    refused("--min-time 3s --max-time 2s", "below --min-time");
    refused("--min-samples 3 --max-samples 2", "below --min-samples");
    refused("--cold --iterations 2", "one iteration");
    refused("--json - --csv -", "only one");
}

/* Every option is in the help, and no other. */
static void help(void **state)
{
    (void)state;
    char *text = NULL, word[64];
    size_t size, found = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    pki_bench_args_help("program", file);
    fclose(file);
    for (const char *at = text; (at = strstr(at, "\n  --")); at++) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at + 3, " "), at + 3);
        bool taken = parse(word);
        assert_true(taken || strstr(args.complaint, "needs a value"));
        found++;
    }
    assert_int_equal(found, 27);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 100)
            fail_msg("%zu columns: %s", strlen(line), line);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),
        cmocka_unit_test(nothing),
        cmocka_unit_test(complaints),
        cmocka_unit_test(help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
