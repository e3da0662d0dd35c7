/* tools/report.c - pk report */
#include "command.h"
#include "read/json_read.h"
#include "load/load.h"
#include "out/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)

typedef struct wish {
    bool json, threads, help;
    uint32_t top;
    const char *path;
} wish;

static int print_help(void)
{
    printf("usage: pk report [OPTION ...] FILE\n"
           "\n"
           "Where a run spent its time. FILE is a report in JSON (report_path ending in .json), a\n"
           "trace of perfkit, or any Chrome trace; .gz too; \"-\" is the standard input. A trace\n"
           "without a report in it, of a killed run say, is reported from its events.\n"
           "\n"
           "  --top N     show N regions (default %d; 0: all)\n"
           "  --threads   the regions of each thread, too\n"
           "  --json      the report as JSON (docs/report-format.md)\n"
           "  --help      this\n"
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

/* How many arguments it was; 0 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
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

static bool take_arguments(wish *w, int argc, char **argv)
{
    bool options = true;
    for (int i = 1; i < argc && !w->help;) {
        int taken = 1;
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            taken = take_option(w, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        else
            taken = take_path(w, argv[i]);
        if (!taken)
            return false;
        i += taken;
    }
    if (!w->path && !w->help)
        complain("report needs a file (pk report --help)");
    return w->path || w->help;
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

int command_report(int argc, char **argv)
{
    wish w = {0};
    complaint why = {""};
    pki_summary summary;
    if (!take_arguments(&w, argc, argv))
        return EXIT_UNUSABLE;
    if (w.help)
        return print_help();
    const char *path = strcmp(w.path, "-") == 0 ? "/dev/stdin" : w.path;
    json_limit_memory(JSON_MEMORY_MOST);
    if (!load_run(path, &(load_options){.per_thread = w.threads, .progress = true}, &summary, &why))
        return complain("%s: %s", w.path, why.text);
    int status = print_report(&w, &summary);
    pki_summary_finish(&summary);
    return status;
}
