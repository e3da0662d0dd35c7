#include "bench/options.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/bench.h"
#include "bench/case.h"

/* ---- times and shares as people write them on a command line ---- */

/* What strtod also takes, signs, names and hexadecimal numbers, is no number here. */
static bool read_number(const char *text, double *number, const char **rest)
{
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    *number = strtod(text, &end);
    *rest = end;
    return end != text && isfinite(*number) && !memchr(text, 'x', (size_t)(end - text));
}

bool pki_bench_read_time(const char *text, double *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"", 1e9},   {"h", 3.6e12}, {"min", 6e10}, {"s", 1e9},
                 {"ms", 1e6}, {"us", 1e3},   {"ns", 1}};
    const char *unit;
    double number;
    if (!read_number(text, &number, &unit))
        return false;
    for (size_t i = 0; i < PKI_COUNT_OF(units); i++)
        if (strcmp(unit, units[i].name) == 0)
            return (*ns = number * units[i].ns) > 0;
    return false;
}

bool pki_bench_read_share(const char *text, double *share)
{
    const char *rest;
    double number;
    if (!read_number(text, &number, &rest))
        return false;
    bool percent = strcmp(rest, "%") == 0;
    if (percent ? number >= 1000 : *rest || number >= 1)
        return false;
    *share = percent ? number / 100 : number;
    return true;
}

/* ---- the command line of a program of benchmarks ---- */

typedef enum kind { FLAG, TEXT, TIME, SHARE, COUNT32, COUNT64, SPARK, HISTOGRAM, FLAG32 } kind;

typedef struct option {
    const char *name;
    kind kind;
    size_t at; /* of its field in pki_bench_args */
    const char *value, *help;
} option;

#define ARG(field) offsetof(pki_bench_args, field)

static const option options[] = {
    {"filter", TEXT, ARG(filter), "REGEX", "only those whose name it matches; -REGEX: all others"},
    {"list", FLAG, ARG(list), NULL, "the names, and nothing is measured"},
    {"repetitions", COUNT32, ARG(repetitions), "N", "measure everything N times, set up anew"},
    {"precision", SHARE, ARG(over.precision), "P",
     "stop when the median is known to P (1%): half its confidence interval"},
    {"confidence", SHARE, ARG(over.confidence), "P", "the level of that interval (95%)"},
    {"min-time", TIME, ARG(over.min_time), "T", "of a benchmark (100ms); T is 0.5, 0.5s, 500ms"},
    {"max-time", TIME, ARG(over.max_time), "T", "of a benchmark (2s)"},
    {"min-samples", COUNT32, ARG(over.min_samples), "N", "(20)"},
    {"max-samples", COUNT32, ARG(over.max_samples), "N", "(100000)"},
    {"sample-time", TIME, ARG(over.sample_time), "T", "that a sample should take (200us)"},
    {"iterations", COUNT64, ARG(over.iterations), "N", "in a sample, instead of that"},
    {"max-warmup", TIME, ARG(over.max_warmup), "T", "until which it has to run steadily (500ms)"},
    {"cold", FLAG32, ARG(over.cold), NULL, "empty the caches before each iteration"},
    {"unqueued", FLAG32, ARG(over.unqueued), NULL, "a GPU's launches run as they come"},
    {"hardware", FLAG32, ARG(over.hardware), NULL, "count instructions, cycles and misses, too"},
    {"allocations", FLAG32, ARG(over.allocations), NULL, "count allocations, too"},
    {"alone", FLAG, ARG(alone), NULL, "one benchmark after the other, not in turns"},
    {"seed", COUNT64, ARG(over.seed), "N", "of the order of turns and of the bootstrap (1)"},
    {"json", TEXT, ARG(files[PKI_BENCH_JSON]), "FILE",
     "every sample, in Google Benchmark's schema"},
    {"csv", TEXT, ARG(files[PKI_BENCH_CSV]), "FILE", "a line per benchmark"},
    {"markdown", TEXT, ARG(files[PKI_BENCH_MARKDOWN]), "FILE", "a table for a pull request"},
    {"junit", TEXT, ARG(files[PKI_BENCH_JUNIT]), "FILE",
     "for a CI system; FILE may be - in all four"},
    {"sparkline", SPARK, ARG(picture), NULL, "the samples over time, in a line of characters"},
    {"histogram", HISTOGRAM, ARG(picture), NULL, "the samples by size"},
    {"quiet", FLAG, ARG(quiet), NULL, "no table and no progress"},
    {"version", FLAG, ARG(version), NULL, "which perfkit this is"},
    {"help", FLAG, ARG(help), NULL, "this"},
};

static PKI_PRINTF(2, 3) bool complain(pki_bench_args *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(args->complaint, sizeof args->complaint, format, list);
    va_end(list);
    return false;
}

/* ---- values ---- */

static bool read_time(const char *text, uint64_t *ns)
{
    double value;
    if (!pki_bench_read_time(text, &value))
        return false;
    *ns = value < 1e18 ? (uint64_t)value : 0;
    return *ns > 0;
}

static bool read_share(const char *text, double *share)
{
    return pki_bench_read_share(text, share) && *share > 0 && *share < 1;
}

static bool read_count(const char *text, uint64_t most, uint64_t *count)
{
    char *end;
    if (*text < '0' || *text > '9' || strlen(text) > 18)
        return false;
    *count = strtoull(text, &end, 10);
    return *end == 0 && *count > 0 && *count <= most;
}

/* ---- one option ---- */

static bool set_value(pki_bench_args *args, const option *o, const char *text)
{
    char *field = (char *)args + o->at;
    uint64_t count = 0;
    switch (o->kind) {
    case TEXT:
        memcpy(field, &text, sizeof text);
        return *text != 0;
    case TIME:
        return read_time(text, (uint64_t *)(void *)field);
    case SHARE:
        return read_share(text, (double *)(void *)field);
    case COUNT64:
        return read_count(text, INT64_MAX, (uint64_t *)(void *)field);
    default:
        if (!read_count(text, UINT32_MAX, &count))
            return false;
        *(uint32_t *)(void *)field = (uint32_t)count;
        return true;
    }
}

static void set_flag(pki_bench_args *args, const option *o)
{
    char *field = (char *)args + o->at;
    if (o->kind == FLAG)
        *(bool *)(void *)field = true;
    else if (o->kind == FLAG32)
        *(uint32_t *)(void *)field = 1;
    else
        args->picture = o->kind == SPARK ? PKI_BENCH_SPARKLINE : PKI_BENCH_HISTOGRAM;
}

static const option *find(const char *name, size_t length)
{
    for (size_t i = 0; i < PKI_COUNT_OF(options); i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
            return &options[i];
    return NULL;
}

static bool parse_one(pki_bench_args *args, int argc, char **argv, int *at)
{
    const char *word = argv[*at];
    if (strcmp(word, "-h") == 0)
        word = "--help";
    if (strncmp(word, "--", 2) != 0)
        return complain(args, "\"%.100s\" is no option (--help lists them)", word);
    size_t length = strcspn(word + 2, "=");
    const char *given = word[2 + length] ? word + 3 + length : NULL;
    const option *o = find(word + 2, length);
    if (!o)
        return complain(args, "there is no option \"%.100s\" (--help lists them)", word);
    if (!o->value) {
        if (given)
            return complain(args, "--%s takes no value", o->name);
        set_flag(args, o);
        return true;
    }
    if (!given && *at + 1 < argc)
        given = argv[++*at];
    if (!given)
        return complain(args, "--%s needs a value: %s", o->name, o->value);
    if (!set_value(args, o, given))
        return complain(args, "--%s: \"%.100s\" is no value for it: %s %s", o->name, given,
                        o->value, o->help);
    return true;
}

static bool consistent(pki_bench_args *args)
{
    const struct pk_bench_options *o = &args->over;
    int to_stdout = 0;
    for (int i = 0; i < PKI_BENCH_FILES; i++)
        to_stdout += args->files[i] && strcmp(args->files[i], "-") == 0;
    args->to_stdout = to_stdout > 0;
    if (to_stdout > 1)
        return complain(args, "only one of the files can be - (stdout)");
    if (o->max_time && o->max_time < o->min_time)
        return complain(args, "--max-time is below --min-time");
    if (o->max_samples && o->max_samples < o->min_samples)
        return complain(args, "--max-samples is below --min-samples");
    if (o->confidence > 0 && o->confidence < 0.5)
        return complain(args, "--confidence is below 50%%");
    if (args->repetitions > PKI_BENCH_REPETITIONS_MOST)
        return complain(args, "--repetitions is above %d", PKI_BENCH_REPETITIONS_MOST);
    if (o->cold && o->iterations > 1)
        return complain(args, "with --cold a sample is one iteration");
    return true;
}

bool pki_bench_args_parse(pki_bench_args *args, int argc, char **argv)
{
    memset(args, 0, sizeof *args);
    args->repetitions = 1;
    args->over.size = sizeof args->over;
    for (int i = 1; i < argc; i++)
        if (!parse_one(args, argc, argv, &i))
            return false;
    return consistent(args);
}

void pki_bench_args_help(const char *program, FILE *file)
{
    fprintf(file,
            "usage: %s [OPTION ...]\n"
            "\n"
            "Measures the benchmarks of this program in turns and says how far each figure can be\n"
            "trusted. An option wins over what a benchmark asks for itself.\n"
            "\n",
            program);
    for (size_t i = 0; i < PKI_COUNT_OF(options); i++) {
        const option *o = &options[i];
        fprintf(file, "  --%s %s%*s%s\n", o->name, o->value ? o->value : "",
                (int)(18 - strlen(o->name) - strlen(o->value ? o->value : "")), "", o->help);
    }
    fputs("\n"
          "Exit status: 0; 1 if a benchmark failed; 2 if arguments or files are unusable.\n",
          file);
}

/* ---- Options of a benchmark: checked, and made whole. bench/case.h, pk/bench.h ---- */

#define OLDEST_SIZE 16 /* up to `cold` */

static bool tail_is_zero(const struct pk_bench_options *given, size_t known)
{
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = known; i < given->size; i++)
        if (bytes[i])
            return false;
    return true;
}

static pk_status copy(struct pk_bench_options *whole, const struct pk_bench_options *given)
{
    memset(whole, 0, sizeof *whole);
    if (!given)
        return PK_OK;
    if (given->size < OLDEST_SIZE)
        return pki_bench_fail(PK_EINVAL,
                              "pk_bench_options.size is not set (use pk_bench_options(...))");
    if (given->size > sizeof *whole && !tail_is_zero(given, sizeof *whole))
        return pki_bench_fail(PK_EINVAL, "an option of a newer perfkit is set in pk_bench_options");
    memcpy(whole, given, PKI_MIN((size_t)given->size, sizeof *whole));
    whole->size = sizeof *whole;
    return PK_OK;
}

static bool share(double value, double below)
{
    return value == 0 || (value > 0 && value < below);
}

static pk_status check(const struct pk_bench_options *o)
{
    if (o->clock > PK_BENCH_CLOCK_GPU)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.clock is none of pk_bench_clock");
    if (o->threads > PKI_BENCH_THREADS_MOST)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.threads is above %d",
                              PKI_BENCH_THREADS_MOST);
    if (!share(o->precision, 1))
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.precision is not between 0 and 1");
    if (!share(o->confidence, 1) || (o->confidence > 0 && o->confidence < 0.5))
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.confidence is not between 0.5 and 1");
    if (o->max_time && o->max_time < o->min_time)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.max_time is below min_time");
    if (o->max_samples && o->max_samples < o->min_samples)
        return pki_bench_fail(PK_EINVAL, "pk_bench_options.max_samples is below min_samples");
    if (o->clock == PK_BENCH_CLOCK_GPU && o->threads > 1)
        return pki_bench_fail(PK_EINVAL, "a benchmark on a GPU's stream has one thread");
    if (o->cold && o->iterations > 1)
        return pki_bench_fail(PK_EINVAL, "with pk_bench_options.cold a sample is one iteration");
    return PK_OK;
}

#define DEFAULT(field, value) (o->field = o->field > 0 ? o->field : (value))
#define MS 1000000u

static void fill(struct pk_bench_options *o)
{
    DEFAULT(threads, 1);
    DEFAULT(precision, 0.01);
    DEFAULT(confidence, 0.95);
    DEFAULT(min_time, PKI_MIN(100 * MS, o->max_time ? o->max_time : UINT64_MAX));
    DEFAULT(max_time, PKI_MAX(2000 * MS, o->min_time));
    DEFAULT(min_samples, PKI_MIN(20, o->max_samples ? o->max_samples : UINT32_MAX));
    DEFAULT(max_samples, PKI_MAX(100000, o->min_samples));
    DEFAULT(max_warmup, 500 * MS);
    DEFAULT(seed, 1);
    if (o->cold)
        o->iterations = 1;
}

pk_status pki_bench_options_fill(struct pk_bench_options *whole,
                                 const struct pk_bench_options *given)
{
    pk_status status = copy(whole, given);
    if (status == PK_OK)
        status = check(whole);
    if (status == PK_OK)
        fill(whole);
    return status;
}
