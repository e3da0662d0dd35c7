/* tools/report.c - pk report */
#include "arguments.h"
#include "command.h"
#include "html/html.h"
#include "read/json_read.h"
#include "load/load.h"
#include "out/file.h"
#include "out/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)

typedef struct wish {
    bool json, threads, help;
    uint32_t top;
    const char *path, *html, *against;
} wish;

static int print_help(void)
{
    printf("usage: pk report [OPTION ...] FILE\n"
           "\n"
           "Where a run spent its time. FILE is a report in JSON (report_path ending in .json), a\n"
           "trace of perfkit, or any Chrome trace; .gz too; \"-\" is the standard input. A trace\n"
           "without a report in it, of a killed run say, is reported from its events.\n"
           "\n"
           "  --top N         show N regions (default %d; 0: all)\n"
           "  --threads       the regions of each thread, too\n"
           "  --json          the report as JSON (docs/report-format.md)\n"
           "  --html PAGE     the report with charts, as one file for a browser; \"-\" is the\n"
           "                  standard output (docs/html-report.md)\n"
           "  --against FILE  with --html: beside another run's report or trace\n"
           "  --help          this\n"
           "\n"
           "Exit status: 0; 2 if FILE cannot be used or an option is wrong.\n",
           PKI_REPORT_TOP);
    return EXIT_OK;
}

/* False after a complaint. */
static bool take_top(wish *w, const char *number)
{
    char *end;
    errno = 0;
    unsigned long top = number && *number >= '0' && *number <= '9' ? strtoul(number, &end, 10) : 0;
    if (!number || *number < '0' || *number > '9' || *end || errno || top > UINT32_MAX) {
        complain("--top takes a number from 0 on, not \"%s\"", number ? number : "");
        return false;
    }
    w->top = top ? (uint32_t)top : PKI_REPORT_ALL;
    return true;
}

static bool take_path(wish *w, const char *path)
{
    if (w->path) {
        complain("one file at a time: \"%s\" or \"%s\"?", w->path, path);
        return false;
    }
    w->path = path;
    return true;
}

/* The value of an option that has one: "--NAME VALUE" or "--NAME=VALUE". How many arguments it was;
 * 0 if it is another option, -1 after a complaint. */
static int take_value(const char *option, const char *name, const char *next, const char **value)
{
    size_t length = strlen(name);
    bool inside = strncmp(option, name, length) == 0 && option[length] == '=';
    if (!inside && strcmp(option, name) != 0)
        return 0;
    *value = inside ? option + length + 1 : next;
    if (*value && **value)
        return inside ? 1 : 2;
    complain("%s needs a file", name);
    return -1;
}

/* How many arguments it was; 0 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
    int taken = take_value(option, "--html", next, &w->html);
    if (!taken)
        taken = take_value(option, "--against", next, &w->against);
    if (taken)
        return taken > 0 ? taken : 0;
    if (strcmp(option, "--json") == 0)
        w->json = true;
    else if (strcmp(option, "--threads") == 0)
        w->threads = true;
    else if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
        w->help = true;
    else if (strcmp(option, "--top") == 0)
        return take_top(w, next) ? 2 : 0;
    else if (strncmp(option, "--top=", 6) == 0)
        return take_top(w, option + 6);
    else
        return complain("report has no option \"%s\" (pk report --help)", option), 0;
    return 1;
}

static bool makes_sense(const wish *w)
{
    if (!w->path)
        complain("report needs a file (pk report --help)");
    else if (w->html && w->json)
        complain("--html or --json?");
    else if (w->against && !w->html)
        complain("--against is for --html");
    else if (w->html && !html_is_there)
        complain("this pk was built without uPlot, which draws the charts of --html: in perfkit's"
                 " sources run `./dev charts`, then `meson setup --reconfigure` and build");
    else
        return true;
    return false;
}

static bool take_arguments(wish *w, int argc, char **argv)
{
    arguments all = arguments_of(argc, argv);
    for (argument one; !w->help && arguments_next(&all, &one);) {
        int taken = one.is_option ? take_option(w, one.text, one.next) : take_path(w, one.text);
        if (taken <= 0)
            return false;
        arguments_took(&all, taken);
    }
    return w->help || makes_sense(w);
}

static bool has_thread_regions(const pki_summary *summary)
{
    for (size_t i = 0; i < summary->thread_count; i++)
        if (summary->threads[i].region_count)
            return true;
    return false;
}

static int print_report(const wish *w, const pki_summary *summary)
{
    pki_report_options options = {.top = w->top, .no_threads = !w->threads};
    int error = w->json ? pki_report_json(summary, stdout)
                        : pki_report_text_with(summary, &options, stdout);
    if (error)
        return complain("the report could not be written: %s", strerror(-error));
    if (w->threads && !w->json && !has_thread_regions(summary))
        complain("%s has no regions by thread; a run with PK_REPORT_THREADS=1 does", w->path);
    return EXIT_OK;
}

/* ---- the page ---- */

static bool load(const wish *w, const char *path, pki_summary *summary)
{
    complaint why = {""};
    load_options options = {.per_thread = w->threads, .progress = true};
    if (load_run(strcmp(path, "-") == 0 ? "/dev/stdin" : path, &options, summary, &why))
        return true;
    complain("%s: %s", path, why.text);
    return false;
}

/* A file that is whole or not there: under another name until then. */
static int write_page(const char *path, const html_run *run, const html_run *against)
{
    char temporary[PATH_MAX];
    int fd = pki_file_fresh(path, temporary, sizeof temporary);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!file) {
        int error = -errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    int error = html_write(run, against, file);
    if (fclose(file) != 0 && !error)
        error = -errno;
    if (!error && !pki_file_publish(temporary, path))
        return -errno;
    if (error)
        unlink(temporary);
    return error;
}

static int print_page(const wish *w, const pki_summary *summary)
{
    pki_summary other;
    html_run run = {w->path, summary}, against = {w->against, &other};
    const html_run *beside = w->against ? &against : NULL;
    if (beside && !load(w, w->against, &other))
        return EXIT_UNUSABLE;
    int error = strcmp(w->html, "-") == 0 ? html_write(&run, beside, stdout)
                                          : write_page(w->html, &run, beside);
    if (beside)
        pki_summary_finish(&other);
    return error ? complain("%s could not be written: %s", w->html, strerror(-error)) : EXIT_OK;
}

int command_report(int argc, char **argv)
{
    wish w = {0};
    pki_summary summary;
    if (!take_arguments(&w, argc, argv))
        return EXIT_UNUSABLE;
    if (w.help)
        return print_help();
    json_limit_memory(JSON_MEMORY_MOST);
    if (!load(&w, w.path, &summary))
        return EXIT_UNUSABLE;
    int status = w.html ? print_page(&w, &summary) : print_report(&w, &summary);
    pki_summary_finish(&summary);
    return status;
}
