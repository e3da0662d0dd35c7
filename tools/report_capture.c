#include "report_capture.h"

#include "out/report/sections.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
    if (!c->cut && !c->beginning_gone && !c->full && !c->records_lost)
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

/* "load +41.1 ms; all else +0.2 ms." */
static void print_why(const pki_beside *b, FILE *file)
{
    char text[NAMED * 300 + 100] = "", files[512] = "";
    double all = (double)b->took - b->usual, rest = all;
    for (size_t i = 0, named = 0; i < b->path_count && named < NAMED; i++) {
        const pki_path_row *r = &b->paths[i];
        if (!is_own(r) || difference(r) < TELLING * fabs(all))
            continue;
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%.230s %s", named++ ? ", " : "", path_of(r),
                 more_or_less(difference(r)).text);
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
    print_why(b, file);
    print_meanwhile(b, file);
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
