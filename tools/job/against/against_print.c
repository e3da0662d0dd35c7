/* tools/job/against/against_print.c - what became of a job, for people and machines. */
#include "job/against/against.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "measure/figure.h"
#include "out/columns.h"

#define TIME(ns) (pki_figure_time_tight(ns).text)
#define RANKS_SHOWN 10

static const char *change_of(double ratio, char text[48])
{
    snprintf(text, 48, "%s%s", ratio < 1 ? "-" : "+", pki_figure_percent(fabs(ratio - 1)).text);
    return isfinite(ratio) ? text : "?";
}

void against_interval_text(const against_row *r, char text[100])
{
    char low[48], high[48];
    snprintf(text, 100, "%s..%s", change_of(r->decision.interval.low, low),
             change_of(r->decision.interval.high, high));
}

static void put_row(const against_row *r, FILE *to)
{
    char name[80], interval[100], by[48];
    if (r->sort == AGAINST_RANK)
        snprintf(name, sizeof name, "rank %d", r->rank);
    else
        snprintf(name, sizeof name, "%s%s%.30s", r->name, *r->step_kind ? ", " : "", r->step_kind);
    fputs("  ", to);
    pki_put_left(to, name, 24);
    pki_put_cell(to, TIME(r->before), 8);
    pki_put_cell(to, TIME(r->now), 8);
    pki_put_cell(to, change_of(r->decision.ratio, by), 8);
    against_interval_text(r, interval);
    fprintf(to, "  %s  %s\n", interval, pki_change_name(r->decision.change));
}

static bool is_shown(const against_row *r, size_t most, size_t *ranks)
{
    bool changed = r->decision.change == PKI_SLOWER || r->decision.change == PKI_FASTER;
    return r->sort != AGAINST_RANK || (changed && (*ranks)++ < most);
}

static void put_scaling(const against *a, FILE *to)
{
    const against_scaling *s = &a->scaling;
    if (!s->known)
        return;
    fprintf(to, "\n  %zu ranks instead of %zu: ", a->now->rank_count, a->before->rank_count);
    fprintf(to, "%s times the work per second, ", pki_figure_scaled(s->speedup, "").text);
    fprintf(to, "%s scaling efficiency %s\n", s->strong ? "strong" : "weak",
            pki_figure_percent(s->efficiency).text);
    fputs(s->strong ? "  (T N before / T N now, for the same work of the job)\n"
                    : "  (T before / T now, for the same work of each rank)\n",
          to);
}

void against_put_rules(const against *a, FILE *to)
{
    char text[600], before[40], margin[40];
    snprintf(before, sizeof before, "%s", pki_figure_percent(a->without[0]).text);
    snprintf(margin, sizeof margin, "%s", pki_figure_percent(a->margin).text);
    if (a->is_short) {
        snprintf(text, sizeof text,
                 "! Processors were short: there was none for %s of the time in this run, and for"
                 " %s in the other. What differs may be that alone, so nothing is called slower or"
                 " faster.",
                 pki_figure_percent(a->without[1]).text, before);
    } else {
        snprintf(text, sizeof text,
                 "Slower is what is beyond +%s, beyond chance, and beyond what two runs of one"
                 " program may differ by (%s of a step, and the time without a processor); the"
                 " probability of one wrong verdict is 5 %%. Two runs are two samples: pk bench-ab"
                 " repeats them.",
                 margin, pki_figure_percent(AGAINST_RUNS).text);
    }
    fputs("  ", to);
    pki_put_paragraph(to, text, 2, 2);
}

void against_text(const against *a, const char *other, FILE *to)
{
    size_t ranks = 0;
    fputs("\nAgainst ", to);
    pki_put_text(to, other);
    fputs(", per step\n", to);
    against_put_rules(a, to);
    fputs("  what                        before       now    change  interval\n", to);
    for (size_t i = 0; i < a->count; i++)
        if (is_shown(&a->rows[i], RANKS_SHOWN, &ranks))
            put_row(&a->rows[i], to);
    if (ranks > RANKS_SHOWN)
        fprintf(to, "  ... and %zu ranks more (--json has all)\n", ranks - RANKS_SHOWN);
    if (!a->count)
        fputs("  nothing to compare: no stage is in both, or there are too few steps\n", to);
    against_events_text(&a->events, to);
    put_scaling(a, to);
}

static void put_json_row(const against_row *r, pki_json *j)
{
    static const char *const sorts[] = {"step", "stage", "rank"};
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "of", sorts[r->sort]);
    pki_json_text(j, "step_kind", r->step_kind);
    if (r->sort == AGAINST_RANK)
        pki_json_int(j, "rank", r->rank);
    if (r->sort == AGAINST_STAGE) {
        pki_json_text(j, "stage", r->name);
        pki_json_text(j, "kind", r->kind);
    }
    pki_json_real(j, "before", r->before);
    pki_json_real(j, "now", r->now);
    pki_json_real(j, "ratio", r->decision.ratio);
    pki_json_real(j, "ratio_low", r->decision.interval.low);
    pki_json_real(j, "ratio_high", r->decision.interval.high);
    pki_json_uint(j, "batches", r->batches);
    pki_json_text(j, "change", pki_change_name(r->decision.change));
    pki_json_close(j, '}');
}

void against_json(const against *a, const char *other, size_t most, pki_json *j)
{
    size_t ranks = 0;
    const against_scaling *s = &a->scaling;
    pki_json_row(j);
    pki_json_open(j, "against", '{');
    pki_json_text(j, "path", other);
    pki_json_uint(j, "ranks", a->before->rank_count);
    pki_json_real(j, "margin", a->margin);
    pki_json_bool(j, "slower", a->slower);
    pki_json_bool(j, "short", a->is_short);
    pki_json_real(j, "without_processor", a->without[1]);
    pki_json_real(j, "without_processor_before", a->without[0]);
    if (s->known) {
        pki_json_open(j, "scaling", '{');
        pki_json_text(j, "sort", s->strong ? "strong" : "weak");
        pki_json_real(j, "efficiency", s->efficiency);
        pki_json_real(j, "speedup", s->speedup);
        pki_json_close(j, '}');
    }
    pki_json_open(j, "rows", '[');
    for (size_t i = 0; i < a->count; i++)
        if (most == SIZE_MAX || is_shown(&a->rows[i], most, &ranks))
            put_json_row(&a->rows[i], j);
    pki_json_close(j, ']');
    against_events_json(&a->events, most, j);
    pki_json_close(j, '}');
}
