/* tools/job/command.c - pk job */
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "html/html.h"
#include "job/follow.h"
#include "job/input.h"
#include "job/verdicts/verdicts.h"
#include "job/forms/forms.h"
#include "memory.h"
#include "read/json.h"

#define RUNS_MOST 64 /* earlier ones */

typedef struct wish {
    bool follow, once;
    uint32_t every;
    const char *metrics;
    bool json, brief;
    pki_job_steps steps, against_steps;
    struct {
        char *paths[RUNS_MOST];
        size_t count;
    } against;
    const char *html;
    uint32_t margin, late;
    operands files;
} wish;

#define EXIT_SLOWER 1
#define FOLLOW_EVERY 5
#define LATE_PERCENT 3 /* PKI_JOB_LATE_LEAST */

static bool read_steps(void *to, const option_given *given)
{
    pki_job_steps *steps = (pki_job_steps *)((char *)to + given->option->at);
    const char *text = given->text;
    char *end = NULL;
    if (!option_has_value(given))
        return false;
    errno = 0;
    steps->given = true;
    steps->first = steps->last = strtoull(text, &end, 10);
    if (end != text && *end == '-' && end[1] >= '0' && end[1] <= '9')
        steps->last = strtoull(end + 1, &end, 10);
    bool valid = *text >= '0' && *text <= '9' && !*end && !errno && steps->first <= steps->last;
    return valid || option_refuse(given, "a range of steps such as 100-200");
}

static bool read_against(void *to, const option_given *given)
{
    wish *w = to;
    if (!option_has_value(given))
        return false;
    if (w->against.count == RUNS_MOST)
        return option_refuse(given, "one of 64 runs at most");
    w->against.paths[w->against.count++] = (char *)(uintptr_t)given->text;
    return true;
}

static const option all_options[] = {
    {"--steps", "A-B", "of the steps of the usual kind these alone: blocks that lie within",
     PKI_OPTION_WORD, read_steps, offsetof(wish, steps), .needs = "steps"},
    {"--against", "PATH",
     "beside another run, a file or a folder: what became slower since, by stage and rank; given"
     " four times or more: beside what these runs differ by",
     PKI_OPTION_FILE, read_against, .needs = "a file or folder"},
    {"--against-steps", "C-D", "beside these steps: of the other run, or of the same one",
     PKI_OPTION_WORD, read_steps, offsetof(wish, against_steps), .needs = "steps"},
    {"--margin", "PERCENT", "slower is what took that much longer beyond chance (default {})",
     PKI_OPTION_WORD, option_number, offsetof(wish, margin), .least = 1, .most = 1000,
     .shown = PKI_AGAINST_MARGIN},
    {"--late", "PERCENT",
     "a rank is late from so much longer on for the same work (default {}); surely two thirds of it",
     PKI_OPTION_WORD, option_number, offsetof(wish, late), .least = 1, .most = 1000,
     .shown = LATE_PERCENT},
    {"--html", "PAGE",
     "the job as one page for a browser, with charts; \"-\" is the standard output"
     " (docs/job.md)",
     PKI_OPTION_FILE, option_text, offsetof(wish, html), .needs = "a file"},
    {"--follow", NULL,
     "while the job runs: FOLDER's windows as they come, and who is late now (docs/job.md)",
     .at = offsetof(wish, follow)},
    {"--every", "SECONDS", "with --follow: look so often (default {})", PKI_OPTION_WORD,
     option_number, offsetof(wish, every), .least = 1, .most = 86400, .shown = FOLLOW_EVERY},
    {"--once", NULL, "with --follow: what is there now, once", .at = offsetof(wish, once)},
    {"--metrics", "FILE", "with --follow: Prometheus' text, written anew at each look",
     PKI_OPTION_FILE, option_text, offsetof(wish, metrics), .needs = "a file"},
    {"--json", NULL, "the job as JSON (docs/job.md)", .at = offsetof(wish, json)},
    {"--brief", NULL,
     "what was found, in 60 lines at most for programs and assistants "
     "(docs/internals/report-format.md)",
     .at = offsetof(wish, brief)},
};

static const option_table command_options = {
    .command = "job",
    .usage = "[OPTION ...] PATH...",
    .about =
        "All ranks of a job as one: who is late, in which stage, and what it costs. PATH is a\n"
        "report in JSON, a rank's file (report_path ending in .rank.json), a trace, a file of\n"
        "windows, the arena of a killed run, or a folder of these; any mix of them. A file that\n"
        "cannot be used is named, and nothing fails because of it. A state file (goodput_path) says\n"
        "what the job's wall time was good for, over all its restarts.",
    .notes = "Exit status: 0; 1 if something is slower than in what it is beside; 2 if there is no"
             " rank to\nbe read, or an option is wrong.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "json jsonl gz arena goodput",
    .who = "job: ",
    .operands = offsetof(wish, files),
};

/* Beside what: the other run, or the same one's other steps. */
static const char *other_of(const wish *w)
{
    return w->against.count ? w->against.paths[0] : w->against_steps.given ? "other steps" : NULL;
}

static int write_page(const void *of, FILE *file)
{
    return html_write_job(pki_job_page_job, pki_job_page_drawn, of, file);
}

static bool print_page(const wish *w, const pki_job_findings *found, const pki_against *a)
{
    complaint why = {""};
    pki_job_page page;
    memory_needed(pki_job_page_of(&page, found, w->html));
    page.against = a;
    page.other = other_of(w);
    bool done = html_write_file(w->html, write_page, &page, &why);
    pki_job_page_finish(&page);
    if (!done)
        complain("%s", why.text);
    return done;
}

/* a: NULL, or beside what. */
static int print_findings(const wish *w, const pki_job *j, const pki_against *a)
{
    pki_job_findings found;
    bool done = true;
    memory_needed(pki_job_find(&found, j));
    if (w->html)
        done = print_page(w, &found, a);
    else if (w->json)
        memory_needed(pki_job_print_json(&found, a, other_of(w), stdout));
    else if (w->brief)
        memory_needed(pki_job_print_brief(&found, a, w->files.all, w->files.count, stdout));
    else
        memory_needed(pki_job_print_text(&found, stdout));
    if (a && !w->json && !w->html && !w->brief)
        pki_against_text(a, other_of(w), stdout);
    pki_job_findings_finish(&found);
    return !done ? EXIT_UNUSABLE : a && a->slower ? EXIT_SLOWER : EXIT_OK;
}

static int print_against(const wish *w, const pki_job *j)
{
    complaint why = {""};
    size_t runs = PKI_MAX(w->against.count, 1), read = 0;
    pki_job *before = memory_zeroed(runs, sizeof *before);
    int status = EXIT_OK;
    for (bool ok = true; ok && read < runs; read += ok) {
        char *path = w->against.paths[read], **paths = path ? &path : w->files.all;
        ok = job_read(&before[read], paths, path ? 1 : w->files.count, &w->against_steps, &why);
        if (!ok)
            status = complain("%s", why.text);
    }
    if (status == EXIT_OK) {
        double margin = w->margin ? w->margin : PKI_AGAINST_MARGIN;
        pki_against a;
        memory_needed(pki_job_against(&a, j, before, runs, margin / 100));
        status = print_findings(w, j, &a);
        pki_against_finish(&a);
    }
    for (size_t i = 0; i < runs; i++)
        pki_job_finish(&before[i]);
    free(before);
    return status;
}

static int print(const wish *w, const pki_job *j)
{
    return other_of(w) ? print_against(w, j) : print_findings(w, j, NULL);
}

static bool makes_sense(const wish *w)
{
    complaint why = {""};
    if (!w->files.count)
        complain("job needs files or folders (pk job --help)");
    else if (w->follow && (w->files.count > 1 || w->brief || other_of(w) || w->steps.given))
        complain("--follow takes one folder, and --every, --once, --json, --html, --metrics");
    else if (!w->follow && (w->once || w->every || w->metrics))
        complain("--once, --every and --metrics belong to --follow");
    else if (w->against.count > 1 && w->against.count < PKI_AGAINST_RUNS_LEAST)
        complain("--against takes one run, or %d and more: fewer do not tell what runs differ by",
                 PKI_AGAINST_RUNS_LEAST);
    else if (!w->follow && w->html && w->json)
        complain("--html or --json?");
    else if (w->brief && (w->html || w->json))
        complain("--brief or %s?", w->html ? "--html" : "--json");
    else if (w->html && !html_can_write(w->html, &why))
        complain("%s", why.text);
    else
        return true;
    return false;
}

int command_job(int argc, char **argv)
{
    wish w = {0};
    pki_job j;
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!makes_sense(&w))
        return EXIT_UNUSABLE;
    if (w.follow)
        return job_follow(&(follow_wish){.folder = w.files.all[0],
                                         .every = w.every ? w.every : FOLLOW_EVERY,
                                         .once = w.once,
                                         .json = w.json,
                                         .html = w.html,
                                         .metrics = w.metrics});
    json_limit_memory(JSON_MEMORY_MOST);
    bool read = job_read(&j, w.files.all, w.files.count, &w.steps, &why);
    j.late_least = w.late / 100.0;
    if (read)
        status = print(&w, &j);
    else if (j.life_count && !j.rank_count && !w.html && !other_of(&w))
        status = (pki_job_lives_alone(&j, w.json, stdout), EXIT_OK);
    else
        status = complain("%s", why.text);
    pki_job_finish(&j);
    return status;
}
