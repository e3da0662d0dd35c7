/* tools/report.c - pk report */
#include "arguments.h"
#include "command.h"
#include "html/html.h"
#include "read/json_read.h"
#include "load/load.h"
#include "out/columns.h"
#include "out/report/report.h"
#include "report_text.h"
#include "output.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)

typedef struct wish {
    bool json, threads, help;
    uint32_t top, width;
    const char *path, *html, *against, *filter;
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
           "  --threads       the regions of each thread, too; of a trace from its events\n"
           "  --filter REGEX  only regions and kernels whose names match (POSIX, extended);\n"
           "                  shares are still those of all\n"
           "  --width N       columns of a line, %d or more: what is more gives room to names\n"
           "                  (default: the terminal's; %d where there is none)\n"
           "  --json          the report as JSON (docs/report-format.md)\n"
           "  --html PAGE     the report with charts, as one file for a browser; \"-\" is the\n"
           "                  standard output (docs/html-report.md)\n"
           "  --against FILE  beside another run's report or trace: its figures and regions\n"
           "                  next to this run's, instead of the report, or in the page\n"
           "  --help          this\n"
           "\n"
           "Exit status: 0; 2 if FILE cannot be used or an option is wrong.\n",
           PKI_REPORT_TOP, PKI_PAGE_WIDTH, PKI_PAGE_WIDTH);
    return EXIT_OK;
}

/* False after a complaint. */
static bool take_number(const char *option, const char *number, uint32_t least, uint32_t *value)
{
    char *end;
    errno = 0;
    unsigned long n = number && *number >= '0' && *number <= '9' ? strtoul(number, &end, 10) : 0;
    if (!number || *number < '0' || *number > '9' || *end || errno || n > UINT32_MAX || n < least) {
        complain("%s takes a number from %u on, not \"%s\"", option, (unsigned)least,
                 number ? number : "");
        return false;
    }
    *value = (uint32_t)n;
    return true;
}

static bool take_top(wish *w, const char *number)
{
    if (!take_number("--top", number, 0, &w->top))
        return false;
    w->top = w->top ? w->top : PKI_REPORT_ALL;
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
    complain("%s needs %s", name, strcmp(name, "--filter") == 0 ? "a pattern" : "a file");
    return -1;
}

/* How many arguments it was; 0 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
    int taken = take_value(option, "--html", next, &w->html);
    if (!taken)
        taken = take_value(option, "--against", next, &w->against);
    if (!taken)
        taken = take_value(option, "--filter", next, &w->filter);
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
    else if (strcmp(option, "--width") == 0)
        return take_number(option, next, PKI_PAGE_WIDTH, &w->width) ? 2 : 0;
    else if (strncmp(option, "--width=", 8) == 0)
        return take_number("--width", option + 8, PKI_PAGE_WIDTH, &w->width);
    else
        return complain("report has no option \"%s\" (pk report --help)", option), 0;
    return 1;
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool makes_sense(const wish *w)
{
    complaint why = {""};
    if (!w->path)
        complain("report needs a file (pk report --help)");
    else if (w->html && w->json)
        complain("--html or --json?");
    else if (w->against && w->json)
        complain("--against or --json?");
    else if (w->filter && (w->html || w->json))
        complain("--filter is for the text, not for %s", w->html ? "--html" : "--json");
    else if (w->html && !html_is_there)
        complain("this pk was built without uPlot, which draws the charts of --html: in perfkit's"
                 " sources run `./dev charts`, then `meson setup --reconfigure` and build");
    else if (w->html && !is_standard(w->html) && !output_check(w->html, OUTPUT_OR_STANDARD, &why))
        complain("%s", why.text);
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

/* ---- the text ---- */

static bool load(const char *path, bool threads, bool events, pki_summary *summary)
{
    complaint why = {""};
    load_options options = {.per_thread = threads, .progress = true, .events = events};
    if (load_run(is_standard(path) ? "/dev/stdin" : path, &options, summary, &why))
        return true;
    complain("%s: %s", path, why.text);
    return false;
}

/* The report in a trace seldom has each thread's regions; the events know whose they are. A report
 * alone has no events, and a pipe none any more. */
static void add_thread_regions(const wish *w, pki_summary *summary)
{
    complaint why = {""};
    pki_summary events;
    load_options options = {.per_thread = true, .progress = true, .events = true};
    if (has_thread_regions(summary))
        return;
    if (!is_standard(w->path) && load_run(w->path, &options, &events, &why)) {
        report_take_thread_regions(summary, &events);
        pki_summary_finish(&events);
    }
    if (!has_thread_regions(summary))
        complain("%s has no regions by thread; a trace does, and a run with PK_REPORT_THREADS=1",
                 w->path);
}

static uint32_t width_of(const wish *w)
{
    struct winsize size;
    if (w->width)
        return w->width;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return PKI_PAGE_WIDTH;
    return size.ws_col;
}

static bool matches(void *pattern, const char *name)
{
    return regexec(pattern, name, 0, NULL, 0) == 0;
}

static int print_against(const wish *w, const pki_summary *summary,
                         const pki_report_options *options)
{
    pki_summary other;
    if (!load(w->against, false, false, &other))
        return EXIT_UNUSABLE;
    int error = report_beside(summary, &other, w->against, options, stdout);
    pki_summary_finish(&other);
    return error ? complain("the report could not be written: %s", strerror(-error)) : EXIT_OK;
}

static int print_text(const wish *w, const pki_summary *summary, regex_t *pattern)
{
    pki_report_options options = {.top = w->top,
                                  .no_threads = !w->threads,
                                  .width = width_of(w),
                                  .shows = pattern ? matches : NULL,
                                  .user = pattern};
    if (w->against)
        return print_against(w, summary, &options);
    int error = w->json ? pki_report_json(summary, stdout)
                        : pki_report_text_with(summary, &options, stdout);
    return error ? complain("the report could not be written: %s", strerror(-error)) : EXIT_OK;
}

static int print_report(const wish *w, pki_summary *summary)
{
    regex_t pattern;
    char why[160];
    int wrong = w->filter ? regcomp(&pattern, w->filter, REG_EXTENDED | REG_NOSUB) : 0;
    if (wrong) {
        regerror(wrong, &pattern, why, sizeof why);
        return complain("--filter \"%s\": %s", w->filter, why);
    }
    if (w->threads && !w->against)
        add_thread_regions(w, summary);
    int status = print_text(w, summary, w->filter ? &pattern : NULL);
    if (w->filter)
        regfree(&pattern);
    return status;
}

/* ---- the page ---- */

static int write_page(const char *path, const html_run *run, const html_run *against)
{
    complaint why = {""};
    output page;
    if (!output_open(&page, path, OUTPUT_OR_STANDARD, &why))
        return complain("%s", why.text);
    int error = html_write(run, against, page.to);
    if (error)
        complaint_set(&why, "%s could not be written: %s", path, strerror(-error));
    return output_close(&page, !error, &why) ? EXIT_OK : complain("%s", why.text);
}

static int print_standard(const html_run *run, const html_run *against)
{
    int error = html_write(run, against, stdout);
    return error ? complain("- could not be written: %s", strerror(-error)) : EXIT_OK;
}

static int print_page(const wish *w, const pki_summary *summary)
{
    pki_summary other;
    html_run run = {w->path, summary}, against = {w->against, &other};
    const html_run *beside = w->against ? &against : NULL;
    if (beside && !load(w->against, w->threads, false, &other))
        return EXIT_UNUSABLE;
    int status =
        is_standard(w->html) ? print_standard(&run, beside) : write_page(w->html, &run, beside);
    if (beside)
        pki_summary_finish(&other);
    return status;
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
    if (!load(w.path, w.threads, false, &summary))
        return EXIT_UNUSABLE;
    int status = w.html ? print_page(&w, &summary) : print_report(&w, &summary);
    pki_summary_finish(&summary);
    return status;
}
