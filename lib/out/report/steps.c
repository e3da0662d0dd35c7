/* lib/out/report/steps.c - of the text report: steps, spans, requests, memory */
#include <inttypes.h>
#include <string.h>

#include "out/columns.h"
#include "out/report/sections.h"

/* ---- pk_spans: how long they took, wherever they began and ended ---- */

#define NAME 23 /* columns of a span's name */

bool pki_report_is_span_alone(const pki_region_row *r)
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
    return pki_report_name_room(options, NAME, longest);
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

void pki_report_spans(const pki_summary *summary, const pki_report_options *options, FILE *file)
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

static void put_counts(const pki_request_summary *r, const pki_summary *s, FILE *file)
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

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static void put_part(const char *name, uint64_t all, uint64_t all_of, uint64_t slow,
                     uint64_t slow_of, FILE *file)
{
    char bar[BAR + 1];
    double of_slow = share(slow, slow_of);
    size_t n = (size_t)(of_slow * BAR + 0.5);
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < n ? '#' : ' ';
    bar[PKI_MIN(n, (size_t)BAR)] = '\0';
    fprintf(file, "  %-30s", name);
    pki_report_cell(file, pki_figure_percent(share(all, all_of)).text, 7);
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
                         pki_figure_percent(share(most.ns, s->parts.total)).text, most.text,
                         s->preemptions && most.ns != s->parts.preempted ? "; was preempted" : "");
    }
}

void pki_report_requests(const pki_summary *summary, FILE *file)
{
    const pki_request_summary *r = &summary->requests;
    if (!r->count)
        return;
    pki_report_title(file, "REQUESTS and what they waited for");
    put_counts(r, summary, file);
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

static void put_regions(const pki_memory_summary *m, const pki_report_options *options, FILE *file)
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

void pki_report_memory(const pki_summary *summary, const pki_report_options *options, FILE *file)
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
    put_regions(m, options, file);
}

/* ---- steps ---- */

#define STEPS_BAR 46 /* columns for a whole step */
#define SLOWEST_SHOWN 5
#define PART_NAME 24 /* columns of a name among the reasons */

static void put_rates(const pki_step_summary *steps, FILE *file)
{
    if (!(steps->steady.sum > 0))
        return;
    double per_second = (double)steps->steady.count / (steps->steady.sum / 1e9);
    fprintf(file, "  throughput   ");
    if (steps->items)
        fprintf(file, "%s items/s; ", pki_figure_scaled(steps->items_per_second, "").text);
    fprintf(file, "%s steps/s", pki_figure_scaled(per_second, "").text);
    double items = (double)steps->items / (double)steps->steady.count;
    if (steps->items)
        fprintf(file, "; %s item%s per step", pki_figure_scaled(items, "").text,
                steps->items == steps->steady.count ? "" : "s");
    fputc('\n', file);
}

/* What tensor cores and the others were active of the time, as devices count it: beside the share
 * of the peak, which says what was reached. */
static void put_active(const pki_load_summary *load, FILE *file)
{
    const pki_load_row *sm = NULL;
    for (size_t i = 0; i < load->row_count; i++) {
        const pki_load_row *row = &load->rows[i];
        if (*row->step_kind)
            continue;
        if (strcmp(row->metric, pki_load_names[PKI_LOAD_SM]) == 0)
            sm = row;
        if (strcmp(row->metric, pki_load_names[PKI_LOAD_TENSOR]) == 0)
            pki_report_print(
                file, "GPU %" PRIu32 ", by its counters: tensor cores active %s%s%s of the time.",
                row->device, pki_figure_percent(row->mean / 100).text,
                sm && sm->device == row->device ? ", SMs " : "",
                sm && sm->device == row->device ? pki_figure_percent(sm->mean / 100).text : "");
    }
}

/* Of the steps that have announced their operations; one line, and where its peak comes from. */
static void put_utilisation(const pki_utilisation *u, const pki_load_summary *load, FILE *file)
{
    if (!u->steps || !u->time)
        return;
    double seconds = (double)u->time / 1e9;
    fprintf(file, "  utilisation  ");
    if (u->model > 0)
        fprintf(file, "%s by the model", pki_figure_scaled(u->model / seconds, "flop/s").text);
    if (u->hardware > u->model)
        fprintf(file, "%s%s done", u->model > 0 ? ", " : "",
                pki_figure_scaled(u->hardware / seconds, "flop/s").text);
    fputc('\n', file);
    if (u->peak > 0 && u->hardware > u->model)
        pki_report_print(file, "MFU %s, HFU %s of %s%s%s: %s.", pki_figure_percent(u->mfu).text,
                         pki_figure_percent(u->hfu).text, pki_figure_scaled(u->peak, "flop/s").text,
                         u->precision && u->precision[0] ? " in " : "",
                         u->precision ? u->precision : "", u->source ? u->source : "");
    else if (u->peak > 0)
        pki_report_print(file, "MFU %s of %s%s%s: %s.", pki_figure_percent(u->mfu).text,
                         pki_figure_scaled(u->peak, "flop/s").text,
                         u->precision && u->precision[0] ? " in " : "",
                         u->precision ? u->precision : "", u->source ? u->source : "");
    else if (u->source)
        pki_report_print(file, "No MFU: %s.", u->source);
    put_active(load, file);
}

/* What is neither, it waited by itself. */
static void put_processor(const pki_processor *p, FILE *file)
{
    if (!p->observed)
        return;
    double all = (double)p->observed;
    fprintf(file, "  processor    had one for %s of the time; ready and without one for %s\n",
            pki_figure_percent((double)p->running / all).text,
            pki_figure_percent((double)p->ready / all).text);
}

static void put_durations(const pki_dist *dist, FILE *file)
{
    const double values[] = {dist->p50, dist->p90,  dist->p95,   dist->p99,
                             dist->max, dist->mean, dist->stddev};
    if (dist->count == 0)
        return;
    fputs("                    p50      p90      p95      p99      max     mean   stddev\n", file);
    fputs("  step time  ", file);
    for (size_t i = 0; i < PKI_COUNT_OF(values); i++) {
        fputc(' ', file);
        pki_put_right(file, TIME(values[i]), 8);
    }
    fputc('\n', file);
}

/* ---- where the time goes ---- */

static double total_of(const uint64_t *kinds)
{
    double total = 0;
    for (int k = 0; k < PKI_SHARES; k++)
        total += (double)kinds[k];
    return total;
}

static void put_share(const char *name, double share, double per_step, FILE *file)
{
    size_t length = PKI_MIN((size_t)(share * STEPS_BAR + 0.5), STEPS_BAR);
    fputs("  ", file);
    pki_put_left(file, name, 10);
    pki_put_right(file, pki_figure_percent(share).text, 8);
    fputs("  ", file);
    pki_put_times(file, '#', length);
    pki_put_times(file, ' ', STEPS_BAR - length);
    pki_put_right(file, TIME(per_step), 12);
    fputc('\n', file);
}

/* parts: so many of what is shown are in these sums. */
static void put_kinds(const uint64_t *kinds, uint64_t parts, FILE *file)
{
    /* In order of interest; untracked time last, as it is not a kind. */
    static const int order[] = {PK_DATA, PK_COMPUTE, PK_COMM,      PK_IO,
                                PK_WAIT, PK_OTHER,   PKI_UNTRACKED};
    double total = total_of(kinds);
    for (size_t i = 0; i < PKI_COUNT_OF(order); i++) {
        double time = (double)kinds[order[i]];
        if (time > 0)
            put_share(pki_kind_names[order[i]], time / total, time / (double)parts, file);
    }
}

static void put_shares(const pki_step_summary *steps, FILE *file)
{
    if (!(total_of(steps->kinds) > 0) || steps->broken_down == 0)
        return;
    fputs("\n  where a step's time goes, on the thread that calls pk_step            per step\n",
          file);
    put_kinds(steps->kinds, steps->broken_down, file);
}

/* ---- steps of other kinds, and what lies between steps ---- */

static void put_other(const char *name, const pki_step_kind_row *row, double wall, FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, name, 24);
    pki_put_right(file, COUNT(row->time.count), 8);
    pki_put_right(file, TIME(row->time.p50), 10);
    pki_put_right(file, TIME(row->time.max), 10);
    pki_put_right(file, TIME(row->time.sum), 10);
    pki_put_right(file, wall > 0 ? pki_figure_percent(row->time.sum / wall).text : "", 12);
    fputc('\n', file);
}

static void put_others(const pki_summary *summary, FILE *file)
{
    const pki_step_summary *steps = &summary->steps;
    double wall = (double)summary->run.wall;
    if (steps->step_kind_count == 0 && steps->between.time.count == 0)
        return;
    fputs("\n  in none of these figures   count       p50       max       sum      of run\n", file);
    for (size_t i = 0; i < steps->step_kind_count; i++)
        put_other(steps->step_kinds[i].name, &steps->step_kinds[i], wall, file);
    if (steps->between.time.count)
        put_other("between steps", &steps->between, wall, file);
}

static void put_whole_run(const pki_whole_run *whole, FILE *file)
{
    if (whole->time == 0)
        return;
    pki_report_title(file, "WHOLE RUN, without steps");
    char whose[64];
    snprintf(whose, sizeof whose, "  where the time of its %s thread goes",
             whole->busiest ? "busiest" : "main");
    fprintf(file, "%-78ssum\n", whose);
    put_kinds(whole->kinds, 1, file);
}

/* ---- the slowest ---- */

/* As many reasons as the rest of the line takes, at least one. */
static void steps_put_parts(const pki_step_row *step, size_t room, FILE *file)
{
    double biggest = step->part_count ? (double)step->parts->self - step->parts->usual : 0;
    for (size_t i = 0; i < step->part_count; i++) {
        const pki_step_part *part = &step->parts[i];
        double excess = (double)part->self - part->usual;
        pki_figure figure = pki_figure_time_tight(excess);
        size_t name = PKI_MIN(pki_width(part->name), PART_NAME);
        size_t width = 2 + name + 2 + strlen(figure.text);
        /* A tenth of the main reason is not one. */
        if (i && (width > room || excess < biggest / 10))
            break;
        fputs(i ? ", " : "  ", file);
        pki_put_left(file, part->name, name);
        fprintf(file, " +%s", figure.text);
        room -= PKI_MIN(width, room);
    }
}

static void steps_put_slowest(const pki_step_summary *steps, FILE *file)
{
    if (steps->slowest_count == 0)
        return;
    fputs("\n  slowest steps, and what took longer than its median\n", file);
    for (size_t i = 0; i < steps->slowest_count && i < SLOWEST_SHOWN; i++) {
        const pki_step_row *step = &steps->slowest[i];
        fputs("  step ", file);
        pki_put_left(file, COUNT(step->index), 7);
        pki_put_right(file, TIME((double)step->duration), 9);
        pki_put_right(file, pki_figure_ratio((double)step->duration / steps->steady.p50).text, 9);
        steps_put_parts(step, PKI_PAGE_WIDTH - 32, file);
        fputc('\n', file);
    }
}

static void put_warmup(const pki_step_summary *steps, FILE *file)
{
    if (steps->warmup == 0)
        return;
    fprintf(file, "  warm-up      %s", TIME(steps->warm.sum));
    if (steps->warmup > 1)
        fprintf(file, "; %s per step, at most %s", TIME(steps->warm.mean), TIME(steps->warm.max));
    fputs(steps->warmup_given ? "; its length was given\n" : "\n", file);
}

/* "600, the first of them warm-up" */
static void put_title(const pki_step_summary *steps, FILE *file)
{
    if (steps->warmup == 0)
        pki_report_title(file, "STEPS: %s", COUNT(steps->count));
    else if (steps->warmup == 1)
        pki_report_title(file, "STEPS: %s, the first of them warm-up", COUNT(steps->count));
    else
        pki_report_title(file, "STEPS: %s, the first %s of them warm-up", COUNT(steps->count),
                         COUNT(steps->warmup));
}

void pki_report_steps(const pki_summary *summary, FILE *file)
{
    const pki_step_summary *steps = &summary->steps;
    put_whole_run(&summary->whole_run, file);
    if (steps->count == 0 && steps->step_kind_count == 0)
        return;
    put_title(steps, file);
    put_durations(&steps->steady, file);
    put_rates(steps, file);
    put_utilisation(&steps->utilisation, &summary->gpu_load, file);
    put_processor(&steps->processor, file);
    put_warmup(steps, file);
    put_shares(steps, file);
    pki_report_chart(steps, file);
    steps_put_slowest(steps, file);
    put_others(summary, file);
}
