#include "report/report.h"

#include <regex.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/compiler.h"
#include "beside/beside.h"
#include "command.h"
#include "files.h"
#include "html/html.h"
#include "job/input.h"
#include "load/load.h"
#include "memory.h"
#include "out/columns.h"
#include "read/json.h"

typedef struct wish {
    bool json, brief, threads, tree;
    uint32_t top, width, depth, least;
    const char *path, *html, *against, *filter, *steps;
    operands files;
} wish;

static bool parse_top(void *to, const option_given *given)
{
    wish *w = to;
    bool taken = option_number(to, given);
    w->top = w->top ? w->top : PKI_REPORT_ALL;
    return taken;
}

/* Kept plus one: 0 is not given. */
static bool parse_share(void *to, const option_given *given)
{
    wish *w = to;
    bool taken = option_number(to, given);
    w->least += taken;
    return taken;
}

static const option all_options[] = {
    {"--top", "N", "show N regions (default {}; 0: all)", PKI_OPTION_WORD, parse_top,
     offsetof(wish, top), .shown = PKI_REPORT_TOP},
    {"--threads", NULL, "also the regions of each thread; for a trace, from its events",
     .at = offsetof(wish, threads)},
    {"--tree", NULL, "also the call tree of a trace: calls, time and self time by path",
     .at = offsetof(wish, tree)},
    {"--depth", "N", "levels of the call tree to show (default: all)", PKI_OPTION_WORD,
     option_number, offsetof(wish, depth), .least = 1},
    {"--min-share", "PERCENT", "share below which the call tree leaves a path out (default {})",
     PKI_OPTION_WORD, parse_share, offsetof(wish, least), .shown = 1},
    {"--filter", "REGEX",
     "only regions and kernels whose names match (POSIX, extended); shares remain those of all",
     PKI_OPTION_WORD, option_text, offsetof(wish, filter), .needs = "a pattern"},
    {"--width", "N",
     "columns per line, {} or more: further ones give room to names (default: the terminal's; "
     "{} where there is none)",
     PKI_OPTION_WORD, option_number, offsetof(wish, width), .least = PKI_PAGE_WIDTH,
     .shown = PKI_PAGE_WIDTH},
    {"--json", NULL, "the report as JSON (docs/internals/report-format.md)",
     .at = offsetof(wish, json)},
    {"--brief", NULL,
     "what was found, in 60 lines at most for programs and assistants "
     "(docs/internals/report-format.md)",
     .at = offsetof(wish, brief)},
    {"--html", "PAGE",
     "the report with charts, as one file for a browser; \"-\" is the standard output "
     "(docs/guide.md)",
     PKI_OPTION_FILE, option_text, offsetof(wish, html), .needs = "a file"},
    {"--against", "FILE",
     "compare with another run's report or trace: figures and regions side by side, instead of "
     "the report, or in the page",
     PKI_OPTION_FILE, option_text, offsetof(wish, against), .needs = "a file"},
    {"--steps", "A-B", "of a file of windows, only those with any of these steps", PKI_OPTION_WORD,
     option_text, offsetof(wish, steps), .needs = "steps"},
};

static const option_table command_options = {
    .command = "report",
    .usage = "[OPTION ...] FILE",
    .about =
        "Where a run spent its time. FILE is a report in JSON (report_path ending in .json), a\n"
        "trace of perfkit, any Chrome trace, or a file of windows (windows_path); .gz too; \"-\" is\n"
        "the standard input. For a trace without a report in it, such as a killed run's, the\n"
        "report is made from its events.",
    .notes = "Exit status: 0; 2 if FILE cannot be used or an option is wrong.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "json gz",
    .who = "",
    .operands = offsetof(wish, files),
};

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

static bool makes_sense(wish *w)
{
    complaint why = {""};
    w->path = w->files.all[0];
    if (!w->files.count)
        complain("report needs a file (pk report --help)");
    else if (w->files.count > 1)
        complain("one file at a time: \"%s\" or \"%s\"?", w->path, w->files.all[1]);
    else if (w->html && w->json)
        complain("--html or --json?");
    else if (w->brief && (w->html || w->json || w->against || w->tree || w->threads || w->filter))
        complain("--brief goes with --steps alone");
    else if (w->against && w->json)
        complain("--against or --json?");
    else if (w->filter && (w->html || w->json))
        complain("--filter is for the text, not for %s", w->html ? "--html" : "--json");
    else if (w->html && !html_can_write(w->html, &why))
        complain("%s", why.text);
    else
        return true;
    return false;
}

static bool has_thread_regions(const pki_summary *summary)
{
    for (size_t i = 0; i < summary->thread_count; i++)
        if (summary->threads[i].region_count)
            return true;
    return false;
}

/* ---- the text ---- */

static bool load(const char *path, const wish *w, pki_summary *summary)
{
    complaint why = {""};
    load_options options = {
        .per_thread = w->threads, .tree = w->tree, .progress = true, .steps = w->steps};
    if (load_run(path, &options, summary, &why))
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
        report_move_thread_regions(summary, &events);
        pki_summary_finish(&events);
    }
    if (!has_thread_regions(summary))
        complain("%s has no regions by thread; a trace does, and a run with PK_REPORT_THREADS=1",
                 w->path);
}

/* The same of the call tree, which no report of a session has. */
static void add_tree(const wish *w, pki_summary *summary)
{
    complaint why = {""};
    pki_summary events;
    load_options options = {.tree = true, .progress = true, .events = true};
    if (summary->tree_count)
        return;
    if (!is_standard(w->path) && load_run(w->path, &options, &events, &why)) {
        report_move_tree(summary, &events);
        pki_summary_finish(&events);
    }
    if (!summary->tree_count && w->tree)
        complain(
            "%s has no call tree: that is made of the events of a trace, and a report has none",
            w->path);
}

/* A capture is a file that can be read again; from a pipe it is shown without its reasons. */
static void add_beside(const wish *w, pki_summary *summary, slices *events)
{
    complaint why = {""};
    if (summary->beside.took || is_standard(w->path))
        return;
    if (!beside_of_file(w->path, events, summary, &why) && summary->capture.captured)
        complain("%s: %s", w->path, why.text);
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

/* Their steps, as of jobs of one rank. Of a part of a run's windows that would be another thing. */
static int print_beside(const wish *w, const pki_summary *summary, const pki_summary *other,
                        const pki_report_options *options)
{
    char *paths[2] = {(char *)(uintptr_t)w->path, (char *)(uintptr_t)w->against};
    pki_job now = {0}, before = {0};
    complaint ignored = {""};
    pki_against a = {0};
    bool known = !w->steps && job_read(&now, &paths[0], 1, &(pki_job_steps){0}, &ignored) &&
                 job_read(&before, &paths[1], 1, &(pki_job_steps){0}, &ignored);
    if (known)
        memory_needed(pki_job_against(&a, &now, &before, 1, PKI_AGAINST_MARGIN / 100.0));
    int error = report_beside(summary, other, w->against, known ? &a : NULL, options, stdout);
    if (known)
        pki_against_finish(&a);
    pki_job_finish(&now);
    pki_job_finish(&before);
    return error;
}

static int print_against(const wish *w, const pki_summary *summary,
                         const pki_report_options *options)
{
    pki_summary other;
    wish beside = {.steps = NULL};
    if (!load(w->against, &beside, &other))
        return EXIT_UNUSABLE;
    int error = print_beside(w, summary, &other, options);
    pki_summary_finish(&other);
    return error ? complain("the report could not be written: %s", strerror(-error)) : EXIT_OK;
}

static int print_json(const pki_summary *summary)
{
    int error = pki_report_json(summary, stdout);
    return error ? complain("the report could not be written: %s", strerror(-error)) : EXIT_OK;
}

static void print_tree(const wish *w, const pki_summary *summary, const pki_report_options *options)
{
    double least = w->least ? (w->least - 1) / 100.0 : 0.01;
    report_tree(summary, options, w->depth ? w->depth : UINT32_MAX, least, stdout);
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
    if (w->json)
        return print_json(summary);
    if (w->brief)
        return report_brief(summary, w->path, stdout), EXIT_OK;
    report_capture(summary, &options, stdout);
    int error = pki_report_text_with(summary, &options, stdout);
    if (!error && w->tree)
        print_tree(w, summary, &options);
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
    if (w->tree && !w->against)
        add_tree(w, summary);
    if (summary->capture.captured && !w->against)
        add_beside(w, summary, NULL);
    int status = print_text(w, summary, w->filter ? &pattern : NULL);
    if (w->filter)
        regfree(&pattern);
    return status;
}

/* ---- the page ---- */

/* What is made of events alone: of a report nothing. */
static void add_events(const wish *w, pki_summary *summary, slices *events)
{
    complaint why = {""};
    trace t;
    if (is_standard(w->path) || !trace_open(&t, w->path, false, &why))
        return;
    bool there = trace_has_events(&t);
    trace_close(&t);
    if (!there)
        return;
    add_tree(w, summary);
    add_beside(w, summary, events);
}

/* The run, and what it is beside. */
static int write_page(const void *of, FILE *file)
{
    const html_run *const *both = of;
    return html_write(both[0], both[1], file);
}

static int print_page(const wish *w, pki_summary *summary)
{
    pki_summary other;
    slices events = {0};
    html_run run = {w->path, summary, &events}, second = {w->against, &other, NULL};
    const html_run *beside = w->against ? &second : NULL, *const both[] = {&run, beside};
    complaint why = {""};
    wish wanted = {.threads = w->threads};
    if (beside && !load(w->against, &wanted, &other))
        return EXIT_UNUSABLE;
    add_events(w, summary, &events);
    bool done = html_write_file(w->html, write_page, both, &why);
    slices_free(&events);
    if (beside)
        pki_summary_finish(&other);
    return done ? EXIT_OK : complain("%s", why.text);
}

int command_report(int argc, char **argv)
{
    wish w = {0};
    pki_summary summary;
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    json_limit_memory(JSON_MEMORY_MOST);
    if (!makes_sense(&w) || !load(w.path, &w, &summary))
        return EXIT_UNUSABLE;
    if (summary.outside.count)
        outside_name(&summary);
    status = w.html ? print_page(&w, &summary) : print_report(&w, &summary);
    pki_summary_finish(&summary);
    return status;
}
