#include "job/forms/forms.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "job/verdicts/verdicts.h"
#include "measure/figure.h"
#include "out/columns.h"
#include "out/json_write.h"

/* ---- what the ranks cost beside time ---- */

static const char *const keys[PKI_JOB_COSTS] = {
    "mfu",    "hfu",      "read",          "written",     "device_read", "device_written",
    "joules", "resident", "device_memory", "device_taken"};

/* ---- as text ---- */

static const char *shown(char *to, size_t size, int cost, double value)
{
    if (cost == PKI_JOB_MFU || cost == PKI_JOB_HFU)
        snprintf(to, size, "%s", pki_figure_percent(value).text);
    else
        snprintf(to, size, "%s", pki_figure_scaled(value, cost == PKI_JOB_JOULES ? "J" : "B").text);
    return to;
}

static void put_row(const char *name, const pki_job_costs *c, int cost, FILE *to)
{
    char text[64];
    const pki_job_spread *s = &c->by[cost];
    pki_job_text_left(to, name, 24);
    snprintf(text, sizeof text, "%zu", s->have);
    pki_put_cell(to, text, 6);
    pki_put_cell(to, shown(text, sizeof text, cost, c->sum[cost]), 9);
    pki_put_cell(to, shown(text, sizeof text, cost, s->min), 9);
    pki_put_cell(to, shown(text, sizeof text, cost, s->mean), 9);
    pki_put_cell(to, shown(text, sizeof text, cost, s->max), 9);
    pki_put_cell(to, pki_job_text_rank(text, s->max_rank), 4);
    pki_put_cell(to, pki_figure_percent(s->imbalance).text, 10);
    fputc('\n', to);
}

static bool is_any_measured(const pki_job_costs *c)
{
    for (int i = 0; i < PKI_JOB_COSTS; i++)
        if (c->by[i].have)
            return true;
    return false;
}

bool pki_job_costs_text(const pki_job *j, FILE *to)
{
    static const char *const names[PKI_JOB_COSTS] = {"MFU",
                                                     "HFU",
                                                     "read by calls",
                                                     "written by calls",
                                                     "read of devices",
                                                     "written for devices",
                                                     "energy",
                                                     "memory at most",
                                                     "device memory at most",
                                                     "... taken, with pools"};
    pki_job_costs c;
    if (!pki_job_costs_of(&c, j))
        return false;
    if (!is_any_measured(&c))
        return true;
    fputs("\nWhat it cost beside time (the job's; least, mean and most of a rank)\n", to);
    pki_job_text_left(to, "", 24);
    fputs("   ranks       job       min      mean       max  rank  imbalance\n", to);
    for (int i = 0; i < PKI_JOB_COSTS; i++)
        if (c.by[i].have)
            put_row(names[i], &c, i, to);
    return true;
}

/* ---- for machines ---- */

bool pki_job_costs_json(const pki_job *j, pki_json *to)
{
    pki_job_costs c;
    if (!pki_job_costs_of(&c, j))
        return false;
    if (!is_any_measured(&c))
        return true;
    pki_json_row(to);
    pki_json_open(to, "costs", '{');
    for (int i = 0; i < PKI_JOB_COSTS; i++) {
        if (!c.by[i].have)
            continue;
        pki_json_open(to, keys[i], '{');
        pki_json_real(to, "job", c.sum[i]);
        pki_job_json_spread(to, "by_rank", &c.by[i]);
        pki_json_close(to, '}');
    }
    pki_json_close(to, '}');
    return true;
}

void pki_job_costs_rank_json(const pki_job_rank *rank, pki_json *to)
{
    for (int i = 0; i < PKI_JOB_COSTS; i++)
        if (rank->spent.of[i] >= 0)
            pki_json_real(to, keys[i], rank->spent.of[i]);
}

/* ---- events of calls over the ranks ---- */

#define SHOWN 8
#define NAME 20
#define FIGURE 14

/* ---- as text ---- */

static void put_figure(const pki_job_counted *c, pki_event_figure figure, const char *region,
                       FILE *to)
{
    char rank[16];
    const pki_job_spread *by = &c->by[figure];
    double value = c->value[figure], error = c->error[figure];
    pki_job_text_left(to, region, NAME);
    pki_put_left(to, pki_event_figure_name(figure), FIGURE);
    pki_put_cell(to, pki_event_figure_shown(figure, value).text, 7);
    pki_put_cell(to, pki_event_error_shown(figure, value, error).text, 7);
    pki_put_cell(to, pki_event_figure_shown(figure, by->min).text, 7);
    pki_put_cell(to, pki_event_figure_shown(figure, by->max).text, 7);
    pki_put_cell(to, pki_job_text_rank(rank, by->max_rank), 4);
    fputc('\n', to);
}

static void put_region(const pki_job_counted *c, FILE *to)
{
    const char *region = c->region;
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (c->value[f] < 0)
            continue;
        put_figure(c, f, region, to);
        region = "";
    }
}

bool pki_job_counted_text(const pki_job *j, FILE *to)
{
    size_t count = 0;
    pki_job_counted *all = pki_job_counted_of(j, &count);
    if (count) {
        fputs("\nEvents a call, of sampled calls of all ranks (misses: in 1,000 instructions; +-:\n"
              "95 % of samples would be as near), and the least and the most of a rank\n",
              to);
        pki_job_text_left(to, "region", NAME);
        pki_put_left(to, "figure", FIGURE);
        fputs("   value       +-      min      max  rank\n", to);
    }
    for (size_t i = 0; i < PKI_MIN(count, SHOWN); i++)
        put_region(&all[i], to);
    if (count > SHOWN)
        fprintf(to, "  ... and %zu regions more (--json has all)\n", count - SHOWN);
    free(all);
    return all != NULL;
}

/* ---- for machines ---- */

static void put_known(pki_json *j, const char *key, double value)
{
    pki_json_real(j, key, value < 0 ? NAN : value);
}

static void put_json(const pki_job_counted *c, pki_json *to)
{
    pki_json_row(to);
    pki_json_open(to, NULL, '{');
    pki_json_text(to, "region", c->region);
    pki_json_uint(to, "calls", c->calls);
    pki_json_uint(to, "sampled", c->sampled);
    pki_json_real(to, "time", c->time);
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (c->value[f] < 0)
            continue;
        pki_json_open(to, pki_event_figure_key(f), '{');
        pki_json_real(to, "value", c->value[f]);
        put_known(to, "error", c->error[f]);
        pki_job_json_spread(to, "by_rank", &c->by[f]);
        pki_json_close(to, '}');
    }
    pki_json_close(to, '}');
}

bool pki_job_counted_json(const pki_job *j, size_t most, pki_json *to)
{
    size_t count = 0;
    pki_job_counted *all = pki_job_counted_of(j, &count);
    if (count) {
        pki_json_row(to);
        pki_json_open(to, "events", '[');
        for (size_t i = 0; i < PKI_MIN(count, most); i++)
            put_json(&all[i], to);
        pki_json_close(to, ']');
    }
    free(all);
    return all != NULL;
}

/* ---- goodput: the state files of the job's life, beside its ranks' files ---- */

#define TIME(ns) (pki_figure_time((double)(ns)).text)
#define SHARE(x) (pki_figure_percent(x).text)
#define COUNT(n) (pki_figure_count(n).text)

/* ---- for people ---- */

static const char *const life_shown[PKI_PARTS] = {
    [PKI_PART_PRODUCTIVE] = "productive steps",
    [PKI_PART_RECOMPUTED] = "recomputed steps",
    [PKI_PART_DATA] = "waiting for data",
    [PKI_PART_STARTUP] = "start-up",
    [PKI_PART_COMPILE] = "compilation",
    [PKI_PART_CHECKPOINT] = "saving checkpoints",
    [PKI_PART_RESTORE] = "loading checkpoints",
    [PKI_PART_EVALUATION] = "evaluation",
    [PKI_PART_HANG] = "hangs",
    [PKI_PART_UNFINISHED] = "steps that never ended",
    [PKI_PART_OTHER] = "other, between steps",
};

static void life_put_row(FILE *to, const char *name, uint64_t ns, uint64_t wall)
{
    if (!ns)
        return;
    fputs("  ", to);
    pki_put_left(to, name, 26);
    pki_put_cell(to, TIME(ns), 10);
    pki_put_cell(to, SHARE(wall ? (double)ns / (double)wall : 0), 9);
    fputc('\n', to);
}

static void put_table(const pki_life_sum *s, FILE *to)
{
    for (size_t i = 0; i < PKI_PARTS; i++)
        life_put_row(to, life_shown[i], s->parts[i], s->wall);
    life_put_row(to, "down, between runs", s->down, s->wall);
    life_put_row(to, "wall time", s->wall, s->wall);
}

/* What is known for sure, and what may be. */
static void put_range(uint64_t least, uint64_t more, FILE *to)
{
    fputs(COUNT(least), to);
    if (more)
        fprintf(to, " to %s", COUNT(least + more));
}

/* What was lost is again only if a run has come behind it. */
static void put_steps(const pki_job_life *l, FILE *to)
{
    const pki_life_sum *s = &l->sum;
    fputs("  ", to);
    put_range(s->steps, s->doubt_steps + (l->runs ? 0 : s->last_doubt_steps), to);
    fputs(" steps made", to);
    if (s->at_known && s->furthest >= 0) {
        fputs(", ", to);
        put_range(s->recomputed, s->doubt_steps, to);
        fprintf(to, " of them again; the training has come to step %s",
                COUNT((uint64_t)s->furthest));
    } else if (s->runs > 1)
        fputs(
            "; which of them again is not known, since no pk_training_set_step says where runs went on",
            to);
    fputc('\n', to);
}

static void put_saves(const pki_life_sum *s, FILE *to)
{
    if (!s->saves)
        return;
    fprintf(to, "  %s checkpoints, %s each, one every %s", COUNT(s->saves),
            TIME(s->save_ns / s->saves), TIME(s->wall / s->saves));
    if (s->save_bytes && s->save_ns)
        fprintf(to, ", %s at %s",
                pki_figure_scaled((double)s->save_bytes / (double)s->saves, "B").text,
                pki_figure_scaled((double)s->save_bytes * 1e9 / (double)s->save_ns, "B/s").text);
    if (s->saved >= 0)
        fprintf(to, "; the last one at step %s", COUNT((uint64_t)s->saved));
    fputc('\n', to);
}

static void put_doubts(const pki_job_life *l, FILE *to)
{
    const pki_life_sum *s = &l->sum;
    if (s->doubt)
        fprintf(
            to,
            "  up to %s of the down time may have been steps, about %s of them: what killed runs"
            " did after their last line\n",
            TIME(s->doubt), COUNT(s->doubt_steps));
    if (s->damaged)
        fprintf(to, "  %s lines are cut or damaged; the ones after them make up for it\n",
                COUNT(s->damaged));
    if (s->overlaps)
        fprintf(to,
                "  %s runs began before the one before them had ended, by %s in all: that time"
                " is in both\n",
                COUNT(s->overlaps), TIME(s->overlap));
    if (s->clock_set)
        fprintf(to, "  between %s runs the clock was set: that time is unknown, and left out\n",
                COUNT(s->clock_set));
}

static void put_life(const pki_job_life *l, FILE *to)
{
    const pki_life_sum *s = &l->sum;
    uint64_t killed = s->runs - s->ended - (l->runs && s->runs > s->ended);
    fputs("\nGoodput (", to);
    pki_put_text(to, l->path);
    if (s->rank)
        fprintf(to, ", rank %llu", (unsigned long long)s->rank);
    fprintf(to, ")\n  %s run%s: %s ended, %s killed%s\n", COUNT(s->runs), s->runs == 1 ? "" : "s",
            COUNT(s->ended), COUNT(killed), l->runs ? ", one running" : "");
    fprintf(to,
            "  goodput %s = productive / wall time; ETTR %s = (productive + waiting for data) /"
            " wall time\n",
            SHARE(s->goodput), SHARE(s->ettr));
    put_table(s, to);
    put_steps(l, to);
    put_saves(s, to);
    put_doubts(l, to);
}

void pki_job_lives_text(const pki_job *j, FILE *to)
{
    for (size_t i = 0; i < j->life_count; i++)
        put_life(&j->lives[i], to);
}

/* ---- for machines ---- */

static void put_parts(const pki_life_sum *s, pki_json *json)
{
    pki_json_open(json, "parts", '{');
    for (size_t i = 0; i < PKI_PARTS; i++)
        pki_json_uint(json, pki_part_names[i], s->parts[i]);
    pki_json_uint(json, "down", s->down);
    pki_json_close(json, '}');
}

static void life_put_json(const pki_job_life *l, pki_json *json)
{
    const pki_life_sum *s = &l->sum;
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "file", l->path);
    pki_json_uint(json, "rank", s->rank);
    pki_json_uint(json, "runs", s->runs);
    pki_json_uint(json, "ended", s->ended);
    pki_json_bool(json, "running", l->runs);
    pki_json_uint(json, "start_unix", s->first_unix);
    pki_json_uint(json, "wall", s->wall);
    pki_json_real(json, "goodput", s->goodput);
    pki_json_real(json, "ettr", s->ettr);
    put_parts(s, json);
    pki_json_uint(json, "doubt", s->doubt);
    pki_json_uint(json, "doubt_steps", s->doubt_steps);
    pki_json_uint(json, "last_doubt_steps", l->runs ? 0 : s->last_doubt_steps);
    pki_json_uint(json, "steps", s->steps);
    pki_json_uint(json, "recomputed", s->recomputed);
    pki_json_bool(json, "recomputed_known", s->at_known);
    if (s->furthest >= 0)
        pki_json_int(json, "furthest", s->furthest);
    pki_json_uint(json, "checkpoints", s->saves);
    pki_json_uint(json, "checkpoint_time", s->save_ns);
    pki_json_uint(json, "checkpoint_bytes", s->save_bytes);
    if (s->saved >= 0)
        pki_json_int(json, "checkpoint_step", s->saved);
    pki_json_uint(json, "damaged", s->damaged);
    pki_json_uint(json, "overlaps", s->overlaps);
    pki_json_uint(json, "overlap", s->overlap);
    pki_json_uint(json, "clock_back", s->clock_set);
    pki_json_close(json, '}');
}

void pki_job_lives_json(const pki_job *j, pki_json *json)
{
    if (!j->life_count)
        return;
    pki_json_row(json);
    pki_json_open(json, "goodput", '[');
    for (size_t i = 0; i < j->life_count; i++)
        life_put_json(&j->lives[i], json);
    pki_json_close(json, ']');
}

/* ---- alone ---- */

void pki_job_lives_alone(const pki_job *j, bool as_json, FILE *to)
{
    pki_json json = {.file = to, .rows = true};
    if (!as_json) {
        pki_job_lives_text(j, to);
        return;
    }
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "format", PKI_JOB_FORMAT);
    pki_json_uint(&json, "schema", PKI_JOB_SCHEMA);
    pki_job_lives_json(j, &json);
    pki_json_close(&json, '}');
    fputc('\n', to);
}

/* ---- events of calls of a job beside those of another one ---- */

#define AGAINST_EVENTS_SHOWN 20 /* rows */

static void put_value(double value, double error, pki_event_figure figure, FILE *to)
{
    pki_put_cell(to, pki_event_figure_shown(figure, value).text, 7);
    pki_put_cell(to, pki_event_error_shown(figure, value, error).text, 7);
}

static void against_events_put_row(const pki_against_event *e, const char *region, FILE *to)
{
    char change[32] = "-";
    if (e->differs && e->before > 0)
        snprintf(change, sizeof change, "%+.1f %%", fmin(100 * (e->now / e->before - 1), 99999));
    pki_job_text_left(to, region, NAME);
    pki_put_left(to, pki_event_figure_name(e->figure), FIGURE);
    put_value(e->before, e->before_error, e->figure, to);
    put_value(e->now, e->now_error, e->figure, to);
    pki_put_cell(to, change, 9);
    fputc('\n', to);
}

static void against_events_text(const pki_against_events *events, FILE *to)
{
    const char *last = "";
    if (!events->count)
        return;
    fputs("\n  Events a call (misses: in 1,000 instructions; a change is told where it is beyond\n"
          "  the errors of both samples)\n",
          to);
    pki_job_text_left(to, "region", NAME);
    pki_put_left(to, "figure", FIGURE);
    fputs("  before       +-      now       +-    change\n", to);
    for (size_t i = 0; i < PKI_MIN(events->count, AGAINST_EVENTS_SHOWN); i++) {
        const pki_against_event *e = &events->rows[i];
        against_events_put_row(e, strcmp(e->region, last) == 0 ? "" : e->region, to);
        last = e->region;
    }
    if (events->count > AGAINST_EVENTS_SHOWN)
        fprintf(to, "  ... and %zu more (--json has all)\n", events->count - AGAINST_EVENTS_SHOWN);
}

static void against_events_put_known(pki_json *j, const char *key, double value)
{
    pki_json_real(j, key, value < 0 ? NAN : value);
}

static void against_events_put_json(const pki_against_event *e, pki_json *j)
{
    const char *change = !e->differs ? "cannot tell" : e->now > e->before ? "more" : "less";
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "region", e->region);
    pki_json_text(j, "figure", pki_event_figure_key(e->figure));
    pki_json_real(j, "before", e->before);
    against_events_put_known(j, "before_error", e->before_error);
    pki_json_real(j, "now", e->now);
    against_events_put_known(j, "now_error", e->now_error);
    pki_json_text(j, "change", change);
    pki_json_close(j, '}');
}

static void against_events_json(const pki_against_events *events, size_t most, pki_json *j)
{
    if (!events->count)
        return;
    pki_json_open(j, "events", '[');
    for (size_t i = 0; i < PKI_MIN(events->count, most); i++)
        against_events_put_json(&events->rows[i], j);
    pki_json_close(j, ']');
}

/* ---- what became of a job, for people and machines ---- */

#define AGAINST_TIME(ns) (pki_figure_time_tight(ns).text)
#define RANKS_SHOWN 10

static const char *change_of(double ratio, char text[48])
{
    snprintf(text, 48, "%s%s", ratio < 1 ? "-" : "+", pki_figure_percent(fabs(ratio - 1)).text);
    return isfinite(ratio) ? text : "?";
}

void pki_against_interval_text(const pki_against_row *r, char text[100])
{
    char low[48], high[48];
    snprintf(text, 100, "%s..%s", change_of(r->decision.interval.low, low),
             change_of(r->decision.interval.high, high));
}

static void against_put_row(const pki_against_row *r, FILE *to)
{
    char name[80], interval[100], by[48];
    if (r->sort == PKI_AGAINST_RANK)
        snprintf(name, sizeof name, "rank %d", r->rank);
    else
        snprintf(name, sizeof name, "%s%s%.30s", r->name, *r->step_kind ? ", " : "", r->step_kind);
    fputs("  ", to);
    pki_put_left(to, name, 24);
    pki_put_cell(to, AGAINST_TIME(r->before), 8);
    pki_put_cell(to, AGAINST_TIME(r->now), 8);
    pki_put_cell(to, change_of(r->decision.ratio, by), 8);
    pki_against_interval_text(r, interval);
    fprintf(to, "  %s  %s\n", interval, pki_change_name(r->decision.change));
}

static bool is_shown(const pki_against_row *r, size_t most, size_t *ranks)
{
    bool changed = r->decision.change == PKI_SLOWER || r->decision.change == PKI_FASTER;
    return r->sort != PKI_AGAINST_RANK || (changed && (*ranks)++ < most);
}

static void put_scaling(const pki_against *a, FILE *to)
{
    const pki_against_scaling *s = &a->scaling;
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

void pki_against_put_rules(const pki_against *a, FILE *to)
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
    } else if (a->runs > 1) {
        snprintf(text, sizeof text,
                 "Slower is what is beyond +%s and beyond what the %zu earlier runs differ by among"
                 " themselves (their steps by %s: a standard deviation); the probability of one"
                 " wrong verdict is 5 %%.",
                 margin, a->runs, pki_figure_percent(a->count ? a->rows[0].spread : NAN).text);
    } else {
        snprintf(
            text, sizeof text,
            "Slower is what is beyond +%s, beyond chance, and beyond what two runs of one"
            " program may differ by (%s of a step, and the time without a processor); the"
            " probability of one wrong verdict is 5 %%. Two runs are two samples, and nothing in"
            " them tells a host that was slower for one of them: pk job --against takes %d"
            " earlier runs and more, and pk bench-ab repeats benchmarks.",
            margin, pki_figure_percent(PKI_AGAINST_RUNS).text, PKI_AGAINST_RUNS_LEAST);
    }
    fputs("  ", to);
    pki_put_paragraph(to, text, 2, 2);
}

void pki_against_text(const pki_against *a, const char *other, FILE *to)
{
    size_t ranks = 0;
    fputs("\nAgainst ", to);
    pki_put_text(to, other);
    if (a->runs > 1)
        fprintf(to, " and %zu more", a->runs - 1);
    fputs(", per step\n", to);
    pki_against_put_rules(a, to);
    fputs("  what                        before       now    change  interval\n", to);
    for (size_t i = 0; i < a->count; i++)
        if (is_shown(&a->rows[i], RANKS_SHOWN, &ranks))
            against_put_row(&a->rows[i], to);
    if (ranks > RANKS_SHOWN)
        fprintf(to, "  ... and %zu ranks more (--json has all)\n", ranks - RANKS_SHOWN);
    if (!a->count)
        fputs("  nothing to compare: no stage is in both, or there are too few steps\n", to);
    against_events_text(&a->events, to);
    put_scaling(a, to);
}

static void put_json_row(const pki_against_row *r, pki_json *j)
{
    static const char *const sorts[] = {"step", "stage", "rank"};
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "of", sorts[r->sort]);
    pki_json_text(j, "step_kind", r->step_kind);
    if (r->sort == PKI_AGAINST_RANK)
        pki_json_int(j, "rank", r->rank);
    if (r->sort == PKI_AGAINST_STAGE) {
        pki_json_text(j, "stage", r->name);
        pki_json_text(j, "kind", r->kind);
    }
    pki_json_real(j, "before", r->before);
    pki_json_real(j, "now", r->now);
    pki_json_real(j, "ratio", r->decision.ratio);
    pki_json_real(j, "ratio_low", r->decision.interval.low);
    pki_json_real(j, "ratio_high", r->decision.interval.high);
    pki_json_uint(j, "batches", r->batches);
    if (!isnan(r->spread))
        pki_json_real(j, "spread", r->spread);
    pki_json_text(j, "change", pki_change_name(r->decision.change));
    pki_json_close(j, '}');
}

void pki_against_json(const pki_against *a, const char *other, size_t most, pki_json *j)
{
    size_t ranks = 0;
    const pki_against_scaling *s = &a->scaling;
    pki_json_row(j);
    pki_json_open(j, "against", '{');
    pki_json_text(j, "path", other);
    pki_json_uint(j, "ranks", a->before->rank_count);
    pki_json_uint(j, "runs", a->runs);
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
