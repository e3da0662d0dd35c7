/* lib/out/report/steps.c - of the text report: steps, spans, requests, memory */
#include <math.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "measure/figure.h"
#include "measure/overhead.h"
#include "measure/thinning.h"
#include "out/columns.h"
#include "out/json_write.h"
#include "out/report/sections.h"

/* ---- chart ---- */

#define COLUMNS 64
#define ROWS 5
#define ENTRIES_LEAST 16 /* fewer are clearer as figures */

/* So many steps side by side, as one column of the chart. */
typedef struct column {
    double mean, longest;
} column;

static column sum_up(const pki_series_row *rows, size_t count)
{
    column c = {0};
    double duration = 0, steps = 0;
    for (size_t i = 0; i < count; i++) {
        duration += (double)rows[i].duration;
        steps += (double)rows[i].steps;
        c.longest = PKI_MAX(c.longest, (double)rows[i].longest);
    }
    c.mean = steps > 0 ? duration / steps : 0;
    return c;
}

/* Entries that hold warm-up steps are left out whole. */
static size_t first_steady(const pki_step_summary *steps)
{
    uint64_t passed = 0;
    size_t first = 0;
    while (first < steps->series_count && passed < steps->warmup)
        passed += steps->series[first++].steps;
    return first;
}

static void put_row(const column *columns, size_t count, double floor, double row, FILE *file)
{
    fputc('|', file);
    char line[COLUMNS + 1];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        /* The middle of the row is what a mark has to reach. */
        double level = floor + row / 2;
        line[i] = columns[i].mean >= level ? '#' : columns[i].longest >= level ? '.' : ' ';
        if (line[i] != ' ')
            length = i + 1;
    }
    fwrite(line, 1, length, file);
    fputc('\n', file);
}

static void put_chart(const column *columns, size_t count, double top, FILE *file)
{
    for (int i = ROWS - 1; i >= 0; i--) {
        fputs("  ", file);
        pki_put_right(file, i == ROWS - 1 ? pki_figure_time(top).text : "", 10);
        fputc(' ', file);
        put_row(columns, count, top * i / ROWS, top / ROWS, file);
    }
    fputs("           0 +", file);
    pki_put_times(file, '-', count);
    fputc('\n', file);
}

static void pki_report_chart(const pki_step_summary *steps, FILE *file)
{
    size_t first = first_steady(steps), entries = steps->series_count - first;
    if (entries < ENTRIES_LEAST)
        return;
    column columns[COLUMNS];
    size_t count = PKI_MIN(entries, COLUMNS);
    double top = 0;
    for (size_t i = 0; i < count; i++) {
        size_t from = first + i * entries / count, to = first + (i + 1) * entries / count;
        columns[i] = sum_up(&steps->series[from], to - from);
        top = PKI_MAX(top, columns[i].longest);
    }
    if (!(top > 0))
        return;
    fputs("\n  step time over the run (# mean, . longest)\n", file);
    put_chart(columns, count, top, file);
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
