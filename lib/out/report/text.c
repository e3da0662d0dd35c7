/* lib/out/report/text.c - the text report: its head, tables and charts */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure/figure.h"
#include "measure/overhead.h"
#include "measure/thinning.h"
#include "measure/whole_run.h"
#include "out/columns.h"
#include "out/json_write.h"
#include "out/report/sections.h"

/* ---- pk_spans: how long they took, wherever they began and ended ---- */

#define SPAN_NAME                                                                                  \
    23 /* Has the region no calls but pk_spans and their marks? They stand in a table of their     \
          own. */
/* columns of a span's name */

static bool pki_report_is_span_alone(const pki_region_row *r)
{
    return r->span.events && r->self == 0 && !r->gpu.count && !r->kernels.count;
}

static void put_row(const pki_region_row *r, size_t name, const pki_column *names, bool marks,
                    FILE *file)
{
    const pki_dist *d = &r->time;
    fputs("  ", file);
    pki_put_apart(file, r->name, name, names);
    pki_report_cell(file, COUNT(marks ? r->span.marks : r->span.ended), 7);
    pki_report_cell(file, marks ? "" : COUNT(r->span.unfinished), 6);
    pki_report_cell(file, TIGHT(d->mean), 7);
    pki_report_cell(file, TIGHT(d->p50), 7);
    pki_report_cell(file, TIGHT(d->p90), 7);
    pki_report_cell(file, TIGHT(d->p99), 7);
    pki_report_cell(file, TIGHT(d->max), 7);
    fputc('\n', file);
}

static bool is_wanted(const pki_region_row *r, const pki_report_options *options, bool marks)
{
    return (marks ? r->span.marks : r->span.begun) > 0 && pki_report_shows(options, r->name);
}

static size_t room_for_names(const pki_summary *s, const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->region_count; i++)
        if (is_wanted(&s->regions[i], options, false) || is_wanted(&s->regions[i], options, true))
            longest = PKI_MAX(longest, pki_width(s->regions[i].name));
    return pki_report_name_room(options, SPAN_NAME, longest);
}

static void put_rows(const pki_summary *s, const pki_report_options *options, bool marks,
                     FILE *file)
{
    size_t name = room_for_names(s, options), shown = 0, all = 0;
    for (size_t i = 0; i < s->region_count; i++)
        all += is_wanted(&s->regions[i], options, marks);
    if (!all)
        return;
    fprintf(file, "  %-*s %s    mean     p50     p90     p99     max\n", (int)name,
            marks ? "mark, since the last" : "span", marks ? "  marks       " : "  ended   open");
    for (size_t i = 0; i < s->region_count && shown < options->top; i++)
        if (is_wanted(&s->regions[i], options, marks)) {
            pki_column names = pki_report_region_names(s->regions, s->region_count, i);
            put_row(&s->regions[i], name, &names, marks, file);
            shown++;
        }
    if (all > shown)
        fprintf(file, "  ... and %zu more\n", all - shown);
}

/* What went wrong, and with whom. */
static void put_errors(const pki_span_summary *s, FILE *file)
{
    if (s->unfinished)
        pki_report_print(file, "unfinished: %s of %s spans had begun and not ended",
                         COUNT(s->unfinished), COUNT(s->begun));
    if (s->dropped)
        pki_report_print(file,
                         "%s begins, marks and ends found no room: their times are in these"
                         " figures, and they are missing from the trace",
                         COUNT(s->dropped));
    if (s->ended_twice)
        pki_report_print(file,
                         "ended twice: %s ends or marks of spans that had ended, in no figure",
                         COUNT(s->ended_twice));
    if (s->of_earlier)
        pki_report_print(file, "of an earlier session: %s ends or marks, in no figure",
                         COUNT(s->of_earlier));
}

static void pki_report_spans(const pki_summary *summary, const pki_report_options *options,
                             FILE *file)
{
    if (!summary->spans.events)
        return;
    pki_report_title(file, "SPANS from begin to end, on whatever threads");
    put_rows(summary, options, false, file);
    put_rows(summary, options, true, file);
    put_errors(&summary->spans, file);
}

/* ---- pk_requests: how many were good, and why the slow ones were slow ---- */

#define SHOWN 5 /* of the slowest */
#define BAR 30  /* columns of a whole */

static void put_request_counts(const pki_request_summary *r, const pki_summary *s, FILE *file)
{
    double seconds = (double)s->run.wall / 1e9;
    pki_report_print(file, "%s ended: %s finished, %s cancelled, %s failed; %s tokens%s%s",
                     COUNT(r->count), COUNT(r->finished), COUNT(r->cancelled), COUNT(r->failed),
                     COUNT(r->tokens), seconds > 0 ? ", " : "",
                     seconds > 0 ? pki_figure_scaled((double)r->tokens / seconds, "/s").text : "");
    if (r->preemptions)
        pki_report_print(file, "put out of the batch %s times", COUNT(r->preemptions));
    if (r->dropped)
        pki_report_print(file, "%s more ended while their ring was full, and are not in here",
                         COUNT(r->dropped));
}

static void put_goodput(const pki_request_summary *r, FILE *file)
{
    if (!r->ttft_limit && !r->tpot_limit)
        return;
    pki_report_print(file, "goodput: %s of them finished%s%s%s%s%s%s",
                     pki_figure_percent(r->goodput).text,
                     r->ttft_limit ? " with their first token within " : "",
                     r->ttft_limit ? TIME((double)r->ttft_limit) : "",
                     r->ttft_limit && r->tpot_limit ? " and" : "",
                     r->tpot_limit ? (r->ttft_limit ? " " : " with ") : "",
                     r->tpot_limit ? TIME((double)r->tpot_limit) : "",
                     r->tpot_limit ? " or less per token after it" : "");
}

/* ---- what the time went to ---- */

static double share_of(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void put_part(const char *name, uint64_t all, uint64_t all_of, uint64_t slow,
                     uint64_t slow_of, FILE *file)
{
    char bar[BAR + 1];
    double of_slow = share_of(slow, slow_of);
    size_t n = (size_t)(of_slow * BAR + 0.5);
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < n ? '#' : ' ';
    bar[PKI_MIN(n, (size_t)BAR)] = '\0';
    fprintf(file, "  %-30s", name);
    pki_report_cell(file, pki_figure_percent(share_of(all, all_of)).text, 7);
    pki_report_cell(file, pki_figure_percent(of_slow).text, 7);
    fprintf(file, "%s%s\n", n ? "  " : "", bar);
}

static void put_parts(const pki_request_summary *r, FILE *file)
{
    const pki_request_parts *a = &r->all, *s = &r->slow;
    if (r->slow_from)
        pki_report_print(file, "what their time went to; slow: the %s that took %s and more",
                         COUNT(s->count), TIME((double)r->slow_from));
    else
        pki_report_print(file, "what their time went to; slow: the %s that missed the limits",
                         COUNT(s->count));
    fputs("                                      all    slow\n", file);
    put_part("queued, not scheduled yet", a->queued, a->total, s->queued, s->total, file);
    put_part("preempted", a->preempted, a->total, s->preempted, s->total, file);
    put_part("reading the own prompt", a->prefill, a->total, s->prefill, s->total, file);
    put_part("  beside others' prompts", a->crowded, a->total, s->crowded, s->total, file);
    put_part("generating", a->decode, a->total, s->decode, s->total, file);
    put_part("  longer for others' prompts", a->behind, a->total, s->behind, s->total, file);
}

/* ---- the slowest ---- */

typedef struct cause {
    const char *text;
    uint64_t ns;
} cause;

/* What most of its time went to. */
static cause largest(const pki_request_parts *p)
{
    const cause causes[] = {{"waiting to be scheduled", p->queued},
                            {"preempted", p->preempted},
                            {"reading its prompt", p->prefill},
                            {"while others' prompts were read", p->crowded + p->behind},
                            {"generating", p->decode}};
    cause most = causes[0];
    for (size_t i = 1; i < PKI_COUNT_OF(causes); i++)
        if (causes[i].ns > most.ns)
            most = causes[i];
    return most;
}

static void put_slowest(const pki_request_summary *r, FILE *file)
{
    if (r->slowest_count)
        fputs("\n  slowest:\n", file);
    for (size_t i = 0; i < r->slowest_count && i < SHOWN; i++) {
        const pki_slow_request *s = &r->slowest[i];
        cause most = largest(&s->parts);
        char steps[64] = "in no step";
        if (s->steps)
            snprintf(steps, sizeof steps, "in steps %" PRIu64 " to %" PRIu64, s->first_step,
                     s->first_step + s->steps - 1);
        pki_report_print(file, "  %s, %s tokens, %s: %s of it %s%s", TIME((double)s->parts.total),
                         COUNT(s->tokens), steps,
                         pki_figure_percent(share_of(most.ns, s->parts.total)).text, most.text,
                         s->preemptions && most.ns != s->parts.preempted ? "; was preempted" : "");
    }
}

static void pki_report_requests(const pki_summary *summary, FILE *file)
{
    const pki_request_summary *r = &summary->requests;
    if (!r->count)
        return;
    pki_report_title(file, "REQUESTS and what they waited for");
    put_request_counts(r, summary, file);
    put_goodput(r, file);
    put_parts(r, file);
    put_slowest(r, file);
}

/* ---- how much memory the run took, and which regions asked for it ---- */

#define MEMORY_NAME 27 /* columns of a region's name */
#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

static void put_process(const pki_memory_summary *m, FILE *file)
{
    pki_report_print(file, "resident: %s at the end, %s at most; private: %s at most",
                     BYTES(m->resident), BYTES(m->most_resident), BYTES(m->most_private));
    if (m->limit)
        pki_report_print(file, "limit: %s (%s), of which %s were in use", BYTES(m->limit),
                         m->limit_of, pki_figure_percent((double)m->used / (double)m->limit).text);
    if (m->step_minor.count)
        pki_report_print(file, "page faults in a step: %s (p50 %s, p99 %s), and %s from a disk",
                         pki_figure_scaled(m->step_minor.mean, "").text,
                         pki_figure_scaled(m->step_minor.p50, "").text,
                         pki_figure_scaled(m->step_minor.p99, "").text,
                         pki_figure_scaled(m->step_major.mean, "").text);
    else
        pki_report_print(file, "page faults: %s, and %s from a disk", COUNT(m->minor_faults),
                         COUNT(m->major_faults));
}

static const char *region_name(const void *row)
{
    const pki_memory_region *r = row;
    return r->name && r->name[0] ? r->name : "(outside of regions)";
}

static void memory_put_row(const pki_memory_region *r, size_t name, const pki_column *names,
                           FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, region_name(r), name, names);
    pki_report_cell(file, COUNT(r->allocations), 7);
    pki_report_cell(file, BYTES(r->bytes), 8);
    pki_report_cell(file, BYTES(r->live), 8);
    pki_report_cell(file, BYTES(r->peak), 8);
    pki_report_cell(file, BYTES(r->at_peak), 8);
    fputc('\n', file);
}

static void put_memory_regions(const pki_memory_summary *m, const pki_report_options *options,
                               FILE *file)
{
    size_t longest = 0, shown = 0, all = 0;
    for (size_t i = 0; i < m->region_count; i++) {
        longest = PKI_MAX(longest, pki_width(m->regions[i].name));
        all += pki_report_shows(options, m->regions[i].name);
    }
    size_t name = pki_report_name_room(options, MEMORY_NAME, longest);
    if (!all)
        return;
    fprintf(file, "  %-*s  allocs    bytes     live     peak  at peak\n", (int)name, "region");
    for (size_t i = 0; i < m->region_count && shown < options->top; i++)
        if (pki_report_shows(options, m->regions[i].name)) {
            pki_column names =
                pki_column_near(m->regions, m->region_count, sizeof *m->regions, i, region_name);
            memory_put_row(&m->regions[i], name, &names, file);
            shown++;
        }
    if (all > shown)
        fprintf(file, "  ... and %zu more\n", all - shown);
}

static void pki_report_memory(const pki_summary *summary, const pki_report_options *options,
                              FILE *file)
{
    const pki_memory_summary *m = &summary->memory;
    if (!m->looks)
        return;
    pki_report_title(file, "MEMORY");
    put_process(m, file);
    bool counts = m->allocator && m->allocator[0];
    if (m->uncounted && m->uncounted[0])
        pki_report_print(file, "libpk_alloc %s: %s", counts ? "counts not all" : "counts nothing",
                         m->uncounted);
    if (!counts)
        return;
    pki_report_print(file, "allocated, from %s: %s live at the end, %s at most (within %s)",
                     m->allocator, BYTES(m->live), BYTES(m->peak), BYTES(m->within));
    if (m->sampled)
        pki_report_print(file,
                         "estimated from one byte in %s: B bytes in 95 of 100 cases within"
                         " 2 sqrt(B x %s)",
                         BYTES(m->sampled), BYTES(m->sampled));
    put_memory_regions(m, options, file);
}

/* ---- what the sections of the text report consist of ---- */

#define MARGIN 2
#define HANGING 4

/* This thread's report lacks a sentence for want of memory. */
static _Thread_local bool memory_failed;

static void pki_report_begin(void)
{
    memory_failed = false;
}

/* Of this thread's next report: has there been memory for all of it? */
static bool pki_report_is_whole(void)
{
    return !memory_failed;
}

static void put_formatted(FILE *file, size_t margin, const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0) {
        memory_failed = true;
        return;
    }
    pki_put_paragraph(file, text, margin, margin);
    free(text);
}

void pki_report_heading(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_formatted(file, 0, format, args);
    va_end(args);
}

void pki_report_title(FILE *file, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    fputc('\n', file);
    if (vasprintf(&text, format, args) >= 0)
        pki_put_text(file, text);
    else
        memory_failed = true;
    free(text);
    fputc('\n', file);
    va_end(args);
}

void pki_report_print(FILE *file, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pki_put_times(file, ' ', MARGIN);
    put_formatted(file, MARGIN, format, args);
    va_end(args);
}

PKI_PRINTF(3, 4)
static void pki_report_item(FILE *file, char mark, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(file, "%*s%c ", MARGIN, "", mark);
    put_formatted(file, HANGING, format, args);
    va_end(args);
}

/* ---- cells ---- */

void pki_report_cell(FILE *file, const char *text, size_t width)
{
    fputc(' ', file);
    pki_put_right(file, text, width);
}

void pki_report_percent(FILE *file, double share)
{
    char text[32];
    double percent = isfinite(share) ? PKI_MIN(PKI_MAX(100 * share, 0), 999) : 0;
    long tenths = lround(10 * percent);
    snprintf(text, sizeof text, "%ld.%ld", tenths / 10, tenths % 10);
    pki_report_cell(file, text, 5);
}

/* ---- tables ---- */

#define NAME 25         /* columns of a region's name */
#define COUNTER 22      /* columns of a counter's name and unit */
#define THREADS_MOST 16 /* shown without their regions */

static const char *short_kind(uint32_t kind)
{
    static const char *const names[PKI_KINDS] = {
        [PK_OTHER] = "-",   [PK_COMPUTE] = "comp", [PK_DATA] = "data",
        [PK_COMM] = "comm", [PK_IO] = "io",        [PK_WAIT] = "wait",
    };
    return kind < PKI_KINDS ? names[kind] : "-";
}

/* ---- regions ---- */

static double all_self(const pki_region_row *regions, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)regions[i].self;
    return sum;
}

static void put_region(const pki_region_row *r, double all, bool steps, size_t name,
                       const pki_column *names, FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, r->name, name, names);
    fputc(' ', file);
    pki_put_left(file, short_kind(r->kind), 4);
    pki_report_cell(file, COUNT(r->time.count), 6);
    pki_report_cell(file, TIGHT(r->time.sum), 6);
    pki_report_cell(file, TIGHT((double)r->self), 6);
    pki_report_percent(file, all > 0 ? (double)r->self / all : 0);
    if (steps)
        pki_report_percent(file, r->step_share);
    pki_report_cell(file, TIGHT(r->time.p50), 6);
    pki_report_cell(file, TIGHT(r->time.p99), 6);
    pki_report_cell(file, TIGHT(r->time.max), 6);
    fputc('\n', file);
}

static void put_work(const pki_region_row *r, FILE *file)
{
    double seconds = r->time.sum / 1e9;
    if (!(r->bytes || r->flops) || !(seconds > 0))
        return;
    fputs("      ", file);
    if (r->bytes)
        fprintf(file, "%s at %s", pki_figure_scaled((double)r->bytes, "B").text,
                pki_figure_scaled((double)r->bytes / seconds, "B/s").text);
    if (r->flops)
        fprintf(file, "%s%s at %s", r->bytes ? "; " : "",
                pki_figure_scaled((double)r->flops, "FLOP").text,
                pki_figure_scaled((double)r->flops / seconds, "FLOP/s").text);
    fputc('\n', file);
}

static bool is_shown(const pki_region_row *r, const pki_report_options *options)
{
    return !pki_report_is_span_alone(r) && pki_report_shows(options, r->name);
}

/* Where not all calls have a time, and how much that leaves open. */
static void put_thinned(const pki_region_row *r, FILE *file)
{
    const pki_region_thinned *t = &r->thinned;
    uint64_t timed = r->time.count - PKI_MIN(t->untimed, r->time.count);
    if (t->untimed) {
        fprintf(file, "      1 of %s calls timed: total +- ",
                COUNT(timed ? (r->time.count + timed / 2) / timed : r->time.count));
        fprintf(file, "%s,",
                pki_figure_percent(
                    r->time.sum > 0 ? pki_thinned_sum_range(t, r->time.count) / r->time.sum : 0)
                    .text);
        fprintf(file, " p50 %s to", TIGHT(t->p50[0]));
        fprintf(file, " %s,", TIGHT(t->p50[1]));
        fprintf(file, " p99 %s to", TIGHT(t->p99[0]));
        fprintf(file, " %s\n", TIGHT(t->p99[1]));
    }
    if (t->untraced)
        fprintf(file, "      %s timed calls not in the trace\n", COUNT(t->untraced));
}

static size_t longest_name(const pki_region_row *regions, size_t count,
                           const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0, shown = 0; i < count && shown < options->top; i++)
        if (is_shown(&regions[i], options)) {
            longest = PKI_MAX(longest, pki_width(regions[i].name));
            shown++;
        }
    return longest;
}

/* Shares are of all regions, also of those that are not shown. */
static void put_regions(const pki_region_row *regions, size_t count,
                        const pki_report_options *options, bool steps, FILE *file)
{
    double all = all_self(regions, count);
    size_t usual = steps ? NAME - 6 : NAME, matching = 0;
    size_t name = pki_report_name_room(options, usual, longest_name(regions, count, options));
    fprintf(file, "  %-*s kind  calls  total   self self%%%s    p50    p99    max\n", (int)name,
            "region", steps ? " step%" : "");
    for (size_t i = 0; i < count; i++) {
        if (!is_shown(&regions[i], options) || matching++ >= options->top)
            continue;
        pki_column names = pki_report_region_names(regions, count, i);
        put_region(&regions[i], all, steps, name, &names, file);
        put_work(&regions[i], file);
        put_thinned(&regions[i], file);
    }
    if (matching > options->top)
        fprintf(file, "  ... and %zu more\n", matching - options->top);
    else if (matching == 0 && count > 0)
        fprintf(file, "  none of %zu regions matches the names asked for\n", count);
}

static void pki_report_regions(const pki_summary *summary, const pki_report_options *options,
                               FILE *file)
{
    size_t spans = 0;
    for (size_t i = 0; i < summary->region_count; i++)
        spans += pki_report_is_span_alone(&summary->regions[i]);
    if (summary->region_count == spans)
        return;
    pki_report_title(file, "REGIONS by self time, over all threads");
    put_regions(summary->regions, summary->region_count, options, summary->steps.broken_down > 0,
                file);
}

/* ---- threads ---- */

/* What most of its time in regions is. */
static void put_mostly(const pki_thread_row *thread, FILE *file)
{
    int most = 0;
    for (int k = 1; k < PKI_KINDS; k++)
        if (thread->kinds[k] > thread->kinds[most])
            most = k;
    double share = (double)thread->kinds[most] / (double)pki_thread_tracked(thread);
    fprintf(file, "  %s %s", pki_kind_names[most], pki_figure_percent(share).text);
}

static void put_thread(const pki_thread_row *thread, FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, thread->name && thread->name[0] ? thread->name : "(no name)", 23);
    fprintf(file, " %10" PRIu32 " ", thread->tid);
    pki_report_cell(file, COUNT(thread->recorded), 6);
    fputc(' ', file);
    pki_report_cell(file, COUNT(thread->dropped), 6);
    fputc(' ', file);
    pki_report_cell(file, TIGHT((double)pki_thread_tracked(thread)), 6);
    bool mostly = pki_thread_tracked(thread) > 0;
    fputs(thread->ended ? "  ended" : mostly ? "       " : "", file);
    if (mostly)
        put_mostly(thread, file);
    fputc('\n', file);
}

static size_t with_regions_shown(const pki_summary *summary)
{
    size_t count = 0;
    for (size_t i = 0; i < summary->thread_count; i++)
        count += summary->threads[i].region_count > 0;
    return count;
}

static void put_thread_regions(const pki_summary *summary, const pki_report_options *options,
                               FILE *file)
{
    for (size_t i = 0; i < summary->thread_count; i++) {
        const pki_thread_row *thread = &summary->threads[i];
        if (thread->region_count == 0)
            continue;
        const char *name = thread->name ? thread->name : "";
        fputs("\n  ", file);
        pki_put_left(file, name, PKI_MIN(pki_width(name), 60));
        fprintf(file, " (%" PRIu32 ")\n", thread->tid);
        put_regions(thread->regions, thread->region_count, options, false, file);
    }
}

static void pki_report_threads(const pki_summary *summary, const pki_report_options *options,
                               FILE *file)
{
    size_t count = summary->thread_count;
    if (count == 0)
        return;
    bool all = !options->no_threads && with_regions_shown(summary);
    size_t shown = all ? count : PKI_MIN(count, THREADS_MOST);
    pki_report_title(file, "THREADS");
    fputs("  thread                         tid regions dropped tracked         mostly\n", file);
    for (size_t i = 0; i < shown; i++)
        put_thread(&summary->threads[i], file);
    if (shown < count)
        fprintf(file, "  ... and %zu more\n", count - shown);
    if (all)
        put_thread_regions(summary, options, file);
}

/* ---- counters ---- */

static void put_value(FILE *file, double value)
{
    fputc(' ', file);
    pki_put_right(file, pki_figure_scaled(value, "").text, 7);
}

/* "gpu.memory (bytes)": the unit gets what the name leaves, half of the room at least. */
static void put_counter_name(const pki_counter_row *c, FILE *file)
{
    bool unit = c->unit && c->unit[0];
    size_t name = pki_width(c->name), rest = 0;
    if (unit) {
        rest =
            PKI_MIN(pki_width(c->unit), PKI_MAX(COUNTER / 2, COUNTER - PKI_MIN(name, COUNTER)) - 3);
        name = PKI_MIN(name, COUNTER - 3 - rest);
    }
    name = PKI_MIN(name, COUNTER);
    pki_put_left(file, c->name, name);
    if (unit) {
        fputs(" (", file);
        pki_put_left(file, c->unit, rest);
        fputc(')', file);
    }
    pki_put_times(file, ' ', COUNTER - name - (unit ? rest + 3 : 0));
}

static void put_counter(const pki_counter_row *c, FILE *file)
{
    const double values[] = {c->last,      c->value.min, c->value.p50,
                             c->value.p99, c->value.max, c->value.mean};
    fputs("  ", file);
    put_counter_name(c, file);
    pki_report_cell(file, COUNT(c->value.count), 6);
    for (size_t i = 0; i < PKI_COUNT_OF(values); i++)
        put_value(file, values[i]);
    fputc('\n', file);
}

static void pki_report_counters(const pki_summary *summary, FILE *file)
{
    if (summary->counter_count == 0)
        return;
    pki_report_title(file, "COUNTERS");
    fputs("  counter                points    last     min     p50     p99     max    mean\n",
          file);
    for (size_t i = 0; i < summary->counter_count; i++)
        put_counter(&summary->counters[i], file);
}

/* ---- what no region covers, by function ---- */

#define FUNCTION 50
#define FUNCTIONS_SHOWN 12
#define LEAST_SAMPLES 20 /* below it shares are chance */

/* What is known of it: its name, else its file and place. */
static const char *function_of(const char *name, const char *place)
{
    const char *file = strrchr(place, '/');
    return name[0] ? name : file ? file + 1 : place;
}

static void put_outside_row(const pki_outside_row *r, uint64_t all, FILE *file)
{
    char text[1200];
    const char *caller = function_of(r->caller, r->caller_place);
    snprintf(text, sizeof text, "%.500s%s%.500s", function_of(r->function, r->place),
             caller[0] ? " <- " : "", caller);
    fputs("  ", file);
    pki_put_left(file, text, FUNCTION);
    pki_report_cell(file, TIME((double)r->ns), 9);
    pki_report_percent(file, (double)r->ns / (double)all);
    fputc('\n', file);
}

static void put_outside(const pki_summary *summary, FILE *file)
{
    const pki_outside *o = &summary->outside;
    uint64_t samples = 0;
    for (size_t i = 0; i < o->count; i++)
        samples += o->rows[i].samples;
    if (samples < LEAST_SAMPLES)
        return;
    pki_report_title(file, "OUTSIDE REGIONS: %s of the sampled CPU time",
                     pki_figure_percent((double)o->outside / (double)o->sampled).text);
    fputs("  function <- who called it                               time     %\n", file);
    for (size_t i = 0; i < o->count && i < FUNCTIONS_SHOWN; i++)
        put_outside_row(&o->rows[i], o->sampled, file);
}

/* ---- text ---- */

static const char *or_unknown(const char *text, const char *unknown)
{
    return text && text[0] ? text : unknown;
}

/* "2026-11-20 11:22:33 UTC"; "" if unknown. */
static void date_of(char *out, size_t size, uint64_t unix_ns)
{
    time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm parts;
    out[0] = '\0';
    if (unix_ns && gmtime_r(&seconds, &parts))
        strftime(out, size, "%Y-%m-%d %H:%M:%S UTC", &parts);
}

static void put_head(const pki_summary *summary, FILE *file)
{
    const pki_run *run = &summary->run;
    bool live = !run->source || !run->source[0] || strcmp(run->source, "session") == 0;
    char date[40], rank[48] = "", pid[24] = "";
    date_of(date, sizeof date, run->start_unix);
    if (run->pid)
        snprintf(pid, sizeof pid, ", pid %" PRIu32, run->pid);
    if (run->world_size > 0)
        snprintf(rank, sizeof rank, ", rank %" PRId32 " of %" PRId32, run->rank, run->world_size);
    pki_report_heading(file, "perfkit %s report", or_unknown(run->version, ""));
    pki_report_print(file, "%s%s%s%s%s%s%s", or_unknown(run->program, "a program"), pid,
                     or_unknown(run->host, "")[0] ? " on " : "", or_unknown(run->host, ""), rank,
                     date[0] ? "; " : "", date);
    pki_report_print(file, "ran %s%s%s%s%s%s", TIME((double)run->wall), run->cpu ? " with " : "",
                     run->cpu ? TIME((double)run->cpu) : "", run->cpu ? " of CPU time" : "",
                     live ? "" : "; made from its ", live ? "" : run->source);
}

static void put_verdicts(const pki_summary *summary, FILE *file)
{
    static const char marks[] = {[PKI_GOOD] = '+', [PKI_NOTE] = '-', [PKI_WARN] = '!'};
    if (summary->verdict_count == 0)
        return;
    pki_report_title(file, "VERDICTS");
    for (size_t i = 0; i < summary->verdict_count; i++) {
        const pki_verdict *verdict = &summary->verdicts[i];
        pki_report_item(file, marks[verdict->severity], "%s: %s", verdict->name, verdict->text);
    }
}

static void put_clock(const pki_run *run, FILE *file)
{
    if (!run->clock || !run->clock[0])
        return;
    pki_report_print(file, "clock: %s at %s, in steps of %s; uncertain by %s, rate off by %s ppm",
                     run->clock, pki_figure_scaled(run->clock_hz, "Hz").text,
                     TIME(run->clock_step_ns), TIME(run->clock_uncertainty_ns),
                     pki_figure_scaled(run->clock_ppm, "").text);
    if (or_unknown(run->clock_reason, "")[0])
        pki_report_print(file,
                         strcmp(run->clock, "monotonic") == 0
                             ? "clock: the processor's counter, which is faster, is not used: %s "
                               "(PK_CLOCK can insist)"
                             : "clock: used as requested, although %s",
                         run->clock_reason);
}

/* `pk run --step WORD`, as a shell takes it. */
static void put_word(const char *word, FILE *file)
{
    fputs("    pk run --step '", file);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", file);
        else
            fputc((unsigned char)*word < ' ' ? '?' : *word, file);
    fputs("'\n", file);
}

static void put_found(const pki_found_steps *found, FILE *file)
{
    bool said = found->turns && found->step && *found->step;
    char mean[64] = ""; /* reports of before have none */
    if (found->turns && found->time)
        snprintf(mean, sizeof mean, " of %s on average",
                 TIME((double)found->time / (double)found->turns));
    if (found->turns)
        pki_report_print(file,
                         "steps: each begins with %s, which was found, not said: %s turns%s, %s %% "
                         "alike; %s were over before that was clear, and are no steps%s",
                         or_unknown(found->by, "?"), COUNT(found->turns), mean, COUNT(found->alike),
                         COUNT(found->before), said ? "; to say it:" : "");
    if (said) /* in one line, whatever its length: it is to be copied */
        put_word(found->step, file);
}

static void put_counts(const pk_counts *c, FILE *file)
{
    pki_report_print(file, "%s regions begun on %s thread%s under %s name%s, %s", COUNT(c->begun),
                     COUNT(c->threads), c->threads == 1 ? "" : "s", COUNT(c->regions),
                     c->regions == 1 ? "" : "s", c->dropped ? "not all recorded" : "none dropped");
    if (c->dropped || c->points_dropped || c->unwritten)
        pki_report_print(
            file, "lost: %s regions (%s nested too deep), %s points, %s unwritten events",
            COUNT(c->dropped), COUNT(c->too_deep), COUNT(c->points_dropped), COUNT(c->unwritten));
    if (c->not_finite)
        pki_report_print(file, "not finite: %s counter values, in no figure", COUNT(c->not_finite));
    if (c->unbalanced || c->stray_ends)
        pki_report_print(file, "unbalanced: %s closed by another's end, %s ends without a begin",
                         COUNT(c->unbalanced), COUNT(c->stray_ends));
}

static void put_overhead(const pki_summary *s, FILE *file)
{
    const pki_overhead *o = &s->overhead;
    if (!(o->total > 0))
        return;
    pki_report_print(file, "perfkit's own time: %s of the %s, %s in all: %s",
                     pki_figure_percent(o->share).text, s->run.cpu ? "process's CPU time" : "run",
                     TIME(o->total), pki_overhead_parts(o).text);
}

static void text_put_thinned(const pki_summary *s, FILE *file)
{
    const pki_thinned *t = &s->thinned;
    if (t->regions)
        pki_report_print(file,
                         "overhead_max %s: of %s region%s %s calls were counted and not timed (%s "
                         "each), %s timed ones are not in the trace",
                         pki_figure_percent(t->overhead_max).text, COUNT(t->regions),
                         t->regions == 1 ? "" : "s", COUNT(t->untimed),
                         TIME(s->overhead.counted_ns), COUNT(t->untraced));
    if (t->beyond)
        pki_report_print(file,
                         "overhead_max was not held: counting calls alone costs more than that");
}

static void pki_report_activities(const pki_activity_summary *a, FILE *file)
{
    if (a->count == 0)
        return;
    pki_report_print(file, "%s activit%s of devices and libraries%s", COUNT(a->count),
                     a->count == 1 ? "y" : "ies",
                     a->unwritten + a->late + a->unmeasured == 0 ? ""
                                                                 : ", not all in every figure");
    if (a->unwritten + a->late + a->unmeasured)
        pki_report_print(
            file,
            "%s of them not in the trace, %s reported too late for their step, %s without"
            " memory for all figures",
            COUNT(a->unwritten), COUNT(a->late), COUNT(a->unmeasured));
    if (a->overhead_count)
        pki_report_print(file, "CUPTI's overhead, by its own account: %s in %s pieces",
                         TIME((double)a->overhead), COUNT(a->overhead_count));
}

static void put_recording(const pki_summary *summary, FILE *file)
{
    pki_report_title(file, "RECORDING");
    put_found(&summary->found_steps, file);
    put_counts(&summary->counts, file);
    pki_report_activities(&summary->activities, file);
    put_overhead(summary, file);
    text_put_thinned(summary, file);
    put_clock(&summary->run, file);
    if (summary->run.trace_path && summary->run.trace_path[0])
        pki_report_print(file, "trace: %s (%s of events)", summary->run.trace_path,
                         pki_figure_scaled((double)summary->counts.trace_bytes, "B").text);
}

static void put_known(const char *what, const char *a, const char *between, const char *b,
                      FILE *file)
{
    bool first = a && a[0], second = b && b[0];
    if (first || second)
        pki_report_print(file, "%s: %s%s%s", what, first ? a : "", first && second ? between : "",
                         second ? b : "");
}

static void put_revision(const pki_environment *e, FILE *file)
{
    if (e->commit[0])
        pki_report_print(file, "working directory: commit %.12s%s%s", e->commit,
                         e->branch[0] ? " on " : "", e->branch);
}

static void put_environment(const pki_environment *e, FILE *file)
{
    if (!e->memory)
        return;
    pki_report_title(file, "MACHINE AND BUILD");
    pki_report_print(file, "%s%s%s processors, %s of memory; %s on %s",
                     or_unknown(e->cpu, "processor unknown"), ", ", COUNT(e->processors),
                     pki_figure_scaled((double)e->memory, "B").text, e->kernel, e->architecture);
    put_known("GPU", e->gpu, ", driver ", e->driver, file);
    put_known("command", e->command, "", NULL, file);
    put_known("program", e->program_compiler, ", build ID ", e->build_id, file);
    put_known("perfkit", e->compiler, "", NULL, file);
    put_revision(e, file);
}

static void put_backends(const pki_summary *summary, FILE *file)
{
    if (summary->backend_count == 0)
        return;
    pki_report_title(file, "BACKENDS");
    for (size_t i = 0; i < summary->backend_count; i++) {
        const pki_backend_row *backend = &summary->backends[i];
        const char *version = backend->version ? backend->version : "";
        const char *reason = backend->reason ? backend->reason : "";
        pki_report_print(file, "%s: %s%s%s%s%s", backend->name, backend->live ? "on" : "off",
                         version[0] ? " " : "", version, reason[0] ? ", " : "", reason);
    }
}

static void put_sections(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    put_head(summary, file);
    put_verdicts(summary, file);
    pki_report_steps(summary, file);
    pki_report_gpus(summary, options, file);
    pki_report_regions(summary, options, file);
    put_outside(summary, file);
    pki_report_roofline(summary, options, file);
    pki_report_costs(summary, file);
    pki_report_events(summary, file);
    pki_report_requests(summary, file);
    pki_report_spans(summary, options, file);
    pki_report_comm(summary, file);
    pki_report_memory(summary, options, file);
    pki_report_gpu_memory(summary, options, file);
    pki_report_counters(summary, file);
    pki_report_threads(summary, options, file);
    put_recording(summary, file);
    put_environment(&summary->environment, file);
    put_backends(summary, file);
}

int pki_report_text_with(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    pki_plain plain;
    if (!pki_plain_enter(&plain))
        return -ENOMEM;
    pki_report_options how = *options;
    how.top = how.top ? how.top : PKI_REPORT_TOP;
    errno = 0;
    pki_report_begin();
    put_sections(summary, &how, file);
    bool written = fflush(file) == 0 && !ferror(file);
    int error = errno ? errno : EIO;
    pki_plain_leave(&plain);
    return !written ? -error : !pki_report_is_whole() ? -ENOMEM : 0;
}

int pki_report_text(const pki_summary *summary, FILE *file)
{
    return pki_report_text_with(summary, &(pki_report_options){0}, file);
}
