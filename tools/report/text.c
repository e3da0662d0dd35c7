/* tools/report/text.c - what `pk report` adds to a report's text */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beside/beside.h"
#include "measure/costs/events.h"
#include "memory.h"
#include "out/chrome/events.h"
#include "out/report/sections.h"
#include "report/report.h"

/* ---- what a capture is, and why its step was slow, in words ---- */

#define SHOWN 10      /* paths of a place */
#define NAMED 3       /* paths in the sentence, */
#define TELLING 0.1   /* each of so much of the difference */
#define STEPS_SHOWN 8 /* of those in the file */
#define PLACE 14      /* columns of a thread or device */
#define PATH 42       /* columns of a path */

#define STEP "step %" PRIu64

static double difference(const pki_path_row *r)
{
    return (double)r->self - r->usual;
}

static pki_figure more_or_less(double ns)
{
    pki_figure figure = pki_figure_time(fabs(ns)), out;
    const char *sign = ns < 0 ? "-" : ns > 0 ? "+" : "";
    snprintf(out.text, sizeof out.text, "%s%.38s", sign, figure.text);
    return out;
}

static const char *path_of(const void *row)
{
    const pki_path_row *r = row;
    return r->path[0] ? r->path : "(outside regions)";
}

static bool is_own(const pki_path_row *r)
{
    return r->where[0] == 0;
}

/* ---- what it is ---- */

static void print_reason(const pki_capture *c, FILE *file)
{
    static const struct {
        const char *reason, *words;
    } all[] = {{"steps", "Steps that were asked for by number"},
               {"every", "One of every so many steps"},
               {"cycle", "A part of a cycle"},
               {"request", "Asked for by `pk capture`"},
               {"call", "The program asked for it (pk_capture)"},
               {"hang", "The watchdog found that nothing moved any more"},
               {"straggler", "All ranks found that this one was late"}};
    if (c->slow) {
        pki_report_print(
            file, "Step %" PRIu64 " took %s, %s the median of steps like it before (%s): %s more.",
            c->slow_step, TIME((double)c->slow),
            pki_figure_ratio((double)c->slow / fmax((double)c->median, 1)).text,
            TIME((double)c->median), TIME((double)c->slow - (double)c->median));
        return;
    }
    for (size_t i = 0; i < PKI_COUNT_OF(all); i++)
        if (strcmp(c->reason, all[i].reason) == 0)
            pki_report_print(file, "%s%s%s.", all[i].words, c->text[0] ? ": " : "", c->text);
}

static void print_steps(const pki_capture *c, FILE *file)
{
    uint64_t in = 0, kernels = 0, first = 0, last = 0;
    for (size_t i = 0; i < c->step_count; i++) {
        in += c->steps[i].captured;
        if (!c->steps[i].kernels)
            continue;
        first = kernels++ ? first : c->steps[i].index;
        last = c->steps[i].index;
    }
    char with[120] = "without kernels, which CUPTI did not measure then";
    if (kernels)
        snprintf(with, sizeof with, "kernels of %" PRIu64 " of them, steps %" PRIu64 " to %" PRIu64,
                 kernels, first, last);
    pki_report_print(file,
                     "In the file: steps %" PRIu64 " to %" PRIu64 ", %" PRIu64 " of them; %s.",
                     c->first, c->last, in, with);
}

static void print_missing(const pki_capture *c, FILE *file)
{
    if (c->cut)
        pki_report_print(file, "Cut: the run ended before its last step.");
    if (c->beginning_gone)
        pki_report_print(file, "Cut: the beginning of its first step was no longer in the history "
                               "(a larger history_bytes keeps more).");
    if (c->full)
        pki_report_print(file, "Cut: it was longer than capture_bytes_per_hour allowed.");
    if (c->records_lost)
        pki_report_print(file, "The history had no room for %s records of the run so far.",
                         COUNT(c->records_lost));
    if (c->refused)
        pki_report_print(file,
                         "By then %s other capture%s had been refused (captures_per_hour, "
                         "capture_bytes_per_hour).",
                         COUNT(c->refused), c->refused == 1 ? "" : "s");
    if (c->kernels_late)
        pki_report_print(file,
                         "Kernels of %s step%s are missing: CUPTI had not given them back 3 s after"
                         " the last step.",
                         COUNT(c->kernels_late), c->kernels_late == 1 ? "" : "s");
    if (!c->cut && !c->beginning_gone && !c->full && !c->records_lost && !c->kernels_late)
        pki_report_print(file, "Nothing of it was cut or lost.");
}

static void put_step(const pki_captured_step *s, double usual, bool looked_at, FILE *file)
{
    fprintf(file, "  %c " STEP, looked_at ? '>' : ' ', s->index);
    pki_report_cell(file, TIME((double)s->duration), 12);
    pki_report_cell(file, usual > 0 ? pki_figure_ratio((double)s->duration / usual).text : "", 9);
    if (s->kind[0]) {
        fputs("  ", file);
        pki_put_left(file, s->kind, PKI_MIN(pki_width(s->kind), (size_t)30));
    }
    fputs(s->kernels ? "  kernels\n" : "\n", file);
}

/* The last ones, since the slow one is there. */
static void put_steps(const pki_summary *summary, FILE *file)
{
    const pki_capture *c = &summary->capture;
    size_t in = 0, from = 0;
    for (size_t i = c->step_count; i > 0 && in < STEPS_SHOWN; i--) {
        in += c->steps[i - 1].captured;
        from = i - 1;
    }
    fputc('\n', file);
    for (size_t i = from; i < c->step_count; i++)
        if (c->steps[i].captured)
            put_step(&c->steps[i], summary->beside.usual,
                     c->steps[i].index == summary->beside.step && summary->beside.took, file);
}

/* ---- why ---- */

/* " In it the process wrote 2.15 GB (usually 0 B), dirtied 2.15 GB for devices (usually 0 B)" */
static size_t add_file_row(const pki_io_beside *r, bool first, char *text, size_t size)
{
    static const struct {
        const char *name, *unit, *verb, *what;
    } all[] = {{"io.read", "B", "read", ""},
               {"io.written", "B", "wrote", ""},
               {"io.device_read", "B", "had", " from devices"},
               {"io.device_written", "B", "dirtied", " for devices"},
               {"io.operations", "", "made", " calls"}};
    size_t k = 0;
    char begin[80] = ",";
    while (k < PKI_COUNT_OF(all) && strcmp(r->name, all[k].name) != 0)
        k++;
    if (k == PKI_COUNT_OF(all) || !r->telling)
        return 0;
    if (first && r->steps > 1)
        snprintf(begin, sizeof begin, " In it and the %" PRIu64 " before it the process",
                 r->steps - 1);
    else if (first)
        snprintf(begin, sizeof begin, " In it the process");
    int n = snprintf(text, size, "%s %s %s%s (usually %s)", begin, all[k].verb,
                     pki_figure_scaled((double)r->value, all[k].unit).text, all[k].what,
                     pki_figure_scaled(r->usual * (double)r->steps, all[k].unit).text);
    return n > 0 ? PKI_MIN((size_t)n, size - 1) : 0;
}

static void add_files(const pki_beside *b, char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < b->io_count; i++)
        n += add_file_row(&b->io[i], n == 0, text + n, size - n);
    if (n)
        snprintf(text + n, size - n, ".");
}

/* Where many took longer by a little each, the reason is none of them. */
static void print_none(const pki_beside *b, const char *files, FILE *file)
{
    size_t own = 0, longer = 0;
    for (size_t i = 0; i < b->path_count; i++) {
        own += is_own(&b->paths[i]);
        longer += is_own(&b->paths[i]) && difference(&b->paths[i]) > 0;
    }
    pki_report_print(file,
                     "No path stands out: %zu of %zu took longer, each by less than %s of the "
                     "difference.%s",
                     longer, own, pki_figure_percent(TELLING).text, files);
}

static const pki_path_row *own_path(const pki_beside *b, const char *path)
{
    for (size_t i = 0; i < b->path_count && is_own(&b->paths[i]); i++)
        if (strcmp(b->paths[i].path, path) == 0 && b->paths[i].kind == PK_WAIT)
            return &b->paths[i];
    return NULL;
}

static bool is_telling(const pki_path_row *r, double all)
{
    return r && all > 0 && difference(r) >= TELLING * all;
}

typedef struct words {
    char text[512];
} words;

static const pki_cause *cause_of(const pki_beside *b, const char *what)
{
    for (size_t i = 0; i < b->cause_count; i++)
        if (strcmp(b->causes[i].cause, what) == 0)
            return &b->causes[i];
    return NULL;
}

static words who_had_it(const pki_beside *b)
{
    const pki_cause *c = cause_of(b, PKI_NO_PROCESSOR);
    words w = {"others had it"};
    if (c && strcmp(c->by, PKI_BY_QUOTA) == 0)
        strcpy(w.text, PKI_BY_QUOTA " was used up");
    else if (c && c->by[0])
        snprintf(w.text, sizeof w.text, "%.300s had it, for the most part", c->by);
    return w;
}

/* What is outside the program comes first: it keeps regions from being blamed. */
static void print_processor(const pki_beside *b, FILE *file)
{
    const pki_path_row *stopped = own_path(b, SLICES_STOPPED), *ready = own_path(b, SLICES_READY);
    const pki_path_row *asleep = own_path(b, SLICES_SUSPENDED),
                       *states[] = {stopped, ready, asleep};
    double all = (double)b->took - b->usual, mine = (double)b->took, usual = b->usual;
    for (size_t i = 0; i < PKI_COUNT_OF(states); i++) {
        mine -= states[i] ? (double)states[i]->self : 0;
        usual -= states[i] ? states[i]->usual : 0;
    }
    if (is_telling(asleep, all))
        pki_report_print(file, "The machine was suspended for %s of the %s.",
                         TIME((double)asleep->self), TIME((double)b->took));
    if (is_telling(stopped, all))
        pki_report_print(
            file,
            "The process was stopped or frozen for %s of the %s (a signal, a debugger, "
            "a cgroup's freezer): none of its code ran.",
            TIME((double)stopped->self), TIME((double)b->took));
    if (is_telling(ready, all))
        pki_report_print(file,
                         "No processor for %s of the %s, though its thread could have run: %s.",
                         TIME((double)ready->self), TIME((double)b->took), who_had_it(b).text);
    if (is_telling(stopped, all) || is_telling(ready, all) || is_telling(asleep, all))
        pki_report_print(file, "What the program itself did took %s, usually %s.", TIME(mine),
                         TIME(usual));
    if ((double)b->unplaced.ready - b->unplaced.usual >= TELLING * fabs(all))
        pki_report_print(
            file,
            "No processor for about %s of the %s (usually %s), though its thread could "
            "have run: %s. In which regions is not known, so those below may have "
            "waited for one.",
            TIME((double)b->unplaced.ready), TIME((double)b->took), TIME(b->unplaced.usual),
            who_had_it(b).text);
}

static void print_clock(const pki_beside *b, FILE *file)
{
    const pki_cause *c = cause_of(b, PKI_LOWER_CLOCK);
    if (c)
        pki_report_print(file,
                         "Its processor went at %s, usually at %s%s: for that, the same work took "
                         "%s longer.",
                         pki_figure_scaled(c->now, "Hz").text,
                         pki_figure_scaled(c->usual, "Hz").text,
                         c->by[0] ? " (held down for " PKI_BY_HEAT ")" : "", TIME(c->ns));
}

/* " for a lock that janitor holds", " for reads of data.bin": what was seen; "": nothing. */
static words what_for(const pki_cause *c)
{
    static const struct {
        const char *cause, *before;
    } all[] = {{PKI_WAITS_LOCK, " for a lock"},     {PKI_WAITS_THREAD, " for another thread"},
               {PKI_WAITS_SLEEP, " asleep"},        {PKI_WAITS_READ, " to read"},
               {PKI_WAITS_WRITE, " to write"},      {PKI_WAITS_SYNC, " for the disk"},
               {PKI_WAITS_PIPE, " for a pipe"},     {PKI_WAITS_TERMINAL, " for a terminal"},
               {PKI_WAITS_SOCKET, " for a socket"}, {PKI_WAITS_MEMORY, " for memory"},
               {PKI_COLLECTIVE, " for other ranks"}};
    words w = {""};
    size_t n = 0, k = 0;
    while (k < PKI_COUNT_OF(all) && strcmp(c->cause, all[k].cause) != 0)
        k++;
    if (k < PKI_COUNT_OF(all))
        n = (size_t)snprintf(w.text, sizeof w.text, "%s", all[k].before);
    if (c->object[0])
        n += (size_t)snprintf(w.text + n, sizeof w.text - n, ", %.170s", c->object);
    if (c->by[0])
        n += (size_t)snprintf(w.text + n, sizeof w.text - n, ": %.80s %s", c->by,
                              strcmp(c->cause, PKI_WAITS_LOCK) == 0 ? "held it" : "was at work");
    if (c->by[0] && c->by_region[0])
        n += (size_t)snprintf(w.text + n, sizeof w.text - n, " in %.150s", c->by_region);
    if (c->call[0] && !c->by[0])
        snprintf(w.text + n, sizeof w.text - n, " (%.40s)", c->call);
    return w;
}

#define TELLING_SAMPLES 5 /* of usual steps, to say what they do not do */

/* "61.0 ms more in memset <- resize, which usual steps do not have". */
static words in_function(const pki_cause *c)
{
    words w = {""};
    bool kernel = strcmp(c->function, PKI_SAMPLE_KERNEL) == 0;
    size_t n = (size_t)snprintf(w.text, sizeof w.text, "%s more in %.200s%s%.200s",
                                TIME(c->sampled), kernel ? "the kernel" : c->function,
                                c->caller[0] ? " <- " : "", c->caller);
    if (!c->usual_samples)
        snprintf(w.text, sizeof w.text, "in %.200s%s%.200s for the most part",
                 kernel ? "the kernel" : c->function, c->caller[0] ? " <- " : "", c->caller);
    else if (c->usual_samples < TELLING_SAMPLES)
        snprintf(w.text + n, sizeof w.text - n, "; of usual steps there are too few samples");
    else if (c->sampled_usual <= 0)
        snprintf(w.text + n, sizeof w.text - n, ", which usual steps do not have");
    else
        snprintf(w.text + n, sizeof w.text - n, ", usually %s", TIME(c->sampled_usual));
    return w;
}

/* ", 164 calls, usually 4", "61.0 ms more in memset": of what was worked. */
static words what_more(const pki_cause *c)
{
    words w = {""};
    if (strcmp(c->cause, PKI_MORE_WORK) == 0)
        snprintf(w.text, sizeof w.text, "%s %s, usually %s", pki_figure_scaled(c->now, "").text,
                 c->object, pki_figure_scaled(c->usual, "").text);
    else if (strcmp(c->cause, PKI_PAGE_FAULTS) == 0)
        snprintf(w.text, sizeof w.text, "in the kernel, for %s page faults",
                 pki_figure_scaled(c->now, "").text);
    else if (strcmp(c->cause, PKI_NUMA) == 0)
        snprintf(w.text, sizeof w.text, "in the kernel, which moved %s pages between NUMA nodes",
                 pki_figure_scaled(c->now, "").text);
    else if (strcmp(c->cause, PKI_COMPACTED) == 0)
        strcpy(w.text, "in the kernel, which compacted memory or split huge pages");
    else if (strcmp(c->cause, PKI_WAITS_MEMORY) == 0)
        strcpy(w.text, "in the kernel, which took memory back, or read it back");
    else if (c->function[0])
        w = in_function(c);
    return w;
}

static const pki_cause *dearest_of(const pki_beside *b, const char *path, bool waits)
{
    for (size_t i = 0; i < b->cause_count; i++) {
        const pki_cause *c = &b->causes[i];
        if (!c->outside && c->waits == waits && strcmp(c->region, path) == 0)
            return c;
    }
    return NULL;
}

/* " (40.9 ms of it waiting for a lock: janitor held it)", where that is most of the difference: it
 * computed no longer; else what it computed. */
static void add_details(const pki_beside *b, const pki_path_row *r, char *text, size_t size)
{
    double waited = (double)r->blocked - r->usual_blocked;
    bool waits = waited >= difference(r) / 2;
    const pki_cause *c = dearest_of(b, r->path, waits);
    words w = c && waits ? what_for(c) : c ? what_more(c) : (words){""};
    if (waits)
        snprintf(text, size, " (%s of it waiting%s)", TIME(waited), w.text);
    else if (w.text[0])
        snprintf(text, size, " (%s)", w.text);
}

/* It is slow for what it is, and not for how it went. */
static void print_kind(const pki_beside *b, FILE *file)
{
    const pki_cause *kind = cause_of(b, PKI_OTHER_KIND), *more = NULL;
    for (size_t i = 0; i < b->cause_count && !more; i++) /* the one that is of several paths */
        more = b->causes[i].now > 0 && !b->causes[i].region[0] ? &b->causes[i] : NULL;
    if (kind)
        pki_report_print(file, "It is a step of another kind%s%.200s: %s.",
                         kind->region[0] ? ", with " : "", kind->region,
                         more_or_less(kind->ns).text);
    if (more && strcmp(more->cause, PKI_MORE_WORK) == 0)
        pki_report_print(file, "It had more to do: %s, %s.", what_more(more).text,
                         more_or_less(more->ns).text);
}

/* "load +41.1 ms (40.9 ms of it waiting); all else +0.2 ms." */
static void print_why(const pki_beside *b, FILE *file)
{
    char text[NAMED * 800 + 100] = "", files[512] = "";
    double all = (double)b->took - b->usual, rest = all;
    for (size_t i = 0, named = 0; i < b->path_count && named < NAMED; i++) {
        const pki_path_row *r = &b->paths[i];
        if (!is_own(r) || difference(r) < TELLING * fabs(all))
            continue;
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%.230s %s", named++ ? ", " : "", path_of(r),
                 more_or_less(difference(r)).text);
        add_details(b, r, text + strlen(text), sizeof text - strlen(text));
        rest -= difference(r);
    }
    add_files(b, files, sizeof files);
    if (text[0])
        pki_report_print(file, "%s; all else %s.%s", text, more_or_less(rest).text, files);
    else
        print_none(b, files, file);
}

/* Open all through both: it says nothing. */
static bool is_all_of_it(const pki_path_row *r, const pki_beside *b)
{
    return (double)r->self > 0.9 * (double)b->took && r->usual > 0.9 * b->usual;
}

/* What other threads and devices did longer meanwhile; that they waited is no reason. */
static void print_meanwhile(const pki_beside *b, FILE *file)
{
    double all = (double)b->took - b->usual;
    for (size_t i = 0; i < b->path_count; i++) {
        const pki_path_row *r = &b->paths[i];
        if (is_own(r) || r->kind == PK_WAIT || is_all_of_it(r, b) || difference(r) < 0.25 * all ||
            all <= 0)
            continue;
        pki_report_print(file, "Meanwhile on %s: %s %s.", r->where, path_of(r),
                         more_or_less(difference(r)).text);
        return;
    }
}

static void put_path(const pki_path_row *r, size_t width, const pki_column *paths, FILE *file)
{
    fputs("  ", file);
    if (!is_own(r)) {
        pki_put_left(file, r->where, PLACE);
        fputc(' ', file);
    }
    pki_put_apart(file, path_of(r), is_own(r) ? width : width - PLACE - 1, paths);
    pki_report_cell(file, TIME((double)r->self), 9);
    pki_report_cell(file, TIME(r->usual), 9);
    pki_report_cell(file, more_or_less(difference(r)).text, 11);
    fputc('\n', file);
}

static void put_paths(const pki_beside *b, bool own, const pki_report_options *options, FILE *file)
{
    char step[32];
    size_t more = options->width > PKI_PAGE_WIDTH ? options->width - PKI_PAGE_WIDTH : 0, shown = 0;
    double left = 0;
    snprintf(step, sizeof step, STEP, b->step);
    for (size_t i = 0; i < b->path_count; i++) {
        const pki_path_row *r = &b->paths[i];
        if (is_own(r) != own || !pki_report_shows(options, r->path))
            continue;
        if (shown == 0) {
            fprintf(file, "\n  %-*s", (int)(PATH + more),
                    own ? "self time on the thread that makes steps" : "meanwhile elsewhere");
            pki_report_cell(file, step, 9);
            fputs("     usual  difference\n", file);
        }
        pki_column paths = pki_column_near(b->paths, b->path_count, sizeof *b->paths, i, path_of);
        if (shown++ < SHOWN)
            put_path(r, PATH + more, &paths, file);
        else
            left += difference(r);
    }
    if (shown > SHOWN)
        fprintf(file, "  ... and %zu more, %s together\n", shown - SHOWN, more_or_less(left).text);
}

static void put_beside(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    const pki_beside *b = &summary->beside;
    if (!b->took)
        return;
    if (!b->usual_count) {
        pki_report_print(file, "There is no other step in the file to set it beside.");
        return;
    }
    pki_report_title(file, "%s " STEP " took %s and not %s",
                     summary->capture.slow ? "WHY" : "THE LONGEST:", b->step, TIME((double)b->took),
                     TIME(b->usual));
    pki_report_print(file, "Beside the median of %" PRIu64 " usual step%s of the file%s.",
                     b->usual_count, b->usual_count == 1 ? "" : "s",
                     b->same_kind ? "" : ", which are of another kind");
    print_processor(b, file);
    print_clock(b, file);
    print_kind(b, file);
    print_why(b, file);
    print_meanwhile(b, file);
    if (b->untold && b->untold[0])
        pki_report_print(file, "%s", b->untold);
    put_paths(b, true, options, file);
    put_paths(b, false, options, file);
}

void report_capture(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    const pki_capture *c = &summary->capture;
    if (!c->captured)
        return;
    pki_report_heading(file, "CAPTURE: %s", c->slow ? "a slow step" : "steps of a run");
    print_reason(c, file);
    print_steps(c, file);
    print_missing(c, file);
    put_steps(summary, file);
    put_beside(summary, options, file);
    fputs("\nTHE CAPTURED STEPS AS A RUN\n\n", file);
}

/* ---- what sampled calls of regions counted in this run and in another one ---- */

#define NAME 20
#define FIGURE 15

typedef struct beside {
    const pki_events_row *mine, *other;
} beside;

static const pki_events_row *find(const pki_events_summary *in, const char *region)
{
    for (size_t i = 0; i < in->row_count; i++)
        if (strcmp(in->rows[i].region, region) == 0)
            return &in->rows[i];
    return NULL;
}

static bool are_known(const beside *b, pki_event_figure figure)
{
    return pki_event_figure_of(b->mine, figure) >= 0 && pki_event_figure_of(b->other, figure) >= 0;
}

static void put_value(double value, double error, pki_event_figure figure, FILE *file)
{
    pki_report_cell(file,
                    figure == PKI_FIGURE_PROCESSOR ? TIME(value)
                                                   : pki_event_figure_shown(figure, value).text,
                    8);
    pki_report_cell(file, pki_event_error_shown(figure, value, error).text, 7);
}

static void put_change(double now, double then, bool differ, FILE *file)
{
    char text[32] = "-";
    if (differ && then > 0)
        snprintf(text, sizeof text, "%+.1f %%", fmin(100 * (now / then - 1), 99999));
    pki_report_cell(file, text, 9);
}

static void put_row(const beside *b, pki_event_figure figure, const char *region, FILE *file)
{
    double now = pki_event_figure_of(b->mine, figure), then = pki_event_figure_of(b->other, figure);
    double error = pki_event_error_of(b->mine, figure);
    double other = pki_event_error_of(b->other, figure);
    fputs("  ", file);
    pki_put_left(file, region, NAME);
    pki_put_left(file, pki_event_figure_name(figure), FIGURE);
    put_value(now, error, figure, file);
    put_value(then, other, figure, file);
    put_change(now, then, pki_event_figures_differ(now, error, then, other), file);
    fputc('\n', file);
}

static void put_region(const beside *b, FILE *file)
{
    const char *region = b->mine->region;
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (!are_known(b, f))
            continue;
        put_row(b, f, region, file);
        region = "";
    }
}

static void put_head(FILE *file)
{
    fputs("\nEVENTS A CALL: what both runs sampled\n", file);
    pki_report_print(file,
                     "Misses are those in 1,000 instructions. +-: 95 %% of samples would be as "
                     "near; a change is shown where it is beyond both.");
    fprintf(file, "  %-*s%-*s this run      +-    other      +-   change\n", NAME, "region", FIGURE,
            "figure");
}

static bool knows_any(const beside *b)
{
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++)
        if (are_known(b, f))
            return true;
    return false;
}

/* What sampled calls of both runs counted; nothing where one has none. */
static void report_events_beside(const pki_summary *mine, const pki_summary *other,
                                 const pki_report_options *options, FILE *file)
{
    uint32_t top = options->top ? options->top : PKI_REPORT_TOP, shown = 0, all = 0;
    for (size_t i = 0; i < mine->events.row_count; i++) {
        const beside b = {&mine->events.rows[i], find(&other->events, mine->events.rows[i].region)};
        if (!b.other || !knows_any(&b) || !pki_report_shows(options, b.mine->region) ||
            all++ >= top)
            continue;
        if (!shown++)
            put_head(file);
        put_region(&b, file);
    }
    if (all > shown)
        fprintf(file, "  ... and %u regions more\n", all - shown);
}

/* ---- the call tree as text ---- */

#define TREE_PATH 41 /* columns of a name with what stands in front of it */
#define INDENT 2u    /* per depth, */
#define DEEPEST 16   /* and deeper it is a number */

static uint64_t time_of_all(const pki_summary *s)
{
    uint64_t all = 0;
    for (size_t i = 0; i < s->tree_count; i++)
        all += s->tree[i].depth == 0 ? s->tree[i].time : 0;
    return all;
}

static const char *row_name(const void *row)
{
    return ((const pki_tree_row *)row)->name;
}

static void put_tree_row(const pki_tree_row *r, double all, size_t width, const pki_column *names,
                         FILE *file)
{
    uint32_t indent = INDENT * PKI_MIN(r->depth, (uint32_t)DEEPEST);
    size_t left = width - indent;
    pki_put_times(file, ' ', 2 + indent);
    if (r->depth > DEEPEST)
        left -= (size_t)fprintf(file, "%u: ", r->depth);
    pki_put_apart(file, r->name, left, names);
    pki_report_cell(file, COUNT(r->calls), 7);
    pki_report_cell(file, TIME((double)r->time), 9);
    pki_report_cell(file, TIME((double)r->self), 9);
    pki_report_percent(file, all > 0 ? (double)r->time / all : 0);
    fputc('\n', file);
}

void report_tree(const pki_summary *summary, const pki_report_options *options, uint32_t depth,
                 double least, FILE *file)
{
    double all = (double)time_of_all(summary);
    size_t left = 0, width = TREE_PATH, shown = 0;
    uint32_t top = options->top ? options->top : PKI_REPORT_ALL;
    width += options->width > PKI_PAGE_WIDTH ? options->width - PKI_PAGE_WIDTH : 0;
    if (!summary->tree_count)
        return;
    pki_report_title(file, "CALL TREE of all threads: a region in those that it was called in");
    fprintf(file, "  %-*s   calls      time      self share\n", (int)width, "region");
    for (size_t i = 0; i < summary->tree_count; i++) {
        const pki_tree_row *r = &summary->tree[i];
        bool fits = r->depth < depth && (double)r->time >= least * all && shown < top;
        if (fits && pki_report_shows(options, r->name) && ++shown) {
            pki_column names = pki_column_near(summary->tree, summary->tree_count,
                                               sizeof *summary->tree, i, row_name);
            put_tree_row(r, all, width, &names, file);
        } else {
            left++;
        }
    }
    if (left)
        fprintf(file, "  ... and %zu more rows (--depth, --min-share, --top)\n", left);
}

/* ---- what `pk report` adds to a report's text ---- */

#define REGION_NAME 21 /* columns of a region's name */

/* ---- threads ---- */

static pki_thread_row *thread_of(pki_summary *summary, uint32_t tid)
{
    for (size_t i = 0; i < summary->thread_count; i++)
        if (summary->threads[i].tid == tid && !summary->threads[i].region_count)
            return &summary->threads[i];
    return NULL;
}

void report_move_thread_regions(pki_summary *summary, pki_summary *events)
{
    for (size_t i = 0; i < events->thread_count; i++) {
        pki_thread_row *from = &events->threads[i], *to = thread_of(summary, from->tid);
        if (!to || !from->region_count)
            continue;
        to->regions = from->regions;
        to->region_count = from->region_count;
        from->regions = NULL;
        from->region_count = 0;
    }
}

void report_move_tree(pki_summary *summary, pki_summary *events)
{
    summary->tree = events->tree;
    summary->tree_count = events->tree_count;
    events->tree = NULL;
    events->tree_count = 0;
}

/* ---- another run ---- */

typedef struct pair {
    const pki_region_row *mine, *other; /* one of them may be NULL */
    double now, then;                   /* ns of self time, of each step or of the run */
} pair;

static const char *name_of(const void *row)
{
    const pair *p = row;
    return (p->mine ? p->mine : p->other)->name;
}

/* Self time in a step, where both runs have steps; of what other threads than the stepping one do,
 * their share of a step. */
static double own_of(const pki_summary *run, const pki_region_row *r, bool steps)
{
    if (!r || !steps)
        return r ? (double)r->self : 0;
    return r->step_self.count ? r->step_self.mean : (double)r->self / (double)run->steps.count;
}

static const pki_region_row *find_region(const pki_summary *in, const pki_region_row *like)
{
    for (size_t i = 0; i < in->region_count; i++)
        if (in->regions[i].kind == like->kind && strcmp(in->regions[i].name, like->name) == 0)
            return &in->regions[i];
    return NULL;
}

static int by_moved(const void *a, const void *b)
{
    const pair *p = a, *q = b;
    double x = fabs(p->now - p->then), y = fabs(q->now - q->then);
    return (x < y) - (x > y);
}

/* What moved most comes first. */
static size_t pair_regions(const pki_summary *mine, const pki_summary *other,
                           const pki_report_options *o, bool steps, pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0; i < mine->region_count; i++)
        if (pki_report_shows(o, mine->regions[i].name))
            pairs[count++] = (pair){&mine->regions[i], find_region(other, &mine->regions[i]), 0, 0};
    for (size_t i = 0; i < other->region_count; i++)
        if (pki_report_shows(o, other->regions[i].name) && !find_region(mine, &other->regions[i]))
            pairs[count++] = (pair){NULL, &other->regions[i], 0, 0};
    for (size_t i = 0; i < count; i++) {
        pairs[i].now = own_of(mine, pairs[i].mine, steps);
        pairs[i].then = own_of(other, pairs[i].other, steps);
    }
    qsort(pairs, count, sizeof *pairs, by_moved);
    return count;
}

static void put_time(FILE *file, bool known, double ns)
{
    pki_report_cell(file, known ? TIME(ns) : "-", 8);
}

static void put_beside_change(FILE *file, double now, double then)
{
    char text[32] = "-";
    double percent = then > 0 && now > 0 ? 100 * (now / then - 1) : NAN;
    if (isfinite(percent))
        snprintf(text, sizeof text, percent < 1000 ? "%+.1f %%" : "%+.0f %%", fmin(percent, 99999));
    pki_report_cell(file, text, 8);
}

/* NULL: of its steps nothing is known. */
static const pki_against_row *row_of(const pki_against *a, pki_against_sort sort,
                                     const pki_region_row *region)
{
    for (size_t i = 0; a && i < a->count; i++) {
        const pki_against_row *r = &a->rows[i];
        if (r->sort == sort && !*r->step_kind &&
            (!region || (strcmp(r->name, region->name) == 0 &&
                         strcmp(r->kind, pki_kind_names[region->kind]) == 0)))
            return r;
    }
    return NULL;
}

/* The interval, and what that says. */
static void put_verdict(const pki_against_row *row, FILE *file)
{
    char interval[100] = "-";
    if (row)
        pki_against_interval_text(row, interval);
    pki_report_cell(file, interval, 17);
    fprintf(file, "  %s\n", pki_change_name(row ? row->decision.change : PKI_UNSURE));
}

static void put_pair(const pair *p, size_t name, const pki_column *names, const pki_against *a,
                     FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, name_of(p), name, names);
    put_time(file, p->mine, p->now);
    put_time(file, p->other, p->then);
    put_beside_change(file, p->now, p->then);
    put_verdict(row_of(a, PKI_AGAINST_STAGE, p->mine ? p->mine : p->other), file);
}

static void put_regions(const pki_report_options *options, bool steps, const pair *pairs,
                        size_t count, const pki_against *a, FILE *file)
{
    uint32_t top = options->top ? options->top : PKI_REPORT_TOP;
    size_t shown = PKI_MIN(count, (size_t)top), longest = 0;
    for (size_t i = 0; i < shown; i++)
        longest = PKI_MAX(longest, pki_width(name_of(&pairs[i])));
    size_t name = pki_report_name_room(options, REGION_NAME, longest);
    fprintf(file, "\nREGIONS by how much their self time %s differs\n",
            steps ? "in a step" : "in the run");
    fprintf(file, "  %-*s     self    other   change          interval\n", (int)name, "region");
    for (size_t i = 0; i < shown; i++) {
        pki_column names = pki_column_near(pairs, count, sizeof *pairs, i, name_of);
        put_pair(&pairs[i], name, &names, a, file);
    }
    if (count > shown)
        fprintf(file, "  ... and %zu more\n", count - shown);
}

/* With a verdict where there is one for it. */
static void put_figure(const char *what, double now, double then, const pki_against_row *row,
                       FILE *file)
{
    if (!(now > 0) || !(then > 0))
        return;
    fputs("  ", file);
    pki_put_left(file, what, REGION_NAME);
    put_time(file, true, now);
    put_time(file, true, then);
    put_beside_change(file, now, then);
    if (row)
        put_verdict(row, file);
    else
        fputc('\n', file);
}

/* What is called slower; first, that processors were short. */
static void put_rules(const pki_against *a, FILE *file)
{
    if (a && a->count)
        pki_against_put_rules(a, file);
    else
        pki_report_print(file, "Nothing is called slower: too few steps of these runs can be put"
                               " beside each other to tell a change from chance.");
    fputc('\n', file);
}

static void put_figures(const pki_summary *mine, const pki_summary *other, const pki_against *a,
                        FILE *file)
{
    const pki_against_row *step = row_of(a, PKI_AGAINST_STEP, NULL);
    put_rules(a, file);
    fprintf(file, "  %-*s  this run    other   change          interval\n", REGION_NAME, "figure");
    if (step)
        put_figure("step, mean", step->now, step->before, step, file);
    put_figure("step, median", mine->steps.steady.p50, other->steps.steady.p50, NULL, file);
    put_figure("step, p95", mine->steps.steady.p95, other->steps.steady.p95, NULL, file);
    put_figure("step, p99", mine->steps.steady.p99, other->steps.steady.p99, NULL, file);
    put_figure("run", (double)mine->run.wall, (double)other->run.wall, NULL, file);
    put_figure("CPU time", (double)mine->run.cpu, (double)other->run.cpu, NULL, file);
}

static void put_difference(const char *what, const char *mine, const char *other, FILE *file)
{
    if (strcmp(mine ? mine : "", other ? other : "") == 0)
        return;
    pki_report_print(file, "%s: %s; the other: %s", what, mine && mine[0] ? mine : "unknown",
                     other && other[0] ? other : "unknown");
}

/* What could explain a difference: only what is not the same. */
static void put_environments(const pki_environment *a, const pki_environment *b, FILE *file)
{
    if (!a->memory || !b->memory)
        return;
    fputs("\nMACHINE AND BUILD: what differs\n", file);
    put_difference("processor", a->cpu, b->cpu, file);
    put_difference("processors", COUNT(a->processors), COUNT(b->processors), file);
    put_difference("memory", pki_figure_scaled((double)a->memory, "B").text,
                   pki_figure_scaled((double)b->memory, "B").text, file);
    put_difference("kernel", a->kernel, b->kernel, file);
    put_difference("GPU", a->gpu, b->gpu, file);
    put_difference("driver", a->driver, b->driver, file);
    put_difference("command", a->command, b->command, file);
    put_difference("program's compiler", a->program_compiler, b->program_compiler, file);
    put_difference("program's build ID", a->build_id, b->build_id, file);
    put_difference("perfkit's compiler", a->compiler, b->compiler, file);
    put_difference("commit", a->commit, b->commit, file);
}

int report_beside(const pki_summary *mine, const pki_summary *other, const char *path,
                  const pki_against *a, const pki_report_options *options, FILE *file)
{
    size_t most = mine->region_count + other->region_count;
    pair *pairs = memory_zeroed(most, sizeof *pairs);
    bool steps = mine->steps.count && other->steps.count;
    fputs("BESIDE ", file);
    pki_put_left(file, path, pki_width(path));
    fputc('\n', file);
    put_figures(mine, other, a, file);
    put_regions(options, steps, pairs, pair_regions(mine, other, options, steps, pairs), a, file);
    free(pairs);
    report_events_beside(mine, other, options, file);
    put_environments(&mine->environment, &other->environment, file);
    errno = 0;
    return fflush(file) == 0 && !ferror(file) ? 0 : -(errno ? errno : EIO);
}
