#include "job/verdicts/verdicts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"

/* ---- what sampled calls of a job counted, beside those of another one ---- */

static const pki_job_counted *find(const pki_job_counted *in, size_t count, const char *region)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(in[i].region, region) == 0)
            return &in[i];
    return NULL;
}

static void add(pki_against_events *to, const pki_job_counted *now, const pki_job_counted *before)
{
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (now->value[f] < 0 || before->value[f] < 0)
            continue;
        to->rows[to->count++] = (pki_against_event){
            .region = now->region,
            .figure = f,
            .before = before->value[f],
            .before_error = before->error[f],
            .now = now->value[f],
            .now_error = now->error[f],
            .differs = pki_event_figures_differ(now->value[f], now->error[f], before->value[f],
                                                before->error[f])};
    }
}

static bool find_events(pki_against_events *out, const pki_job *now, const pki_job *before)
{
    size_t count = 0, other_count = 0;
    pki_job_counted *all = pki_job_counted_of(now, &count),
                    *other = pki_job_counted_of(before, &other_count);
    out->rows = pki_array_zeroed(count * PKI_EVENT_FIGURES, sizeof *out->rows);
    bool ok = all && other && out->rows;
    for (size_t i = 0; ok && i < count; i++) {
        const pki_job_counted *was = find(other, other_count, all[i].region);
        if (was)
            add(out, &all[i], was);
    }
    free(all);
    free(other);
    return ok;
}

/* ---- a job beside another one, or a part of a run beside another part ---- */

/* ---- a figure of each block ---- */

typedef struct question {
    pki_against_sort sort;
    size_t stage, rank; /* places */
} question;

static double of_step(const pki_job *j, const pki_job_loop *loop, size_t block)
{
    double most = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        size_t cell = pki_job_cell(j, block, r);
        double time = loop->steps[cell] > 0 ? loop->time[cell] / loop->steps[cell] : 0;
        most = PKI_MAX(most, time);
    }
    return most;
}

static double of_stage(const pki_job *j, const pki_job_loop *loop, size_t block, size_t stage)
{
    double sum = 0, ranks = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        size_t cell = pki_job_cell(j, block, r);
        if (loop->steps[cell] > 0) {
            const double *row = pki_job_selves_row(loop, stage, r);
            sum += row ? row[block] / loop->steps[cell] : 0;
            ranks++;
        }
    }
    return ranks > 0 ? sum / ranks : 0;
}

static double of_rank(const pki_job *j, const pki_job_loop *loop, size_t block, size_t rank)
{
    size_t cell = pki_job_cell(j, block, rank);
    return loop->steps[cell] > 0 ? loop->own[cell] / loop->steps[cell] : 0;
}

static double value_of(const pki_job *j, const pki_job_loop *loop, size_t block, const question *q)
{
    return q->sort == PKI_AGAINST_STEP    ? of_step(j, loop, block)
           : q->sort == PKI_AGAINST_STAGE ? of_stage(j, loop, block, q->stage)
                                          : of_rank(j, loop, block, q->rank);
}

/* ---- batches ---- */

typedef struct batches {
    double *logs; /* the mean of each */
    size_t count;
    double mean; /* of the figure, over all blocks with one */
} batches;

/* At least as many as belong together, and no more than so many batches. 0 without memory. */
static size_t batch_length(const double *logs, size_t count)
{
    double *sorted = pki_array_zeroed(count, sizeof *sorted);
    if (!sorted)
        return 0;
    memcpy(sorted, logs, count * sizeof *sorted);
    pki_samples_sort(sorted, count);
    size_t length = pki_samples_block(logs, count, pki_samples_median(sorted, count));
    free(sorted);
    return PKI_MAX(PKI_MAX(length, 1), (count + PKI_AGAINST_PARTS - 1) / PKI_AGAINST_PARTS);
}

/* To be freed in any case. */
static bool find_batches(batches *out, const pki_job *j, const pki_job_loop *loop,
                         const question *q)
{
    size_t count = 0;
    *out = (batches){.logs = pki_array_zeroed(loop->block_count, sizeof *out->logs)};
    for (size_t b = 0; out->logs && b < loop->block_count; b++) {
        double value = value_of(j, loop, b, q);
        if (value <= 0)
            continue;
        out->logs[count++] = log(value);
        out->mean += value;
    }
    if (!count)
        return out->logs != NULL;
    out->mean /= (double)count;
    size_t length = batch_length(out->logs, count);
    for (; length && (out->count + 1) * length <= count; out->count++)
        out->logs[out->count] = pki_samples_mean(out->logs + out->count * length, length);
    return length > 0;
}

/* ---- rows ---- */

typedef struct comparing {
    pki_against *to;
    pki_evidence *evidence; /* of each row */
    size_t evidence_room;
    bool failed; /* without memory: no more is compared */
} comparing;

static const pki_job_loop *loop_named(const pki_job *j, const char *name)
{
    for (size_t i = 0; i < j->loop_count; i++)
        if (strcmp(j->loops[i].name, name) == 0)
            return &j->loops[i];
    return NULL;
}

static size_t stage_like(const pki_job *j, const char *name, const char *kind)
{
    size_t k = 0;
    while (k < j->stage_count && (strcmp(pki_kind_names[j->stages[k].kind], kind) != 0 ||
                                  strcmp(j->stages[k].name, name) != 0))
        k++;
    return k;
}

static size_t place_of_rank(const pki_job *j, int32_t rank)
{
    size_t i = 0;
    while (i < j->rank_count && j->ranks[i].rank != rank)
        i++;
    return i;
}

/* The logarithm of a row's mean in an earlier run; NAN if it is not there. */
static double log_before(const pki_against *a, const pki_job *j, const pki_against_row *row)
{
    const pki_job_loop *loop = loop_named(j, row->step_kind);
    double sum = 0, count = 0;
    question q = {.sort = row->sort};
    if (q.sort == PKI_AGAINST_STAGE)
        q.stage = stage_like(j, row->name, row->kind);
    else if (q.sort == PKI_AGAINST_RANK)
        q.rank = place_of_rank(j, row->rank);
    bool there =
        (q.sort != PKI_AGAINST_STAGE || q.stage < j->stage_count) &&
        (q.sort != PKI_AGAINST_RANK || (j->world == a->now->world && q.rank < j->rank_count));
    for (size_t b = 0; loop && there && b < loop->block_count; b++) {
        double value = value_of(j, loop, b, &q);
        sum += value;
        count += value > 0;
    }
    return sum > 0 ? log(sum / count) : NAN;
}

/* The new run beside what the earlier ones differ by; false: too few of them have the row. */
static bool beside_several(comparing *c, pki_against_row *row, double now, pki_run_difference *d)
{
    size_t count = 0;
    double *logs = pki_array_zeroed(c->to->runs, sizeof *logs), fresh = log(now);
    c->failed = !logs;
    for (size_t i = 0; logs && i < c->to->runs; i++) {
        logs[count] = log_before(c->to, &c->to->before[i], row);
        count += isnan(logs[count]) ? 0 : 1;
    }
    bool enough = count >= PKI_AGAINST_RUNS_LEAST;
    if (enough) {
        *d = pki_run_difference_of(logs, count, &fresh, 1, 0, 0, 0);
        d->allowance = PKI_MAX(c->to->without[0], c->to->without[1]);
        row->before = exp(pki_samples_mean(logs, count));
        row->spread = d->spread;
    }
    free(logs);
    return enough;
}

/* By how much the two may differ and be the same program. */
static double allowance_of(const pki_against *a, const pki_against_row *row, double of_step)
{
    double margin = log1p(a->margin), part = PKI_MIN(PKI_MAX(of_step, 1e-6), 1);
    return log1p((a->margin + PKI_AGAINST_RUNS) / part) - margin +
           PKI_MAX(a->without[0], a->without[1]) +
           (row->sort == PKI_AGAINST_RANK ? PKI_AGAINST_PLACES : 0);
}

/* of_step: its share of the step, in the run in which that is larger. */
static void add_row(comparing *c, const pki_against_row *row, const batches *before,
                    const batches *now, double of_step)
{
    pki_against *a = c->to;
    pki_against_row made = *row;
    pki_run_difference runs;
    made.before = before->mean;
    made.now = now->mean;
    made.spread = NAN;
    made.batches = PKI_MIN(before->count, now->count);
    if (a->runs > 1) {
        if (!beside_several(c, &made, now->mean, &runs))
            return;
    } else {
        runs = pki_run_difference_of(before->logs, before->count, now->logs, now->count, 0, 0, 0);
        runs.allowance = allowance_of(a, row, of_step);
    }
    c->failed = !pki_array_fit(&a->rows, &a->room, a->count + 1, sizeof *a->rows) ||
                !pki_array_fit(&c->evidence, &c->evidence_room, a->count + 1, sizeof *c->evidence);
    if (c->failed)
        return;
    c->evidence[a->count] =
        (pki_evidence){.method = PKI_BY_MOMENTS, .count = made.batches, .runs = runs};
    a->rows[a->count++] = made;
}

/* The mean of the job's step; above 0. */
static double step_of(const pki_job *j, const pki_job_loop *loop)
{
    double sum = 0;
    for (size_t b = 0; b < loop->block_count; b++)
        sum += of_step(j, loop, b);
    return PKI_MAX(sum / (double)PKI_MAX(loop->block_count, 1), 1e-9);
}

static void compare(comparing *c, pki_against_row row, const pki_job_loop *before,
                    const question *of_before, const pki_job_loop *now, const question *of_now)
{
    if (c->failed)
        return;
    batches old = {NULL, 0, 0}, new = {NULL, 0, 0};
    c->failed = !find_batches(&old, c->to->before, before, of_before) ||
                !find_batches(&new, c->to->now, now, of_now);
    row.sort = of_now->sort;
    double of_step =
        PKI_MAX(old.mean / step_of(c->to->before, before), new.mean / step_of(c->to->now, now));
    if (!c->failed && PKI_MIN(old.count, new.count) >= PKI_AGAINST_BATCHES_LEAST)
        add_row(c, &row, &old, &new, of_step);
    free(old.logs);
    free(new.logs);
}

static double share_of(const pki_job *j, const pki_job_loop *loop, size_t stage)
{
    const pki_job_selves *of = &loop->selves[stage];
    double self = 0, time = 0;
    for (size_t i = 0; i < loop->block_count * of->count; i++)
        self += of->rows[i];
    for (size_t i = 0; i < loop->block_count * j->rank_count; i++)
        time += loop->time[i];
    return time > 0 ? self / time : 0;
}

static void compare_stages(comparing *c, const pki_job_loop *before, const pki_job_loop *now)
{
    const pki_job *of = c->to->now;
    for (size_t k = 0; k < of->stage_count; k++) {
        size_t like =
            stage_like(c->to->before, of->stages[k].name, pki_kind_names[of->stages[k].kind]);
        if (like == c->to->before->stage_count || PKI_MAX(share_of(c->to->before, before, like),
                                                          share_of(of, now, k)) < PKI_AGAINST_LEAST)
            continue;
        compare(c,
                (pki_against_row){.name = of->stages[k].name,
                                  .step_kind = now->name,
                                  .kind = pki_kind_names[of->stages[k].kind],
                                  .rank = PKI_JOB_NO_RANK},
                before, &(question){PKI_AGAINST_STAGE, like, 0}, now,
                &(question){PKI_AGAINST_STAGE, k, 0});
    }
}

/* Both are in order. */
static void compare_ranks(comparing *c, const pki_job_loop *before, const pki_job_loop *now)
{
    const pki_job *a = c->to->before, *b = c->to->now;
    for (size_t i = 0, k = 0; a->world == b->world && i < a->rank_count && k < b->rank_count;) {
        int32_t x = a->ranks[i].rank, y = b->ranks[k].rank;
        if (x == y)
            compare(c,
                    (pki_against_row){
                        .name = "own time", .step_kind = now->name, .kind = "", .rank = y},
                    before, &(question){PKI_AGAINST_RANK, 0, i}, now,
                    &(question){PKI_AGAINST_RANK, 0, k});
        i += x <= y;
        k += y <= x;
    }
}

static void compare_loops(comparing *c)
{
    const pki_job *of = c->to->now;
    for (size_t i = 0; i < of->loop_count; i++) {
        const pki_job_loop *now = &of->loops[i], *before = loop_named(c->to->before, now->name);
        if (!before || !before->block_count || !now->block_count)
            continue;
        compare(c,
                (pki_against_row){
                    .name = "step", .step_kind = now->name, .kind = "", .rank = PKI_JOB_NO_RANK},
                before, &(question){PKI_AGAINST_STEP, 0, 0}, now,
                &(question){PKI_AGAINST_STEP, 0, 0});
        compare_stages(c, before, now);
        if (!*now->name)
            compare_ranks(c, before, now);
    }
}

static bool decide(comparing *c)
{
    pki_against *a = c->to;
    pki_decision *decisions = pki_array_zeroed(a->count, sizeof *decisions);
    bool ok =
        decisions && pki_decide(c->evidence, a->count, a->margin, PKI_AGAINST_LEVEL, decisions);
    for (size_t i = 0; ok && i < a->count; i++) {
        if (a->is_short)
            decisions[i].change = PKI_UNSURE;
        a->rows[i].decision = decisions[i];
        a->slower = a->slower || decisions[i].change == PKI_SLOWER;
    }
    free(decisions);
    return ok;
}

/* ---- other numbers of ranks ---- */

typedef struct pace {
    double step, items, ranks; /* ns of a step; items of one, of all ranks */
} pace;

static pace pace_of(const pki_job *j)
{
    const pki_job_loop *loop = pki_job_usual(j);
    pace p = {.ranks = (double)j->rank_count};
    for (size_t b = 0; loop && b < loop->block_count; b++) {
        double steps = 0, items = 0;
        for (size_t r = 0; r < j->rank_count; r++) {
            steps = PKI_MAX(steps, loop->steps[pki_job_cell(j, b, r)]);
            items += loop->items[pki_job_cell(j, b, r)];
        }
        p.step += of_step(j, loop, b);
        p.items += steps > 0 ? items / steps : 0;
    }
    if (loop) {
        p.step /= (double)loop->block_count;
        p.items /= (double)loop->block_count;
    }
    return p;
}

/* Of the two ways to scale the one that the items fit better: without any, that the job's work is
 * the same. */
static pki_against_scaling scaling_of(const pki_job *now, const pki_job *before)
{
    pace a = pace_of(before), b = pace_of(now);
    pki_against_scaling s = {.known = a.ranks != b.ranks && a.step > 0 && b.step > 0};
    if (!s.known)
        return s;
    bool items = a.items > 0 && b.items > 0;
    double all = items ? fabs(log(b.items / a.items)) : 0;
    double each = items ? fabs(log(b.items / b.ranks * a.ranks / a.items)) : 1;
    s.strong = all <= each;
    s.speedup = a.step / b.step * (items ? b.items / a.items : 1);
    s.efficiency = s.strong ? a.step * a.ranks / (b.step * b.ranks) : a.step / b.step;
    return s;
}

bool pki_job_against(pki_against *a, const pki_job *now, const pki_job *before, size_t runs,
                     double margin)
{
    *a = (pki_against){.now = now, .before = before, .runs = runs, .margin = margin};
    comparing c = {.to = a};
    for (size_t i = 0; i < runs; i++)
        a->without[0] = PKI_MAX(a->without[0], pki_job_crowd_most(&before[i]));
    a->without[1] = pki_job_crowd_most(now);
    a->is_short = PKI_MAX(a->without[0], a->without[1]) >= PKI_JOB_CROWDED_FROM;
    a->scaling = scaling_of(now, before);
    compare_loops(&c);
    bool ok = !c.failed && decide(&c) && find_events(&a->events, now, before);
    free(c.evidence);
    return ok;
}

void pki_against_finish(pki_against *a)
{
    free(a->rows);
    free(a->events.rows);
    *a = (pki_against){.now = NULL};
}
