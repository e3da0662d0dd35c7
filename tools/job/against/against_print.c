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

static void put_row(const against_row *r, FILE *to)
{
    char name[80], low[48], high[48], by[48];
    if (r->sort == AGAINST_RANK)
        snprintf(name, sizeof name, "rank %d", r->rank);
    else
        snprintf(name, sizeof name, "%s%s%.30s", r->name, *r->step_kind ? ", " : "", r->step_kind);
    fputs("  ", to);
    pki_put_left(to, name, 24);
    pki_put_cell(to, TIME(r->before), 8);
    pki_put_cell(to, TIME(r->now), 8);
    pki_put_cell(to, change_of(r->decision.ratio, by), 8);
    fprintf(to, "  %s..%s", change_of(r->decision.interval.low, low),
            change_of(r->decision.interval.high, high));
    fprintf(to, "  %s\n", pki_change_name(r->decision.change));
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

void against_text(const against *a, const char *other, FILE *to)
{
    size_t ranks = 0;
    fputs("\nAgainst ", to);
    pki_put_text(to, other);
    fprintf(to, ", per step (slower: beyond +%s, probability of one wrong verdict 5 %%)\n",
            pki_figure_percent(a->margin).text);
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
