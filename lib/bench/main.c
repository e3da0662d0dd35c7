/* pk_bench_main: choose, measure, write. */
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "bench/arguments.h"
#include "bench/bench.h"
#include "bench/case.h"
#include "bench/forms/document.h"
#include "bench/options.h"
#include "bench/registry.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"
#include "out/file.h"
#include "out/json_write.h"

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

static PKI_PRINTF(2, 3) bool refuse_option(pki_bench_args *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(args->complaint, sizeof args->complaint, format, list);
    va_end(list);
    return false;
}

/* A complaint unless it was taken. */
static bool taken_or_refused(void *args, const pki_option_given *given, bool taken)
{
    const pki_option *o = given->option;
    if (!given->text)
        return refuse_option(args, "%s needs a value: %s", o->name, o->value);
    return taken || refuse_option(args, "%s: \"%.100s\" is no value for it: %s %s", o->name,
                                  given->text, o->value, o->help);
}

static bool take_text(void *args, const pki_option_given *given)
{
    memcpy(pki_option_member(args, given), &given->text, sizeof given->text);
    return taken_or_refused(args, given, given->text && *given->text);
}

static bool take_time(void *args, const pki_option_given *given)
{
    double value = 0;
    bool taken = given->text && pki_bench_read_time(given->text, &value) && value < 1e18;
    uint64_t *ns = pki_option_member(args, given);
    *ns = taken ? (uint64_t)value : 0;
    return taken_or_refused(args, given, *ns > 0);
}

static bool take_share(void *args, const pki_option_given *given)
{
    double *share = pki_option_member(args, given);
    bool taken = given->text && pki_bench_read_share(given->text, share);
    return taken_or_refused(args, given, taken && *share > 0 && *share < 1);
}

static bool read_count(const char *text, uint64_t most, uint64_t *count)
{
    char *end;
    if (!text || *text < '0' || *text > '9' || strlen(text) > 18)
        return false;
    *count = strtoull(text, &end, 10);
    return *end == 0 && *count > 0 && *count <= most;
}

static bool take_count(void *args, const pki_option_given *given)
{
    uint64_t count = 0;
    bool taken = read_count(given->text, UINT32_MAX, &count);
    *(uint32_t *)pki_option_member(args, given) = (uint32_t)count;
    return taken_or_refused(args, given, taken);
}

static bool take_count64(void *args, const pki_option_given *given)
{
    return taken_or_refused(args, given,
                            read_count(given->text, INT64_MAX, pki_option_member(args, given)));
}

static bool set_one(void *args, const pki_option_given *given)
{
    *(uint32_t *)pki_option_member(args, given) = 1;
    return true;
}

static bool set_sparkline(void *args, const pki_option_given *given)
{
    (void)given;
    ((pki_bench_args *)args)->picture = PKI_BENCH_SPARKLINE;
    return true;
}

static bool set_histogram(void *args, const pki_option_given *given)
{
    (void)given;
    ((pki_bench_args *)args)->picture = PKI_BENCH_HISTOGRAM;
    return true;
}

#define AT(setter, field) .take = (setter), .at = offsetof(pki_bench_args, field)
#define FLAG(field) AT(NULL, field)
#define ONE(field) AT(set_one, field)
#define TEXT(field) AT(take_text, field)
#define TIME(field) AT(take_time, field)
#define SHARE(field) AT(take_share, field)
#define COUNT(field) AT(take_count, field)
#define COUNT64(field) AT(take_count64, field)

static const pki_option options[] = {
    {"--filter", "REGEX", "only those whose name it matches; -REGEX: all others", TEXT(filter)},
    {"--list", NULL, "the names, and nothing is measured", FLAG(list)},
    {"--repetitions", "N", "measure everything N times, set up anew", COUNT(repetitions)},
    {"--precision", "P", "stop when the median is known to P (1%): half its confidence interval",
     SHARE(over.precision)},
    {"--confidence", "P", "the level of that interval (95%)", SHARE(over.confidence)},
    {"--min-time", "T", "of a benchmark (100ms); T is 0.5, 0.5s, 500ms", TIME(over.min_time)},
    {"--max-time", "T", "of a benchmark (2s)", TIME(over.max_time)},
    {"--min-samples", "N", "(20)", COUNT(over.min_samples)},
    {"--max-samples", "N", "(100000)", COUNT(over.max_samples)},
    {"--sample-time", "T", "that a sample should take (200us)", TIME(over.sample_time)},
    {"--iterations", "N", "in a sample, instead of that", COUNT64(over.iterations)},
    {"--max-warmup", "T", "until which it has to run steadily (500ms)", TIME(over.max_warmup)},
    {"--cold", NULL, "empty the caches before each iteration", ONE(over.cold)},
    {"--unqueued", NULL, "a GPU's launches run as they come", ONE(over.unqueued)},
    {"--hardware", NULL, "count instructions, cycles and misses, too", ONE(over.hardware)},
    {"--allocations", NULL, "count allocations, too", ONE(over.allocations)},
    {"--alone", NULL, "one benchmark after the other, not in alternation", FLAG(alone)},
    {"--seed", "N", "of the order of rounds and of the bootstrap (1)", COUNT64(over.seed)},
    {"--json", "FILE", "every sample, in Google Benchmark's schema", TEXT(files[PKI_BENCH_JSON])},
    {"--csv", "FILE", "a line per benchmark", TEXT(files[PKI_BENCH_CSV])},
    {"--markdown", "FILE", "a table for a pull request", TEXT(files[PKI_BENCH_MARKDOWN])},
    {"--junit", "FILE", "for a CI system; FILE may be - in all four", TEXT(files[PKI_BENCH_JUNIT])},
    {"--sparkline", NULL, "the samples over time, in a line of characters", .take = set_sparkline},
    {"--histogram", NULL, "the samples by size", .take = set_histogram},
    {"--quiet", NULL, "no table and no progress", FLAG(quiet)},
    {"--version", NULL, "which perfkit this is", FLAG(version)},
};

static const pki_option_list option_list = {options, PKI_COUNT_OF(options)};

/* How many words it was; 0 after a complaint. */
static int parse_one(pki_bench_args *args, char **words, int count)
{
    if (pki_option_is_help(words[0]))
        return args->help = true;
    int taken = strncmp(words[0], "--", 2) == 0
                    ? pki_option_take(&option_list, args, words, count, NULL)
                    : -2;
    if (taken == -2)
        refuse_option(args, "\"%.100s\" is no option (--help lists them)", words[0]);
    else if (taken == 0)
        refuse_option(args, "there is no option \"%.100s\" (--help lists them)", words[0]);
    return PKI_MAX(taken, 0);
}

static bool consistent(pki_bench_args *args)
{
    const struct pk_bench_options *o = &args->over;
    int to_stdout = 0;
    for (int i = 0; i < PKI_BENCH_FILES; i++)
        to_stdout += args->files[i] && strcmp(args->files[i], "-") == 0;
    args->to_stdout = to_stdout > 0;
    if (to_stdout > 1)
        return refuse_option(args, "only one of the files can be - (stdout)");
    if (o->max_time && o->max_time < o->min_time)
        return refuse_option(args, "--max-time is below --min-time");
    if (o->max_samples && o->max_samples < o->min_samples)
        return refuse_option(args, "--max-samples is below --min-samples");
    if (o->confidence > 0 && o->confidence < 0.5)
        return refuse_option(args, "--confidence is below 50%%");
    if (args->repetitions > PKI_BENCH_REPETITIONS_MOST)
        return refuse_option(args, "--repetitions is above %d", PKI_BENCH_REPETITIONS_MOST);
    if (o->cold && o->iterations > 1)
        return refuse_option(args, "with --cold a sample is one iteration");
    return true;
}

bool pki_bench_args_parse(pki_bench_args *args, int argc, char **argv)
{
    memset(args, 0, sizeof *args);
    args->repetitions = 1;
    args->over.size = sizeof args->over;
    for (int i = 1, taken; i < argc; i += taken)
        if (!(taken = parse_one(args, argv + i, argc - i)))
            return false;
    return consistent(args);
}

void pki_bench_args_help(const char *program, FILE *file)
{
    fprintf(
        file,
        "usage: %s [OPTION ...]\n"
        "\n"
        "Measures this program's benchmarks in alternation and says how far each figure can be\n"
        "trusted. An option wins over what a benchmark asks for itself.\n"
        "\n",
        program);
    pki_options_print(&option_list, file);
    fputs("\n"
          "Exit status: 0; 1 if a benchmark failed; 2 if arguments or files are unusable.\n",
          file);
}

/* ---- one line on a terminal while benchmarks run ---- */

#define EVERY 100000000u /* ns */
#define CLEAR "\r\033[K"

static pki_bench_line pki_bench_line_make(bool wanted, uint32_t repetitions)
{
    return (pki_bench_line){.on = wanted && isatty(STDERR_FILENO), .repetitions = repetitions};
}

/* Control characters in a name must not reach the terminal. */
static void put_name(char *text, size_t size, const char *name)
{
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++)
        text[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
    text[i] = 0;
}

void pki_bench_line_text(const pki_bench_line *line, const pki_bench_case *c, size_t done,
                         size_t count, char *text, size_t size)
{
    char name[48], round[32] = "";
    put_name(name, sizeof name, c->name);
    if (line->repetitions > 1)
        snprintf(round, sizeof round, " repetition %u/%u", line->repetition + 1, line->repetitions);
    if (c->count)
        snprintf(text, size, "[%zu/%zu]%s %s  %zu samples, last %s", done, count, round, name,
                 c->count, pki_bench_time(c->time[c->count - 1]).text);
    else
        snprintf(text, size, "[%zu/%zu]%s %s  warming up", done, count, round, name);
}

/* A pki_bench_progress; user is a pki_bench_line. */
static void pki_bench_line_show(void *user, const pki_bench_case *c, size_t done, size_t count)
{
    pki_bench_line *line = user;
    char text[160] = CLEAR;
    uint64_t now = pki_monotonic_ns();
    if (!line->on || (c && now - line->last < EVERY))
        return;
    line->last = now;
    if (c)
        pki_bench_line_text(line, c, done, count, text + strlen(CLEAR),
                            sizeof text - strlen(CLEAR));
    pki_write_stderr(text, strlen(text));
}

/* ---- choose, measure, write ---- */

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_UNUSABLE = 2 };

#ifdef __OPTIMIZE__
#define LIBRARY_OPTIMIZED true
#else
#define LIBRARY_OPTIMIZED false
#endif
#ifdef PK_BENCH_SANITIZED_
#define SANITIZED true
#else
#define SANITIZED false
#endif

typedef struct program {
    pki_plain plain;
    pki_bench_args args;
    const pki_bench_instance **chosen;
    size_t count;
    pki_bench_environment environment;
    pki_bench_document document;
} program;

static PKI_PRINTF(1, 2) int complain(const char *format, ...)
{
    char text[512] = "perfkit: ";
    size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, sizeof text - used - 1, format, list);
    va_end(list);
    used = strlen(text);
    text[used] = '\n';
    pki_write_stderr(text, used + 1);
    return EXIT_UNUSABLE;
}

/* ---- choosing ---- */

static int compile(regex_t *regex, const char *filter)
{
    char why[128];
    int error = regcomp(regex, filter, REG_EXTENDED | REG_NOSUB);
    if (!error)
        return EXIT_FINE;
    regerror(error, regex, why, sizeof why);
    return complain("--filter: \"%.100s\" is no regular expression: %s", filter, why);
}

static int choose(program *p)
{
    size_t all;
    regex_t regex;
    const char *filter = p->args.filter;
    bool others = filter && *filter == '-';
    if (pki_bench_instances(&all) != PK_OK)
        return complain("%s", pk_error_message());
    p->chosen = calloc(all + 1, sizeof(void *));
    if (!p->chosen)
        return complain("no memory to list the benchmarks");
    if (filter && compile(&regex, filter + others) != EXIT_FINE)
        return EXIT_UNUSABLE;
    for (size_t i = 0; i < all; i++) {
        const pki_bench_instance *one = pki_bench_instance_at(i);
        if (!filter || (regexec(&regex, one->name, 0, NULL, 0) == 0) != others)
            p->chosen[p->count++] = one;
    }
    if (filter)
        regfree(&regex);
    if (p->count == 0 && !p->args.list)
        return complain(all ? "no benchmark has a name that fits --filter (--list shows them)"
                            : "this program has no benchmarks (PK_BENCH)");
    return EXIT_FINE;
}

/* ---- measuring ---- */

static pk_status fill_rows(program *p, pki_bench_case *cases, uint32_t repetition)
{
    for (size_t i = 0; i < p->count; i++) {
        pki_bench_row *row = &p->document.rows[i * p->args.repetitions + repetition];
        row->name = p->chosen[i]->name;
        row->family = p->chosen[i]->family;
        row->member = p->chosen[i]->member;
        row->repetition = repetition;
        if (!pki_bench_row_fill(row, &cases[i]))
            return pki_bench_fail(PK_ENOMEM, "no memory for the statistics");
    }
    return PK_OK;
}

static pk_status repeat(program *p, pki_bench_case *cases, pki_bench_line *line)
{
    const pki_bench_engine *engine = pki_bench_engine_get();
    const struct pk_bench_options *over = &p->args.over;
    size_t made = 0;
    pk_status status = PK_OK;
    for (; made < p->count && status == PK_OK; made++)
        status = pki_bench_instance_case(p->chosen[made], engine, over, &cases[made]);
    if (status != PK_OK)
        made--;
    else
        status = pki_bench_run_rounds(cases, p->count, !p->args.alone,
                                      (over->seed ? over->seed : 1) + line->repetition,
                                      pki_bench_line_show, line);
    if (status == PK_OK)
        status = fill_rows(p, cases, line->repetition);
    for (size_t i = 0; i < made; i++)
        pki_bench_case_finish(&cases[i]);
    return status;
}

static pk_status measure(program *p)
{
    pki_bench_line line = pki_bench_line_make(!p->args.quiet, p->args.repetitions);
    pki_bench_case *cases = calloc(p->count, sizeof *cases);
    p->document.rows = calloc(p->count * p->args.repetitions, sizeof *p->document.rows);
    pk_status status = PK_OK;
    if (!cases || !p->document.rows)
        status = pki_bench_fail(PK_ENOMEM, "no memory for %zu benchmarks", p->count);
    else
        p->document.row_count = p->count * p->args.repetitions;
    for (; status == PK_OK && line.repetition < p->args.repetitions; line.repetition++)
        status = repeat(p, cases, &line);
    free(cases);
    return status;
}

/* ---- warnings ---- */

typedef struct list {
    pki_bench_warning *at;
    size_t count;
} list;

static PKI_PRINTF(3, 4) void warn(list *l, const char *name, const char *format, ...)
{
    if (l->count == PKI_BENCH_WARNINGS)
        return;
    va_list args;
    pki_bench_warning *made = &l->at[l->count++];
    made->name = name;
    va_start(args, format);
    vsnprintf(made->text, sizeof made->text, format, args);
    va_end(args);
}

static void warn_of_builds(list *l, const pki_bench_environment *e)
{
    if (!e->optimized)
        warn(l, "debug-build", "the benchmarks are compiled without optimisation");
    else if (!e->library_optimized)
        warn(l, "debug-build", "perfkit is compiled without optimisation: its loops cost more");
    if (e->sanitized)
        warn(l, "sanitizer", "a sanitizer is built in: times are of the instrumented program");
}

static void warn_of_clocks(list *l, const pki_bench_environment *e, const pki_bench_overhead *o)
{
    if (*e->governor && strcmp(e->governor, "performance") != 0)
        warn(l, "governor",
             "the governor is \"%s\": the clock follows the load (performance holds"
             " it)",
             e->governor);
    if (strcmp(e->turbo, "on") == 0)
        warn(l, "turbo", "turbo is on: the clock depends on temperature and on other cores");
    if (strcmp(e->smt, "on") == 0)
        warn(l, "smt", "SMT is on: what runs on the core's other thread slows this one");
    if (o->step > 100 || o->clock > 200)
        warn(l, "clock-coarse", "the clock (%s) takes %d ns to read, in steps of %d ns",
             *e->clock_source ? e->clock_source : "unknown", (int)o->clock, (int)o->step);
    if (o->unsure > PKI_BENCH_UNSURE)
        warn(l, "calibration",
             "the cost of perfkit's loop is uncertain by %.1f ns: only what is certain is"
             " subtracted",
             o->unsure);
}

static void warn_of_others(list *l, const pki_bench_environment *e)
{
    if (e->load[0] > 0.5 && e->load[0] > 0.1 * e->cpus_online)
        warn(l, "load", "others are running: a load of %d.%02d on %u processors", (int)e->load[0],
             (int)(e->load[0] * 100) % 100, e->cpus_online);
    if (e->cpus_allowed == 1)
        warn(l, "one-cpu", "one processor only: everything else runs in between");
    if (e->cgroup_cpus > 0 && e->cgroup_cpus < e->cpus_online)
        warn(l, "cgroup-limit", "the cgroup is stopped beyond %d.%02d of %u processors",
             (int)e->cgroup_cpus, (int)(e->cgroup_cpus * 100) % 100, e->cpus_online);
    if (*e->virtual_machine)
        warn(l, "virtual-machine", "a virtual machine (%s): its neighbours take time unseen",
             e->virtual_machine);
}

size_t pki_bench_warnings(const pki_bench_environment *e, const pki_bench_overhead *overhead,
                          pki_bench_warning warnings[PKI_BENCH_WARNINGS])
{
    list l = {warnings, 0};
    warn_of_builds(&l, e);
    warn_of_clocks(&l, e, overhead);
    warn_of_others(&l, e);
    return l.count;
}

/* ---- circumstances ---- */

static void draw_run_id(char *id, size_t size)
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != (ssize_t)sizeof bytes) {
        pki_random random = {pki_monotonic_ns() ^ ((uint64_t)getpid() << 32)};
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (unsigned char)pki_random_next(&random);
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, size - 2 * i, "%02x", bytes[i]);
}

static void describe(program *p, const char *executable)
{
    pki_bench_document *d = &p->document;
    pki_bench_environment *e = &p->environment;
    pki_bench_environment_read(e, "");
    snprintf(e->compiler, sizeof e->compiler, "%s", p->chosen[0]->entry->compiler);
    snprintf(e->flags, sizeof e->flags, "%s", p->chosen[0]->entry->flags);
    e->optimized = true;
    for (size_t i = 0; i < p->count; i++)
        e->optimized &= p->chosen[i]->entry->optimized != 0;
    e->library_optimized = LIBRARY_OPTIMIZED;
    e->sanitized = SANITIZED;
    d->executable = executable;
    d->version = pk_version();
    d->began = (int64_t)time(NULL);
    draw_run_id(d->run_id, sizeof d->run_id);
    d->fingerprint = pki_bench_fingerprint(e);
    d->environment = e;
    d->overhead = pki_bench_engine_get()->overhead;
    d->configuration = (pki_bench_configuration){p->args.over, p->args.repetitions, !p->args.alone};
    d->warning_count = pki_bench_warnings(e, &d->overhead, d->warnings);
}

/* ---- writing ---- */

typedef struct output {
    char *text;
    size_t size;
    FILE *file;
} output;

static bool open_output(output *o)
{
    *o = (output){NULL, 0, NULL};
    o->file = open_memstream(&o->text, &o->size);
    return o->file != NULL;
}

static bool write_stdout(const char *text, size_t n)
{
    if (!pki_standard_is_there(STDOUT_FILENO))
        return false;
    fflush(NULL); /* what the program has printed comes first */
    return pki_write_all(STDOUT_FILENO, text, n);
}

static int refuse(const char *path, int error)
{
    static const pki_target_hints hints = {NULL, "\"-\" for the standard output"};
    return complain("%s: %s", path, pki_target_why(path, error, &hints).text);
}

/* Closes it, and puts what is in it there. */
static int deliver(output *o, const char *path)
{
    bool fine = !ferror(o->file);
    fine &= fclose(o->file) == 0;
    if (!fine)
        errno = ENOMEM;
    if (fine)
        fine = strcmp(path, "-") == 0 ? write_stdout(o->text, o->size)
                                      : pki_file_put(path, o->text, o->size);
    int error = errno;
    free(o->text);
    if (fine)
        return EXIT_FINE;
    if (strcmp(path, "-") == 0)
        return complain("stdout: %s", strerror(error));
    return refuse(path, error);
}

/* What will not do is said before anything is measured for it. */
static int check_files(const pki_bench_args *a)
{
    for (int i = 0; i < PKI_BENCH_FILES; i++)
        if (a->files[i] && strcmp(a->files[i], "-") != 0 && !pki_target_is_free(a->files[i]))
            return refuse(a->files[i], errno);
    return EXIT_FINE;
}

static int write_table(const program *p)
{
    output o;
    if (!open_output(&o))
        return complain("no memory to write the table");
    pki_bench_text(&p->document, p->args.picture, o.file);
    return deliver(&o, "-");
}

static int write_file(const program *p, pki_bench_file which)
{
    static void (*const forms[])(const pki_bench_document *document, FILE *file) = {
        pki_bench_json, pki_bench_csv, pki_bench_markdown, pki_bench_junit};
    output o;
    if (!open_output(&o))
        return complain("no memory to write %s", p->args.files[which]);
    forms[which](&p->document, o.file);
    return deliver(&o, p->args.files[which]);
}

static int write_all(const program *p)
{
    int status = p->args.quiet || p->args.to_stdout ? EXIT_FINE : write_table(p);
    for (int i = 0; i < PKI_BENCH_FILES; i++)
        if (p->args.files[i])
            status |= write_file(p, (pki_bench_file)i);
    for (size_t i = 0; i < p->document.row_count && status == EXIT_FINE; i++)
        if (p->document.rows[i].result.outcome == PK_BENCH_OUTCOME_FAILED)
            status = EXIT_FAILED;
    return status;
}

/* ---- the program ---- */

static int print_information(const program *p, const char *executable)
{
    output o;
    if (!open_output(&o))
        return complain("no memory");
    if (p->args.help)
        pki_bench_args_help(executable, o.file);
    else if (p->args.version)
        fprintf(o.file, "perfkit %s\n", pk_version());
    for (size_t i = 0; p->args.list && i < p->count; i++)
        fprintf(o.file, "%s\n", p->chosen[i]->name);
    return deliver(&o, "-");
}

static int run_chosen(program *p, const char *executable)
{
    pk_status status = pki_bench_lock();
    if (status == PK_OK) {
        describe(p, executable);
        uint64_t start = pki_monotonic_ns();
        uselocale(p->plain.before); /* benchmarks run in the program's */
        status = measure(p);
        uselocale(p->plain.plain);
        p->document.elapsed = pki_monotonic_ns() - start;
        pki_bench_unlock();
    }
    if (status != PK_OK)
        return complain("%s", pk_error_message());
    return write_all(p);
}

static int run(program *p, int argc, char **argv)
{
    const char *executable = argc > 0 && argv[0] ? argv[0] : "benchmarks";
    if (!pki_bench_args_parse(&p->args, argc, argv))
        return complain("%s", p->args.complaint);
    if (p->args.help || p->args.version)
        return print_information(p, executable);
    int status = check_files(&p->args);
    if (status == EXIT_FINE)
        status = choose(p);
    if (status != EXIT_FINE)
        return status;
    return p->args.list ? print_information(p, executable) : run_chosen(p, executable);
}

int pk_bench_main(int argc, char **argv)
{
    program *p = calloc(1, sizeof *p);
    if (!p || !pki_plain_enter(&p->plain)) {
        free(p);
        return complain("no memory");
    }
    int status = run(p, argc, argv);
    for (size_t i = 0; i < p->document.row_count; i++)
        pki_bench_row_finish(&p->document.rows[i]);
    free(p->document.rows);
    free(p->chosen);
    pki_plain_leave(&p->plain);
    free(p);
    return status;
}
