/* pk_bench_main: choose, measure, write. */
#include "bench/bench.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/files.h"
#include "bench/registry.h"
#include "bench/rounds.h"
#include "bench/stats/samples.h"
#include "bench/options.h"
#include "bench/forms/document.h"
#include "out/file.h"
#include "out/json_write.h"

#include <errno.h>
#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

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
