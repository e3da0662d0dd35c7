/* lib/job/verdicts/stretches.c - ranks that are late in a part of the run: since a step, for some
 * steps, now and then, or once */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/evidence.h"
#include "bench/stats/samples.h"
#include "job/verdicts/verdicts.h"
#include "stats/series.h"

#define SPELL_BLOCKS 16 /* of a rank, for any judgement */
#define SPELL_RANKS 16  /* for a distribution over the ranks */
#define UPPER_RANKS 64  /* ...and for its upper part */
#define LONG_ARC 7   /* blocks of a stretch, and of the rest, where tails are not heavy any more */
#define SHORT_ARC 2  /* ...and else */
#define STOPS_MOST 3 /* of a rank, and ranks: what is more is now and then */
#define READY_MOST 1.5 /* it is known within that */
#define OF_FEW 3.0     /* times what the rank in the middle has, where there are too few */
#define SHORT_OF_FEW 5.0
#define CROWDED 2.0 /* ...where they share processors */
#define STOP_OF_MANY 30.0
#define STOP_OF_FEW 15.0
#define WARM_PART 10      /* what is over by a tenth of the run is warm-up */
#define CLIPPED 8.0       /* deviations from a rank's middle, or... */
#define CLIPPED_LEAST 0.5 /* ...that */
#define NOW_LEVEL 0.00005 /* how often somebody may be late now by chance: of verdicts */
#define HITS_LEAST 4      /* blocks, to be late now and then */
#define OTHER_WORK 0.01   /* of the time of a rank in a stage, the others': not the same work */

enum look { LONG_STRETCH, SHORT_STRETCH, SPORADIC, STOP, LOOKS };

/* A stretch of a course. */
typedef struct arc {
    size_t begin, end;
    double z;
} arc;

/* How late a rank is, block by block. */
typedef struct course {
    size_t rank, count;
    size_t *at;            /* which block */
    double *late;          /* beyond the others, a logarithm */
    double *clipped;       /* the same, as far as noise goes */
    double *smooth;        /* ...without what is in one block or two alone */
    double *excess;        /* ns beyond the rank's usual */
    double middle, better; /* median and lower quartile */
    double step;           /* ns of own time of a usual step */
    size_t stop_count;
    size_t stops[STOPS_MOST]; /* taken off */
} course;

typedef struct looking {
    const pki_job *of;
    const pki_job_loop *loop;
    const pki_job_field *field;
    double *other; /* [rank * blocks + block]: ns of work that it alone has; NULL: nobody has */
    double scale;  /* of a block's noise, of the rank in the middle */
    double *found[LOOKS]; /* by rank; NAN: nothing */
    double *middle;       /* the same, of its course */
    double beyond[LOOKS]; /* what chance does not reach */
    double *room;
    course c;
    pki_job_spells *to;
} looking;

/* ---- work that a rank alone has ---- */

static double sum_of(const double *row, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += row[i];
    return sum;
}

static double median_of_role(looking *l, const double *sums, uint32_t role, size_t *members)
{
    size_t count = 0;
    for (size_t r = 0; r < l->field->units; r++)
        if (l->field->roles[r] == role)
            l->room[count++] = sums[r];
    *members = count;
    return count ? pki_samples_select_median(l->room, count) : 0;
}

static bool add_other(looking *l, size_t rank, const double *row)
{
    size_t blocks = l->loop->block_count;
    if (!l->other && !(l->other = pki_array_zeroed(l->field->units * blocks, sizeof *l->other)))
        return false;
    for (size_t b = 0; b < blocks; b++)
        l->other[rank * blocks + b] += row[b];
    return true;
}

/* sums: room for one of each rank. */
static bool look_at_stage(looking *l, size_t stage, double *sums)
{
    const pki_job_selves *of = &l->loop->selves[stage];
    size_t blocks = l->loop->block_count, members = 0;
    memset(sums, 0, l->field->units * sizeof *sums);
    for (size_t i = 0; i < of->count; i++)
        sums[of->ranks[i]] = sum_of(of->rows + i * blocks, blocks);
    for (uint32_t k = 0; k < l->field->role_count; k++) {
        double usual = median_of_role(l, sums, k, &members);
        for (size_t i = 0; members > 2 && i < of->count; i++) {
            size_t r = of->ranks[i];
            if (l->field->roles[r] == k && usual < OTHER_WORK * sums[r] &&
                !add_other(l, r, of->rows + i * blocks))
                return false;
        }
    }
    return true;
}

static bool find_other_work(looking *l)
{
    double *sums = pki_array_zeroed(l->field->units, sizeof *sums);
    bool done = sums != NULL;
    for (size_t k = 0; done && k + 1 < l->of->stage_count; k++)
        if (!l->of->stages[k].waits)
            done = look_at_stage(l, k, sums);
    free(sums);
    return done;
}

/* ---- the course of a rank ---- */

static double own_of(const looking *l, size_t block, size_t rank)
{
    size_t cell = pki_job_cell(l->of, block, rank);
    return l->loop->own[cell] - l->loop->ready[cell];
}

static void add_block(looking *l, course *c, size_t block, double late)
{
    double own = own_of(l, block, c->rank);
    double other = l->other ? l->other[c->rank * l->loop->block_count + block] : 0;
    if (other > 0)
        late += log1p(-PKI_MIN(other / own, 0.999));
    if (!pki_job_has_run_delay(&l->of->ranks[c->rank])) /* that comes later */
        late -= log1p(-l->loop->maybe[pki_job_cell(l->of, block, c->rank)] / own);
    c->at[c->count] = block;
    c->excess[c->count] = own - other; /* so far */
    c->late[c->count++] = late;
}

static double steps_of(const looking *l, const course *c, size_t i)
{
    return l->loop->steps[pki_job_cell(l->of, c->at[i], c->rank)];
}

/* The last block may be the beginning of one. */
static void leave_last(const looking *l, course *c)
{
    if (c->count > 1 && 2 * steps_of(l, c, c->count - 1) < steps_of(l, c, c->count - 2))
        c->count--;
}

static void find_middle(looking *l, course *c)
{
    memcpy(l->room, c->late, c->count * sizeof *c->late);
    c->middle = pki_samples_select_median(l->room, c->count);
    pki_select(l->room, c->count, c->count / 4);
    c->better = l->room[c->count / 4];
}

static void find_excess(looking *l, course *c)
{
    double usual = 0, steps = 0;
    for (size_t i = 0; i < c->count; i++) {
        double own = c->excess[i];
        c->excess[i] = own * -expm1(c->middle - c->late[i]);
        usual += own - c->excess[i];
        steps += steps_of(l, c, i);
    }
    c->step = steps > 0 ? usual / steps : 0;
}

/* Neighbours are nothing like it. */
static bool is_alone(const course *c, size_t i)
{
    double before = i ? c->excess[i - 1] : 0, behind = i + 1 < c->count ? c->excess[i + 1] : 0;
    return PKI_MAX(before, behind) < c->excess[i] / 4;
}

/* Blocks with a step that took twice as long or more: if they are few they are stops, and no part
 * of what else is looked for. */
static void take_stops(course *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!(c->excess[i] >= c->step) || !is_alone(c, i))
            continue;
        if (count < STOPS_MOST)
            c->stops[count] = i;
        count++;
    }
    c->stop_count = count <= STOPS_MOST ? count : 0;
    for (size_t i = 0; i < c->stop_count; i++)
        c->late[c->stops[i]] = c->middle;
}

static void clip(const looking *l, course *c)
{
    double most = PKI_MAX(CLIPPED * l->scale, CLIPPED_LEAST);
    for (size_t i = 0; i < c->count; i++)
        c->clipped[i] = PKI_MAX(PKI_MIN(c->late[i], c->middle + most), c->middle - most);
}

/* Running medians keep edges and have no heavy tails (Tukey: Exploratory Data Analysis, ch. 7).
 * width: odd; at the ends they are those of the nearest place that has so many neighbours. */
static void smooth(course *c, size_t width)
{
    double near[5];
    for (size_t i = 0; i < c->count; i++) {
        size_t at = PKI_MIN(PKI_MAX(i, width / 2), c->count - 1 - width / 2);
        memcpy(near, c->clipped + at - width / 2, width * sizeof *near);
        c->smooth[i] = pki_samples_select_median(near, width);
    }
}

/* False: there is nothing to be looked at. */
static bool follow(looking *l, size_t rank)
{
    const pki_job_field *f = l->field;
    course *c = &l->c;
    size_t k = 0;
    c->rank = rank;
    c->count = c->stop_count = 0;
    for (size_t b = 0; b < f->blocks; b++)
        if (!isnan(f->low[b * f->units + rank]))
            add_block(l, c, b, f->late[PKI_JOB_IN_THE_MIDDLE][rank * f->blocks + k++]);
    leave_last(l, c);
    if (c->count < SPELL_BLOCKS)
        return false;
    find_middle(l, c);
    find_excess(l, c);
    take_stops(c);
    clip(l, c);
    return true;
}

/* ---- the best stretch ---- */

/* z of a stretch of a course whose mean is 0: sum in it, for its length. */
static arc best_arc(const looking *l, course *c, size_t least, size_t most)
{
    smooth(c, least < LONG_ARC ? 3 : 5);
    double *sums = l->room, mean = pki_samples_mean(c->smooth, c->count);
    size_t n = c->count, warm = n / WARM_PART + 1; /* where it may end first */
    arc best = {0, 0, 0};
    sums[0] = 0;
    for (size_t i = 0; i < n; i++)
        sums[i + 1] = sums[i] + c->smooth[i] - mean;
    for (size_t length = least; length <= PKI_MIN(most, n - LONG_ARC); length++) {
        double scale = sqrt((double)n / ((double)length * (double)(n - length)));
        for (size_t i = warm > length ? warm - length : 0; i + length <= n; i++) {
            double z = (sums[i + length] - sums[i]) * scale;
            if (z > best.z)
                best = (arc){i, i + length, z};
        }
    }
    return best;
}

/* ---- now and then ---- */

static double sporadic(const course *c)
{
    double sum = 0, most = -INFINITY, second = -INFINITY;
    for (size_t i = 0; i < c->count; i++) {
        double more = expm1(c->clipped[i] - c->better);
        second = PKI_MAX(second, PKI_MIN(more, most));
        most = PKI_MAX(more, most);
        sum += more;
    }
    return (sum - most - second) / (double)(c->count - 2);
}

/* ---- what chance does among the ranks ---- */

static void look(looking *l, size_t rank)
{
    course *c = &l->c;
    for (int k = 0; k < LOOKS; k++)
        l->found[k][rank] = NAN;
    l->middle[rank] = NAN;
    if (!follow(l, rank))
        return;
    l->middle[rank] = c->middle;
    double most = 0;
    for (size_t i = 0; i < c->count; i++)
        most = PKI_MAX(most, c->excess[i]);
    l->found[STOP][rank] = c->step > 0 ? most / c->step : 0;
    l->found[LONG_STRETCH][rank] = best_arc(l, c, LONG_ARC, c->count).z;
    l->found[SHORT_STRETCH][rank] = best_arc(l, c, SHORT_ARC, LONG_ARC - 1).z;
    l->found[SPORADIC][rank] = sporadic(c);
}

/* Gumbel's distribution through two quantiles, p of them below; what chance is beyond in no rank.
 * The scale is as uncertain as ranks are few. */
static double beyond_by(const double *sorted, size_t count, double low, double high)
{
    double at = -log(-log(low)), to = -log(-log(high)), from;
    from = pki_samples_quantile(sorted, count, low);
    double scale = (pki_samples_quantile(sorted, count, high) - from) / (to - at);
    scale *= 1 + 2 / sqrt((double)count);
    return from + scale * (log((double)count * LOOKS / PKI_JOB_SPELL_LEVEL) - at);
}

/* Tails that are heavier than in the middle show further up: not of short stretches, for whose
 * tails there are too few ranks, but as many blocks as is_chance needs. */
static double beyond(const double *sorted, size_t count)
{
    double middle = beyond_by(sorted, count, 0.25, 0.75);
    return count < UPPER_RANKS ? middle : PKI_MAX(middle, beyond_by(sorted, count, 0.75, 0.90));
}

/* Of single steps, which are of two sorts, with and without a hiccup: many times what the rank has
 * that comes next to those that may have been stopped. Were tails as heavy as those of Pareto's
 * distribution with an index of 2, chance would do so in one of 300 jobs. */
static double beyond_stops(const double *sorted, size_t count)
{
    return count < SPELL_RANKS ? STOP_OF_FEW * pki_samples_median(sorted, count)
                               : STOP_OF_MANY * sorted[count - STOPS_MOST - 1];
}

static double find_beyond(looking *l, int which)
{
    bool heavy = which == SHORT_STRETCH;
    size_t count = 0;
    for (size_t r = 0; r < l->field->units; r++) {
        double found = l->found[which][r];
        if (!isnan(found))
            l->room[count++] = heavy ? log(PKI_MAX(found, 1e-6)) : found;
    }
    pki_samples_sort(l->room, count);
    if (!count)
        return INFINITY;
    if (which == STOP)
        return beyond_stops(l->room, count);
    double middle = pki_samples_median(l->room, count), crowded = l->field->shared ? CROWDED : 1;
    if (count < SPELL_RANKS)
        return crowded * (heavy ? SHORT_OF_FEW * exp(middle) : OF_FEW * middle);
    return heavy ? exp(beyond_by(l->room, count, 0.25, 0.75)) : beyond(l->room, count);
}

static void find_scale(looking *l)
{
    double *all = l->found[0];
    size_t count = 0;
    for (size_t r = 0; r < l->field->units; r++) {
        course *c = &l->c;
        if (!follow(l, r))
            continue;
        for (size_t i = 0; i < c->count; i++)
            l->room[i] = 1.4826 * fabs(c->late[i] - c->middle);
        all[count++] = pki_samples_select_median(l->room, c->count);
    }
    l->scale = count ? pki_samples_select_median(all, count) : 0;
}

/* ---- judgement of a rank that stands out ---- */

static double limit_of(const looking *l)
{
    return log1p(l->field->least);
}

static bool add(looking *l, pki_job_spell spell)
{
    pki_job_spells *to = l->to;
    if (!pki_array_fit(&to->all, &to->room, to->count + 1, sizeof *to->all))
        return false;
    to->all[to->count++] = spell;
    return true;
}

/* ns that it took longer. Where nobody tells when a rank had no processor, that may have been all
 * of the time that it had none. */
static bool is_worth_while(const looking *l, double ns)
{
    const pki_job_rank *rank = &l->of->ranks[l->c.rank];
    double time = 0;
    for (size_t b = 0; b < l->loop->block_count; b++)
        time += l->loop->time[pki_job_cell(l->of, b, l->c.rank)];
    if (!pki_job_has_run_delay(rank))
        ns -= READY_MOST * pki_job_crowd_share(&rank->processor) * time;
    return ns >= PKI_JOB_SPELL_WORTH * time;
}

/* The median of a part of the course, or (rest) of all but that. */
static double median_of(looking *l, size_t begin, size_t end, bool rest)
{
    const course *c = &l->c;
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++)
        if ((i >= begin && i < end) != rest)
            l->room[count++] = c->late[i];
    return pki_samples_select_median(l->room, count);
}

/* What is left of each block by a step at the arc's ends. Their squares. */
static double leave_step(const course *c, const arc *a, double *left)
{
    double in = 0, all = 0, squares = 0, length = (double)(a->end - a->begin);
    for (size_t i = 0; i < c->count; i++) {
        all += c->smooth[i];
        in += i >= a->begin && i < a->end ? c->smooth[i] : 0;
    }
    double out = (all - in) / ((double)c->count - length);
    for (size_t i = 0; i < c->count; i++) {
        left[i] = c->smooth[i] - (i >= a->begin && i < a->end ? in / length : out);
        squares += left[i] * left[i];
    }
    return squares;
}

/* ...by a line, which has as many parameters as an arc to the end. at_end: where it is then. */
static double leave_line(const course *c, double *left, double *at_end)
{
    double n = (double)c->count, middle = (n - 1) / 2, mean = pki_samples_mean(c->smooth, c->count);
    double slope = 0, squares = 0;
    for (size_t i = 0; i < c->count; i++)
        slope += ((double)i - middle) * (c->smooth[i] - mean);
    slope /= n * (n * n - 1) / 12;
    for (size_t i = 0; i < c->count; i++) {
        left[i] = c->smooth[i] - mean - slope * ((double)i - middle);
        squares += left[i] * left[i];
    }
    *at_end = mean + slope * middle;
    return squares;
}

static double dependence_of(const double *left, size_t count)
{
    double sum = 0;
    for (size_t lag = 1; lag < count / 4; lag++) {
        double r = pki_samples_autocorrelation(left, count, lag);
        if (!(r > 2 / sqrt((double)count)))
            break;
        sum += r;
    }
    return 1 + 2 * sum;
}

/* The standard error of the difference, and how many of them chance does not reach. */
static double error_of(const looking *l, const arc *a, double squares, const double *left,
                       double *reach)
{
    double n = (double)l->c.count, length = (double)(a->end - a->begin);
    double dependence = dependence_of(left, l->c.count), df = n / dependence - 3;
    double arcs = n * n / 2 * (double)l->field->units;
    *reach = df < 2 ? INFINITY : -pki_t_quantile(PKI_JOB_SPELL_LEVEL / LOOKS / arcs, df);
    return sqrt(squares / (n - 3) * dependence * (1 / length + 1 / (n - length)));
}

/* Of a stretch, or more and more; false: none. */
static bool judge_arc(looking *l, const arc *a, pki_job_spell *out)
{
    course *c = &l->c;
    double *left = l->room, at_end = 0, reach = 0;
    if (a->end <= a->begin)
        return false;
    double by_step = leave_step(c, a, left), by_line = leave_line(c, left, &at_end);
    bool to_end = a->end + c->count / 20 >= c->count;
    bool line = to_end && by_line < by_step && at_end > limit_of(l);
    if (!line)
        leave_step(c, a, left);
    double error = error_of(l, a, line ? by_line : by_step, left, &reach);
    double n = (double)c->count, length = (double)(a->end - a->begin);
    double difference = a->z / sqrt(length * (n - length) / n);
    double by = median_of(l, a->begin, a->end, false), rest = median_of(l, a->begin, a->end, true);
    double half = error > 0 ? error * -pki_t_quantile(l->field->level, n - 3) : 0, worth = 0;
    double least = limit_of(l), surely = log1p(l->field->least * PKI_JOB_LATE_SURELY);
    if (!(difference > reach * error) || !(by > least) || !(by - rest > surely) ||
        !(by - half > surely) || (rest > least && !line))
        return false;
    for (size_t i = a->begin; i < a->end; i++)
        worth += own_of(l, c->at[i], c->rank) * -expm1(rest - by);
    *out = (pki_job_spell){.when = line ? PKI_JOB_MORE_AND_MORE : PKI_JOB_STRETCH,
                           .rank = c->rank,
                           .begin = c->at[a->begin],
                           .end = c->at[a->end - 1] + 1,
                           .by = line ? at_end : by,
                           .low = (line ? at_end : by) - half,
                           .high = (line ? at_end : by) + half,
                           .rest = rest};
    return is_worth_while(l, worth);
}

/* The share of the other ranks' blocks that are so much beyond their ranks' middles, and how many
 * blocks all ranks have. */
static double share_beyond(const looking *l, double beyond, double *all)
{
    const pki_job_field *f = l->field;
    double count = 1, more = 1;
    for (size_t r = 0; r < f->units; r++)
        for (size_t k = 0; r != l->c.rank && !isnan(l->middle[r]) && k < f->counts[r]; k++) {
            more += f->late[PKI_JOB_IN_THE_MIDDLE][r * f->blocks + k] - l->middle[r] > beyond;
            count++;
        }
    *all = count + (double)l->c.count;
    return more / count;
}

/* Could a few blocks with a hiccup each have come to stand together? By how many there are in the
 * other ranks: the expected number of such places in all of them (Bonferroni's bound). Now there is
 * one place in each. */
static double chance_of(const looking *l, const arc *a, const pki_job_spell *of, bool now)
{
    const course *c = &l->c;
    double half = (of->by - of->rest) / 2, all, length = (double)(a->end - a->begin), hits = 0;
    double share = share_beyond(l, half, &all);
    for (size_t i = a->begin; i < a->end; i++)
        hits += c->late[i] - of->rest > half;
    double ways = exp(lgamma(length + 1) - lgamma(hits + 1) - lgamma(length - hits + 1));
    return (now ? (double)l->field->units : all) * ways * pow(share, hits);
}

static bool find_stretch(looking *l, pki_job_spell *out)
{
    course *c = &l->c;
    bool is_long = l->found[LONG_STRETCH][c->rank] > l->beyond[LONG_STRETCH];
    bool is_short = l->found[SHORT_STRETCH][c->rank] > l->beyond[SHORT_STRETCH];
    arc a = is_long ? best_arc(l, c, is_short ? SHORT_ARC : LONG_ARC, c->count)
                    : best_arc(l, c, SHORT_ARC, LONG_ARC - 1);
    return (is_long || is_short) && judge_arc(l, &a, out) &&
           chance_of(l, &a, out, false) <= PKI_JOB_SPELL_LEVEL / LOOKS;
}

/* ---- late now, while the job runs ---- */

/* The mean of the last blocks, or (rest) of all but these, without the largest and the smallest. */
static double trimmed(const course *c, size_t begin, bool rest)
{
    double sum = 0, least = INFINITY, most = -INFINITY;
    size_t from = rest ? 0 : begin, to = rest ? begin : c->count;
    for (size_t i = from; i < to; i++) {
        sum += c->late[i];
        least = PKI_MIN(least, c->late[i]);
        most = PKI_MAX(most, c->late[i]);
    }
    return to - from > 2 ? (sum - least - most) / (double)(to - from - 2)
                         : sum / (double)(to - from);
}

/* Of a block, about both parts; its neighbours count as in the mean of the ranks. */
static double scale_now(looking *l, const pki_job_spell *of)
{
    const course *c = &l->c;
    for (size_t i = 0; i < c->count; i++)
        l->room[i] = 1.4826 * fabs(c->late[i] - (i < of->begin ? of->rest : of->by));
    double own = pki_samples_select_median(l->room, c->count);
    return PKI_MAX(own, l->scale) * sqrt(l->field->dependence);
}

/* Since the block from which on it differs most from those before. There are as many such arcs as
 * blocks, none of which has to be looked for, so what chance is the noise of all ranks tells, and
 * few blocks do; whether it has heavy tails, chance_of does. */
static bool find_now(looking *l, pki_job_spell *out)
{
    const course *c = &l->c;
    double best = 0, n = (double)c->count, worth = 0;
    for (size_t i = LONG_ARC; i + SHORT_ARC <= c->count; i++) {
        double in = trimmed(c, i, false), rest = trimmed(c, i, true);
        double z = (in - rest) * sqrt((n - (double)i) * (double)i / n);
        if (z <= best)
            continue;
        best = z;
        *out = (pki_job_spell){
            .when = PKI_JOB_STRETCH, .rank = c->rank, .begin = i, .by = in, .rest = rest};
    }
    if (!(best > 0))
        return false;
    arc a = {out->begin, c->count, best};
    double level = NOW_LEVEL / (n * (double)l->field->units);
    double scale = scale_now(l, out), surely = log1p(l->field->least * PKI_JOB_LATE_SURELY);
    double half =
        scale / sqrt(n - (double)a.begin) * -pki_t_quantile(PKI_JOB_SPELL_LEVEL, INFINITY);
    if (!(best > -pki_t_quantile(level, INFINITY) * scale) || !(out->by > limit_of(l)) ||
        !(out->by - half > surely) || !(out->by - out->rest > surely) || out->rest > limit_of(l) ||
        chance_of(l, &a, out, true) > NOW_LEVEL)
        return false;
    for (size_t i = a.begin; i < a.end; i++)
        worth += own_of(l, c->at[i], c->rank) * -expm1(out->rest - out->by);
    out->begin = c->at[a.begin];
    out->end = c->at[a.end - 1] + 1;
    out->low = out->by - half;
    out->high = out->by + half;
    return is_worth_while(l, worth);
}

/* Steps between the blocks in which it is late, if they are regular; else 0. */
static size_t regular(const looking *l, double from, size_t hits)
{
    const course *c = &l->c;
    double first = -1, last = 0, least = INFINITY, most = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->late[i] <= from)
            continue;
        double at = (double)l->loop->first[c->at[i]];
        if (first >= 0) {
            least = PKI_MIN(least, at - last);
            most = PKI_MAX(most, at - last);
        }
        first = first < 0 ? at : first;
        last = at;
    }
    double width = steps_of(l, c, 0);
    return hits > 2 && most - least <= width ? (size_t)((last - first) / (double)(hits - 1) + 0.5)
                                             : 0;
}

static bool find_sporadic(looking *l, pki_job_spell *out)
{
    const course *c = &l->c;
    double surely = l->field->least * PKI_JOB_LATE_SURELY, mean = 0, beyond_all = 0, worst = 0;
    if (!(l->found[SPORADIC][c->rank] > l->beyond[SPORADIC]))
        return false;
    for (size_t i = 0; i < c->count; i++) {
        mean += expm1(c->late[i]) / (double)c->count;
        worst = PKI_MAX(worst, c->clipped[i] - c->better);
    }
    double from = c->better + worst / 3, by = 0, worth = 0;
    size_t hits = 0, first = 0, last = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->late[i] <= from)
            continue;
        first = hits++ ? first : i;
        last = i;
        by += c->late[i];
        worth += own_of(l, c->at[i], c->rank) * -expm1(c->better - c->late[i]);
        beyond_all += expm1(c->late[i] - c->better);
    }
    if (mean < surely || hits < HITS_LEAST || beyond_all < surely * (double)c->count / 2)
        return false;
    *out = (pki_job_spell){.when = PKI_JOB_NOW_AND_THEN,
                           .rank = c->rank,
                           .begin = c->at[first],
                           .end = c->at[last] + 1,
                           .by = log1p(mean),
                           .low = log1p(mean),
                           .high = log1p(mean),
                           .worst = by / (double)hits,
                           .rest = c->better,
                           .share = (double)hits / (double)c->count,
                           .every = regular(l, from, hits)};
    return is_worth_while(l, worth);
}

static bool add_stops(looking *l)
{
    const course *c = &l->c;
    for (size_t i = 0; i < c->stop_count; i++) {
        size_t at = c->stops[i];
        double excess = c->excess[at], own = own_of(l, c->at[at], c->rank);
        double by = -log1p(-PKI_MIN(excess / own, 1 - 1e-9));
        if (excess > l->beyond[STOP] * c->step && is_worth_while(l, excess / 5) &&
            !add(l, (pki_job_spell){.when = PKI_JOB_ONCE,
                                    .rank = c->rank,
                                    .begin = c->at[at],
                                    .end = c->at[at] + 1,
                                    .by = by,
                                    .low = by,
                                    .high = by,
                                    .rest = c->middle}))
            return false;
    }
    return true;
}

static bool judge(looking *l, size_t rank)
{
    pki_job_spell found;
    bool any = false;
    for (int k = 0; k < LOOKS; k++)
        any |= l->found[k][rank] > l->beyond[k];
    if ((!any && !l->of->live) || !follow(l, rank))
        return true;
    if (!add_stops(l))
        return false;
    if (l->of->live && find_now(l, &found))
        return add(l, found);
    return !(find_stretch(l, &found) || find_sporadic(l, &found)) || add(l, found);
}

/* ---- all ranks ---- */

static bool make_room(looking *l)
{
    size_t blocks = l->field->blocks, units = l->field->units;
    course *c = &l->c;
    c->at = pki_array_zeroed(blocks, sizeof *c->at);
    c->late = pki_array_zeroed(blocks, sizeof *c->late);
    c->clipped = pki_array_zeroed(blocks, sizeof *c->clipped);
    c->smooth = pki_array_zeroed(blocks, sizeof *c->smooth);
    c->excess = pki_array_zeroed(blocks, sizeof *c->excess);
    l->room = pki_array_zeroed(PKI_MAX(blocks + 1, units), sizeof *l->room);
    l->middle = pki_array_zeroed(units, sizeof *l->middle);
    bool done = l->middle && c->at && c->late && c->clipped && c->smooth && c->excess && l->room;
    for (int k = 0; k < LOOKS; k++) {
        l->found[k] = pki_array_zeroed(units, sizeof **l->found);
        done = done && l->found[k];
    }
    return done;
}

static void give_back(looking *l)
{
    for (int k = 0; k < LOOKS; k++)
        free(l->found[k]);
    free(l->middle);
    free(l->c.at);
    free(l->c.late);
    free(l->c.clipped);
    free(l->c.smooth);
    free(l->c.excess);
    free(l->other);
    free(l->room);
}

bool pki_job_find_spells(pki_job_spells *s, const pki_job *j, const pki_job_field *f)
{
    looking l = {.of = j, .loop = pki_job_usual(j), .field = f, .to = s};
    *s = (pki_job_spells){.count = 0};
    bool done = make_room(&l) && find_other_work(&l);
    if (done) {
        find_scale(&l);
        for (size_t r = 0; r < f->units; r++)
            look(&l, r);
        for (int k = 0; k < LOOKS; k++)
            l.beyond[k] = find_beyond(&l, k);
    }
    for (size_t r = 0; done && r < f->units; r++)
        done = judge(&l, r);
    give_back(&l);
    return done;
}
