#include "out/columns.h"
#include "measure/thinned.h"
#include "measure/whole_run.h"
#include "out/report/sections.h"

#include <inttypes.h>

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

void pki_report_regions(const pki_summary *summary, const pki_report_options *options, FILE *file)
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

void pki_report_threads(const pki_summary *summary, const pki_report_options *options, FILE *file)
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

void pki_report_counters(const pki_summary *summary, FILE *file)
{
    if (summary->counter_count == 0)
        return;
    pki_report_title(file, "COUNTERS");
    fputs("  counter                points    last     min     p50     p99     max    mean\n",
          file);
    for (size_t i = 0; i < summary->counter_count; i++)
        put_counter(&summary->counters[i], file);
}
