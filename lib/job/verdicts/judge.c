/* lib/job/verdicts/judge.c - is one of several units later than the others; processors that are
 * slow or wanted by too many */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/evidence.h"
#include "bench/stats/samples.h"
#include "job/verdicts/verdicts.h"
#include "stats/series.h"

/* ---- is one of several units (ranks, or hosts) later than the others, and surely? ---- */

/* ---- how late each is in each block ---- */

/* The median of the lower half, to which the median of an odd number belongs. */
static double lower_hinge(double *values, size_t count)
{
    if (!count)
        return NAN;
    pki_samples_select_median(values, count); /* none of the lower half is behind it then */
    return pki_samples_select_median(values, (count + 1) / 2);
}

/* Of two the lower one: half of the difference would be each one's lateness otherwise. */
static double middle_of(double *values, size_t count)
{
    if (count == 2)
        return PKI_MIN(values[0], values[1]);
    return count ? pki_samples_select_median(values, count) : NAN;
}

static double location(pki_job_look look, double *values, size_t count)
{
    return look == PKI_JOB_IN_BETTER_STEPS ? lower_hinge(values, count) : middle_of(values, count);
}

static double reference(const pki_job_field *f, pki_job_look look, size_t block, uint32_t role)
{
    size_t count = 0;
    for (size_t u = 0; u < f->units; u++) {
        double v = f->values[block * f->units + u];
        if (f->roles[u] == role && !isnan(v))
            f->room[count++] = v;
    }
    return location(look, f->room, count);
}

static void look_at(pki_job_field *f, pki_job_look look, size_t block, double *references)
{
    for (uint32_t k = 0; k < f->role_count; k++)
        references[k] = reference(f, look, block, k);
    for (size_t u = 0; u < f->units; u++) {
        double v = f->low[block * f->units + u];
        if (!isnan(v))
            f->late[look][u * f->blocks + f->counts[u]] = v - references[f->roles[u]];
    }
}

/* Without an interval. */
static double quick_of(const pki_job_field *f, pki_job_look look, size_t unit)
{
    size_t count = f->counts[unit];
    if (!count)
        return NAN;
    memcpy(f->room, f->late[look] + unit * f->blocks, count * sizeof *f->room);
    return look == PKI_JOB_IN_BETTER_STEPS ? lower_hinge(f->room, count)
                                           : pki_samples_select_median(f->room, count);
}

/* What machines differ in harmlessly is in the lower quartile of few units, too: the one in their
 * middle is nobody that is late. (Below 0 it is where `low` is.) */
static bool centre(pki_job_field *f, pki_job_look look)
{
    double *quick = f->quick[look], *some = pki_array_zeroed(f->units, sizeof *some);
    for (uint32_t k = 0; some && k < f->role_count; k++) {
        size_t count = 0;
        for (size_t u = 0; u < f->units; u++)
            if (f->roles[u] == k && f->counts[u])
                some[count++] = quick[u];
        double by = middle_of(some, count);
        by = PKI_MAX(by, 0);
        for (size_t u = 0; u < f->units; u++) {
            for (size_t i = 0; f->roles[u] == k && i < f->counts[u]; i++)
                f->late[look][u * f->blocks + i] -= by;
            quick[u] -= f->roles[u] == k ? by : 0;
        }
    }
    bool done = some != NULL;
    free(some);
    return done;
}

/* False: without memory. */
static bool see_each(pki_job_field *f)
{
    for (int look = 0; look < PKI_JOB_LOOKS; look++)
        for (size_t u = 0; u < f->units; u++)
            f->quick[look][u] = quick_of(f, (pki_job_look)look, u);
    return centre(f, PKI_JOB_IN_BETTER_STEPS);
}

#define DEPENDENCE_UNITS 256 /* that are looked at, about */
#define DEPENDENCE_BLOCKS 16
#define DEPENDENCE_LAGS 64
#define DEPENDENCE_LEAST 0.1 /* what is less is none */

/* Of one unit: ranks whose steps lie apart have far fewer each than there are. */
static size_t most_blocks(const pki_job_field *f)
{
    size_t most = 0;
    for (size_t u = 0; u < f->units; u++) {
        size_t count = 0;
        for (size_t b = 0; b < f->blocks; b++)
            count += isnan(f->low[b * f->units + u]) ? 0 : 1;
        most = PKI_MAX(most, count);
    }
    return most;
}

static bool make_room(pki_job_field *f)
{
    size_t most = PKI_MAX(f->units, pki_walsh_count(most_blocks(f)));
    f->counts = pki_array_zeroed(f->units, sizeof *f->counts);
    f->room = pki_array_zeroed(most, sizeof *f->room);
    bool done = f->counts && f->room;
    for (int look = 0; look < PKI_JOB_LOOKS; look++) {
        f->late[look] = pki_array_zeroed(f->units * f->blocks, sizeof **f->late);
        f->quick[look] = pki_array_zeroed(f->units, sizeof **f->quick);
        done = done && f->late[look] && f->quick[look];
    }
    return done;
}

/* Correlation of blocks so far apart, in the mean of the units. */
static double common_correlation(const pki_job_field *f, size_t lag)
{
    double sum = 0, units = 0;
    for (size_t u = 0; u < f->units; u += 1 + f->units / DEPENDENCE_UNITS) {
        if (f->counts[u] < DEPENDENCE_BLOCKS)
            continue;
        const double *late = f->late[PKI_JOB_IN_THE_MIDDLE] + u * f->blocks;
        sum += pki_samples_autocorrelation(late, f->counts[u], lag);
        units++;
    }
    return units > 0 ? sum / units : 0;
}

/* 1 + 2 (r1 + r2 + ...), up to the lag where they are next to nothing. What is correlated at the
 * length of the series moves its mean, about which it is not seen: of the variance that is the
 * share dependence / n, which is given back (Priestley: Spectral Analysis and Time Series, 5.3). */
static double common_dependence(const pki_job_field *f)
{
    double all = 1, correlations[DEPENDENCE_LAGS];
    size_t lags = 0, most = f->blocks / 3;
    for (; lags < DEPENDENCE_LAGS && lags < most; lags++) {
        correlations[lags] = common_correlation(f, lags + 1);
        if (correlations[lags] < DEPENDENCE_LEAST)
            break;
    }
    for (int turn = 0; lags && turn < 8; turn++) {
        double lost = PKI_MIN(all / (double)f->blocks, 0.5), next = 1;
        for (size_t k = 0; k < lags; k++)
            next += 2 * (correlations[k] * (1 - lost) + lost);
        all = next;
    }
    return all;
}

bool pki_job_field_begin(pki_job_field *f)
{
    double *references = pki_array_zeroed(f->role_count, sizeof *references);
    bool done = make_room(f) && references;
    for (size_t b = 0; done && b < f->blocks; b++) {
        for (int look = 0; look < PKI_JOB_LOOKS; look++)
            look_at(f, (pki_job_look)look, b, references);
        for (size_t u = 0; u < f->units; u++)
            f->counts[u] += isnan(f->low[b * f->units + u]) ? 0 : 1;
    }
    free(references);
    if (done)
        f->dependence = common_dependence(f);
    return done && see_each(f);
}

/* ---- intervals ---- */

/* Student's, of as many as there are independent ones of. */
static pki_interval by_moments(const double *late, size_t count, double dependence, double by,
                               double level)
{
    double independent = (double)count / dependence;
    if (independent < 2)
        return (pki_interval){-INFINITY, INFINITY};
    double error = pki_samples_stddev(late, count) / sqrt(independent);
    double half = -pki_t_quantile(level, independent - 1) * error;
    return (pki_interval){by - half, by + half};
}

/* By how much being above a quartile or the median is not independent of the neighbour's being so:
 * as pki_samples_dependence, with more lags and a lower threshold where there are few. */
static double dependence_at(const double *late, size_t count, double location, double *above)
{
    double chance = (count < 16 ? 1.5 : 2) / sqrt((double)count), sum = 0;
    for (size_t i = 0; i < count; i++)
        above[i] = late[i] > location;
    for (size_t lag = 1; lag < PKI_MAX(count / 4, 4); lag++) {
        double r = pki_samples_autocorrelation(above, count, lag);
        if (!(r > chance))
            break;
        sum += r;
    }
    return 1 + 2 * sum;
}

/* What a look has of a unit; in f->room, sorted, what the intervals' ends are among. */
typedef struct sight {
    const double *late;
    size_t count;
    double by, dependence;
} sight;

static void look_in_the_middle(const pki_job_field *f, sight *s)
{
    double own = dependence_at(s->late, s->count, s->by, f->room);
    s->dependence = PKI_MAX(own, f->dependence);
    pki_walsh_averages(s->late, s->count, f->room);
    s->by = pki_samples_median(f->room, pki_walsh_count(s->count));
}

static pki_interval middle_interval(const pki_job_field *f, const sight *s, double level)
{
    pki_interval out = pki_walsh_interval(f->room, s->count, s->dependence, 2 * level);
    if (isinf(out.low) && s->dependence > 1)
        out = by_moments(s->late, s->count, s->dependence, s->by, level);
    return out;
}

/* The largest k with P(Binomial(n, 1/4) <= k) at most `most`; -1 if not even 0 is. */
static ptrdiff_t trimmed_below(size_t n, double most)
{
    double logarithm = (double)n * log(0.75), sum = 0;
    for (size_t k = 0; k < n; k++) {
        sum += exp(logarithm); /* 0 where it is too small to count */
        if (sum > most)
            return (ptrdiff_t)k - 1;
        logarithm += log((double)(n - k) / (double)(k + 1) / 3);
    }
    return (ptrdiff_t)n - 1; /* one is left */
}

/* The same share is left out as of so many independent ones. */
static pki_interval quartile_interval(const double *sorted, size_t n, size_t independent,
                                      double level)
{
    pki_interval out = {-INFINITY, INFINITY};
    ptrdiff_t low = trimmed_below(independent, level),
              high = trimmed_below(independent, 1 - level) + 1;
    double scale = (double)n / (double)PKI_MAX(independent, 1);
    if (low >= 0)
        out.low = sorted[(size_t)((double)low * scale)];
    if (high < (ptrdiff_t)independent)
        out.high = sorted[PKI_MIN((size_t)((double)(high + 1) * scale), n) - 1];
    return out;
}

static void look_at_better(const pki_job_field *f, sight *s)
{
    double own = dependence_at(s->late, s->count, s->by, f->room);
    s->dependence = f->shared ? own : PKI_MAX(own, f->dependence);
    memcpy(f->room, s->late, s->count * sizeof *s->late);
    pki_samples_sort(f->room, s->count);
}

static pki_interval interval_of(const pki_job_field *f, pki_job_look look, const sight *s,
                                double level)
{
    size_t independent = (size_t)((double)s->count / s->dependence);
    return look == PKI_JOB_IN_BETTER_STEPS
               ? quartile_interval(f->room, s->count, independent, level)
               : middle_interval(f, s, level);
}

pki_job_judgement pki_job_field_judge(const pki_job_field *f, pki_job_look look, size_t unit)
{
    double limit = log1p(f->least);
    sight s = {f->late[look] + unit * f->blocks, f->counts[unit], f->quick[look][unit], 1};
    if (!s.count)
        return (pki_job_judgement){NAN, {-INFINITY, INFINITY}, false};
    if (look == PKI_JOB_IN_BETTER_STEPS)
        look_at_better(f, &s);
    else
        look_in_the_middle(f, &s);
    pki_interval surely = interval_of(f, look, &s, f->level);
    bool late = s.by > limit && surely.low > log1p(f->least * PKI_JOB_LATE_SURELY) &&
                interval_of(f, look, &s, PKI_JOB_LATE_CHOSEN).low > limit;
    return (pki_job_judgement){s.by, surely, late};
}

/* ---- hosts whose ranks want more processors than there are ---- */

static double rank_share(const pki_job *j, size_t rank)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double ready = 0, own = 0;
    for (size_t b = 0; loop && b < loop->block_count; b++) {
        ready += loop->ready[pki_job_cell(j, b, rank)];
        own += loop->own[pki_job_cell(j, b, rank)];
    }
    return pki_job_has_run_delay(&j->ranks[rank]) ? (own > 0 ? ready / own : 0)
                                                  : pki_job_crowd_share(&j->ranks[rank].processor);
}

double pki_job_crowd_most(const pki_job *j)
{
    double most = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        most = PKI_MAX(most, rank_share(j, r));
    return most;
}

static void add_rank(pki_job_crowd *c, const pki_job *j, size_t rank)
{
    double share = rank_share(j, rank);
    c->least = c->ranks ? PKI_MIN(c->least, share) : share;
    if (!c->ranks || share > c->most) {
        c->most = share;
        c->most_rank = rank;
    }
    c->host = j->ranks[rank].host;
    c->ranks++;
}

pki_job_crowd *pki_job_find_crowds(const pki_job *j, size_t *count)
{
    pki_job_crowd *crowds = pki_array_zeroed(j->hosts.count, sizeof *crowds);
    *count = 0;
    for (size_t r = 0; crowds && r < j->rank_count; r++)
        add_rank(&crowds[j->ranks[r].host], j, r);
    for (size_t h = 0; crowds && h < j->hosts.count; h++)
        if (crowds[h].most >= PKI_JOB_CROWDED_FROM)
            crowds[(*count)++] = crowds[h];
    return crowds;
}

/* ---- what a rank's time owes to the processor that it had ---- */

#define SLOW_FROM 0.10
#define SLOW_SURELY 0.05
#define SLOW_BLOCKS 8

#define TURNS 5
#define PURE 0.75 /* of a block on one processor: says something of that */
#define ALONE 0.9 /* of a rank's blocks, and of each */
#define FEW 3     /* ranks on a processor: one of them may be what is slow */
#define MANY 64   /* ranks on a processor: one of them makes no difference any more */

#define PAIR_BLOCKS 7    /* around one, over which two on a processor are compared */
#define PAIR_UNLIKE 0.03 /* more than that, and than three standard errors of their median... */
#define PAIR_NOISE 1.4   /* ...of normal noise: 3 x 1.25 / sqrt(7) */

/* A rank on the processor on which it was most. */
typedef struct sitter {
    uint32_t processor;
    double value, share, weight; /* what is not its own; of the block; of what it says */
    size_t rank;
} sitter;

/* Two, around a block: beside what is each one's own over the run; with that left in, so that who
 * is late most of the run is not so there; or neither. */
typedef enum pair { ALIKE, ALIKE_AS_THEY_ARE, UNLIKE } pair;

/* A processor with the ranks that were there. */
typedef struct bench {
    size_t begin, count, pure;
    pair pair;   /* of two */
    double slow; /* NAN: nobody says */
} bench;

/* How much slower one was in a block than the others of its host. */
typedef struct processor_look {
    uint32_t number;
    size_t block, ranks;
    double by; /* a logarithm */
} processor_look;

typedef struct search {
    const pki_job *of;
    const pki_job_loop *loop;
    double *values, *low;
    double *own;    /* by rank: w */
    double *usual;  /* by rank: of its role */
    double *effect; /* by cell: the processors'; NAN: not known */
    size_t *alone;  /* by rank: blocks in which it was, on the processor in `out` */
    double *apart;  /* by cell: how much more it takes than its mate; NAN: it has none... */
    uint32_t *mate; /* ...or is the second of the two */
    pair *pair;     /* by cell with a mate */
    sitter *sitters;
    bench *benches;
    pki_weighted *said;
    double *room;
    processor_look *looks; /* of a host */
    size_t look_count, look_room;
    bool failed; /* without memory */
} search;

/* ---- a block of a host ---- */

static int by_processor(const void *x, const void *y)
{
    const sitter *a = x, *b = y;
    if (a->processor != b->processor)
        return a->processor < b->processor ? -1 : 1;
    return (a->rank > b->rank) - (a->rank < b->rank);
}

static size_t find_sitters(search *f, size_t block, const size_t *ranks, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t cell = pki_job_cell(f->of, block, ranks[i]);
        pki_seat seat = f->loop->seats[cell];
        double share = pki_seat_share(seat) / (double)PKI_SEAT_ALL;
        f->effect[cell] = NAN;
        if (seat && !isnan(f->values[cell]))
            f->sitters[n++] = (sitter){.processor = pki_seat_processor(seat),
                                       .value = f->values[cell] - f->own[ranks[i]],
                                       .share = share,
                                       .weight = PKI_MAX(2 * share - 1, 0),
                                       .rank = ranks[i]};
    }
    if (n)
        qsort(f->sitters, n, sizeof *f->sitters, by_processor);
    return n;
}

static size_t find_benches(search *f, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || f->sitters[i].processor != f->sitters[i - 1].processor)
            f->benches[count++] = (bench){.begin = i, .slow = NAN};
        f->benches[count - 1].count++;
        f->benches[count - 1].pure += f->sitters[i].share >= PURE;
    }
    return count;
}

/* What all of few ranks say, as far as all do: one of them may take longer by itself. */
static double agreed(double least, double most)
{
    return PKI_MAX(least, 0) + PKI_MIN(most, 0);
}

/* from: what all take less in this block. */
static double said_by_two(const pki_weighted *a, const pki_weighted *b, bool unlike, double from)
{
    if (unlike)
        return from +
               agreed(PKI_MIN(a->value, b->value) - from, PKI_MAX(a->value, b->value) - from);
    return (a->weight * a->value + b->weight * b->value) / (a->weight + b->weight);
}

/* The weighted median of what those on it say, but for one of them; NAN: there are none.
 * elsewhere: how slow the other processors are, on which they were for a part of the block. */
static double slowness(search *f, const bench *b, size_t but, double elsewhere)
{
    const sitter *all = f->sitters + b->begin;
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        const sitter *s = &all[i];
        double own = b->pair == ALIKE_AS_THEY_ARE ? f->own[s->rank] - f->usual[s->rank] : 0;
        if (i != but && (s->weight > 0 || b->pair == UNLIKE))
            f->said[count++] =
                (pki_weighted){.value = (s->value + own - (1 - s->share) * elsewhere) / s->share,
                               .weight = b->count == FEW ? 1 : s->weight};
    }
    return count == 2 ? said_by_two(&f->said[0], &f->said[1], b->count == FEW || b->pair == UNLIKE,
                                    PKI_MIN(elsewhere, 0))
                      : pki_select_weighted_median(f->said, count);
}

/* Over the ranks on all processors of which anybody says anything. */
typedef struct total {
    double sum, ranks;
} total;

static void add_bench(total *to, const bench *b, double sign)
{
    if (isnan(b->slow))
        return;
    to->sum += sign * (double)b->count * b->slow;
    to->ranks += sign * (double)b->count;
}

static double mean_but(total all, const bench *b, double otherwise)
{
    add_bench(&all, b, -1);
    return all.ranks > 0 ? all.sum / all.ranks : otherwise;
}

static total find_slowness(search *f, size_t count)
{
    total all = {0};
    for (int turn = 0; turn < TURNS; turn++) {
        total next = {0};
        for (size_t k = 0; k < count; k++) {
            bench *b = &f->benches[k];
            double elsewhere = mean_but(all, b, isnan(b->slow) ? 0 : b->slow);
            add_bench(&all, b, -1);
            b->slow = slowness(f, b, SIZE_MAX, elsewhere);
            add_bench(&all, b, 1);
            add_bench(&next, b, 1);
        }
        all = next; /* without what rounding has left */
    }
    return all;
}

/* What is the processors' in each rank's value: by what all ranks there say, or the others. */
static void set_effects(search *f, size_t block, size_t count, total all, bool by_others)
{
    for (size_t k = 0; k < count; k++) {
        const bench *b = &f->benches[k];
        double elsewhere = mean_but(all, b, b->slow);
        for (size_t i = 0; i < b->count && b->count > 1; i++) {
            const sitter *s = &f->sitters[b->begin + i];
            double here = by_others && b->count > FEW && b->count <= MANY
                              ? slowness(f, b, i, isnan(elsewhere) ? 0 : elsewhere)
                              : b->slow;
            f->effect[pki_job_cell(f->of, block, s->rank)] =
                s->share * here + (1 - s->share) * elsewhere;
        }
    }
}

static void look_at_block(search *f, size_t block, size_t count, total all)
{
    size_t pure = 0;
    for (size_t k = 0; k < count; k++)
        pure += f->benches[k].pure;
    for (size_t k = 0; k < count; k++) {
        const bench *b = &f->benches[k];
        if (b->pure < 2 || pure - b->pure < 2)
            continue;
        if (!pki_array_fit(&f->looks, &f->look_room, f->look_count + 1, sizeof *f->looks)) {
            f->failed = true;
            return;
        }
        f->looks[f->look_count++] = (processor_look){.number = f->sitters[b->begin].processor,
                                                     .block = block,
                                                     .ranks = b->count,
                                                     .by = b->slow - mean_but(all, b, b->slow)};
    }
}

/* ---- two on a processor: which blocks one of them takes longer in by itself ---- */

static void note_pairs(search *f, size_t block, const size_t *ranks, size_t count)
{
    size_t benches = find_benches(f, find_sitters(f, block, ranks, count));
    for (size_t i = 0; i < count; i++)
        f->apart[pki_job_cell(f->of, block, ranks[i])] = NAN;
    for (size_t k = 0; k < benches; k++) {
        const sitter *two = &f->sitters[f->benches[k].begin];
        if (f->benches[k].count != 2)
            continue;
        size_t cell = pki_job_cell(f->of, block, two[0].rank);
        f->apart[cell] = two[0].value - two[1].value;
        f->mate[cell] = (uint32_t)two[1].rank;
    }
}

/* The median of what they differ by in the blocks around one, as far as they sat together. */
static double apart_around(const search *f, size_t block, size_t rank)
{
    double near[PAIR_BLOCKS];
    size_t count = 0, begin = block - PKI_MIN(block, PAIR_BLOCKS / 2);
    uint32_t mate = f->mate[pki_job_cell(f->of, block, rank)];
    for (size_t i = 0; i < PAIR_BLOCKS && begin + i < f->loop->block_count; i++) {
        size_t cell = pki_job_cell(f->of, begin + i, rank);
        if (!isnan(f->apart[cell]) && f->mate[cell] == mate)
            near[count++] = f->apart[cell];
    }
    return pki_samples_select_median(near, count);
}

static void judge_pairs(search *f, size_t rank)
{
    double *around = f->effect; /* which has none yet */
    size_t count = 0;
    for (size_t b = 0; b < f->loop->block_count; b++) {
        size_t cell = pki_job_cell(f->of, b, rank);
        if (isnan(f->apart[cell]))
            continue;
        around[cell] = apart_around(f, b, rank);
        f->room[count++] = fabs(f->apart[cell] - around[cell]);
    }
    double noise = count ? 1.4826 * pki_samples_select_median(f->room, count) : 0;
    double limit = PKI_MAX(PAIR_UNLIKE, PAIR_NOISE * noise);
    for (size_t b = 0; b < f->loop->block_count; b++) {
        size_t cell = pki_job_cell(f->of, b, rank), mate = f->mate[cell];
        double own = f->own[rank] - f->usual[rank] - (f->own[mate] - f->usual[mate]);
        f->pair[cell] = isnan(f->apart[cell]) || fabs(around[cell]) <= limit ? ALIKE
                        : fabs(around[cell] + own) <= limit                  ? ALIKE_AS_THEY_ARE
                                                                             : UNLIKE;
    }
}

/* Does anybody share a processor? */
static bool enter(search *f, const size_t *ranks, size_t count, bool last)
{
    bool shared = false;
    f->look_count = 0;
    for (size_t b = 0; b < f->loop->block_count; b++)
        note_pairs(f, b, ranks, count);
    for (size_t i = 0; i < count; i++)
        judge_pairs(f, ranks[i]);
    for (size_t b = 0; b < f->loop->block_count; b++) {
        size_t sitters = find_sitters(f, b, ranks, count), benches = find_benches(f, sitters);
        shared |= benches < sitters;
        for (size_t k = 0; k < benches; k++)
            f->benches[k].pair =
                f->pair[pki_job_cell(f->of, b, f->sitters[f->benches[k].begin].rank)];
        total all = find_slowness(f, benches);
        set_effects(f, b, benches, all, last);
        if (last)
            look_at_block(f, b, benches, all);
    }
    return shared;
}

/* ---- ranks ---- */

/* The median of a rank's values, without the processors' part; NAN: there are none. */
static double own_of(search *f, size_t rank, bool without)
{
    size_t count = 0;
    for (size_t b = 0; b < f->loop->block_count; b++) {
        size_t cell = pki_job_cell(f->of, b, rank);
        double left = f->values[cell] - (without ? f->effect[cell] : 0);
        if (!isnan(left))
            f->room[count++] = left;
    }
    return count ? pki_samples_select_median(f->room, count) : NAN;
}

/* The same for all ranks of a role. */
static void begin_own(search *f, const uint32_t *roles, size_t role_count)
{
    size_t ranks = f->of->rank_count;
    for (size_t r = 0; r < ranks; r++)
        f->own[r] = own_of(f, r, false);
    for (uint32_t k = 0; k < role_count; k++) {
        size_t count = 0;
        for (size_t r = 0; r < ranks; r++)
            if (roles[r] == k && !isnan(f->own[r]))
                f->room[count++] = f->own[r];
        double middle = count ? pki_samples_select_median(f->room, count) : 0;
        for (size_t r = 0; r < ranks; r++)
            if (roles[r] == k)
                f->usual[r] = middle;
    }
    memcpy(f->own, f->usual, ranks * sizeof *f->own);
}

static bool is_determined(const search *f, size_t rank)
{
    size_t known = 0, all = 0;
    for (size_t b = 0; b < f->loop->block_count; b++) {
        size_t cell = pki_job_cell(f->of, b, rank);
        all += isnan(f->values[cell]) ? 0 : 1;
        known += isnan(f->effect[cell]) ? 0 : 1;
    }
    return 2 * known > all;
}

static void subtract_effects(search *f, const size_t *ranks, size_t count, bool *determined)
{
    for (size_t i = 0; i < count; i++)
        if (!(determined[ranks[i]] = is_determined(f, ranks[i])))
            for (size_t b = 0; b < f->loop->block_count; b++)
                f->effect[pki_job_cell(f->of, b, ranks[i])] = INFINITY; /* stays as it is */
    for (size_t b = 0; b < f->loop->block_count; b++) {
        double sum = 0, known = 0;
        for (size_t i = 0; i < count; i++) {
            double effect = f->effect[pki_job_cell(f->of, b, ranks[i])];
            sum += isfinite(effect) ? effect : 0;
            known += isfinite(effect) ? 1 : 0;
        }
        for (size_t i = 0; i < count; i++) {
            size_t cell = pki_job_cell(f->of, b, ranks[i]);
            double effect = isinf(f->effect[cell]) ? 0 : f->effect[cell] - sum / known;
            f->values[cell] -= effect;
            f->low[cell] -= effect;
        }
    }
}

/* Who is there alone. */
static void note_alone(search *f, size_t benches, pki_job_processors *out)
{
    for (size_t k = 0; k < benches; k++) {
        const sitter *s = &f->sitters[f->benches[k].begin];
        if (f->benches[k].count > 1 || s->share < ALONE)
            continue;
        if (!f->alone[s->rank])
            out->alone[s->rank] = s->processor;
        f->alone[s->rank] += out->alone[s->rank] == s->processor;
    }
}

static void find_alone(search *f, const size_t *ranks, size_t count, pki_job_processors *out)
{
    size_t blocks = f->loop->block_count;
    for (size_t b = 0; b < blocks; b++)
        note_alone(f, find_benches(f, find_sitters(f, b, ranks, count)), out);
    for (size_t i = 0; i < count; i++) {
        size_t all = 0;
        for (size_t b = 0; b < blocks; b++)
            all += f->loop->steps[pki_job_cell(f->of, b, ranks[i])] > 0;
        if ((double)f->alone[ranks[i]] < ALONE * (double)all)
            out->alone[ranks[i]] = PKI_SEAT_UNKNOWN;
    }
}

/* ---- slow processors ---- */

static int by_number(const void *x, const void *y)
{
    const processor_look *a = x, *b = y;
    if (a->number != b->number)
        return a->number < b->number ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* Those on end of which the sum beyond SLOW_FROM is the most (Kadane's). */
static size_t find_stretch(const processor_look *looks, size_t count, size_t *begin)
{
    double sum = 0, most = 0;
    size_t from = 0, length = 0;
    for (size_t i = 0; i < count; i++) {
        if (sum <= 0) {
            sum = 0;
            from = i;
        }
        sum += looks[i].by - log1p(SLOW_FROM);
        if (sum > most) {
            most = sum;
            *begin = from;
            length = i + 1 - from;
        }
    }
    return length;
}

static bool judge(const search *f, uint32_t host, const processor_look *looks, size_t count,
                  pki_job_processors *p)
{
    size_t begin = 0, length = find_stretch(looks, count, &begin);
    if (length < SLOW_BLOCKS)
        return true;
    pki_job_slow_processor slow = {.host = host, .number = looks->number};
    double *by = f->room; /* of as many as there are blocks */
    for (size_t i = 0; i < length; i++) {
        by[i] = looks[begin + i].by;
        slow.ranks = PKI_MAX(slow.ranks, looks[begin + i].ranks);
    }
    pki_samples_sort(by, length);
    if (pki_samples_quantile(by, length, 0.25) < log1p(SLOW_SURELY))
        return true;
    slow.by = expm1(pki_samples_median(by, length));
    slow.first = f->loop->first[looks[begin].block];
    slow.last = pki_job_last_step(f->of, looks[begin + length - 1].block);
    pki_job_slow_processor *more = realloc(p->slow, (p->slow_count + 1) * sizeof *more);
    if (!more)
        return false;
    p->slow = more;
    p->slow[p->slow_count++] = slow;
    return true;
}

static bool find_slow(const search *f, uint32_t host, pki_job_processors *p)
{
    processor_look *looks = f->looks;
    size_t count = f->look_count;
    if (count)
        qsort(looks, count, sizeof *looks, by_number);
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && looks[i + n].number == looks[i].number;)
            n++;
        if (!judge(f, host, looks + i, n, p))
            return false;
    }
    return true;
}

/* ---- hosts ---- */

static bool enter_host(search *f, uint32_t host, const size_t *ranks, size_t count,
                       pki_job_processors *out)
{
    find_alone(f, ranks, count, out);
    for (int turn = 0; turn < TURNS; turn++) {
        if (!enter(f, ranks, count, false))
            return true;
        for (size_t i = 0; i < count; i++) {
            double own = own_of(f, ranks[i], true);
            f->own[ranks[i]] = isnan(own) ? f->own[ranks[i]] : own;
        }
    }
    enter(f, ranks, count, true);
    subtract_effects(f, ranks, count, out->determined);
    return !f->failed && find_slow(f, host, out);
}

static bool knows_seats(const pki_job *j, const pki_job_loop *loop)
{
    for (size_t i = 0; i < loop->block_count * j->rank_count; i++)
        if (loop->seats[i])
            return true;
    return false;
}

static int slowest_first(const void *x, const void *y)
{
    const pki_job_slow_processor *a = x, *b = y;
    if (a->by != b->by)
        return a->by < b->by ? 1 : -1;
    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static bool enter_hosts(search *f, pki_job_processors *out)
{
    const pki_job *j = f->of;
    pki_job_hosts hosts;
    bool done = pki_job_by_host(&hosts, j);
    for (uint32_t h = 0; done && h < j->hosts.count; h++)
        done = enter_host(f, h, hosts.ranks + hosts.begins[h],
                          hosts.begins[h + 1] - hosts.begins[h], out);
    if (done && out->slow_count)
        qsort(out->slow, out->slow_count, sizeof *out->slow, slowest_first);
    pki_job_hosts_finish(&hosts);
    return done;
}

static bool begin_search(search *f)
{
    size_t ranks = f->of->rank_count, blocks = f->loop->block_count;
    f->own = pki_array_zeroed(ranks, sizeof *f->own);
    f->effect = pki_array_zeroed(ranks * blocks, sizeof *f->effect);
    f->alone = pki_array_zeroed(ranks, sizeof *f->alone);
    f->apart = pki_array_zeroed(ranks * blocks, sizeof *f->apart);
    f->mate = pki_array_zeroed(ranks * blocks, sizeof *f->mate);
    f->pair = pki_array_zeroed(ranks * blocks, sizeof *f->pair);
    f->usual = pki_array_zeroed(ranks, sizeof *f->usual);
    f->sitters = pki_array_zeroed(ranks, sizeof *f->sitters);
    f->benches = pki_array_zeroed(ranks, sizeof *f->benches);
    f->said = pki_array_zeroed(ranks, sizeof *f->said);
    f->room = pki_array_zeroed(PKI_MAX(ranks, blocks), sizeof *f->room);
    return f->own && f->effect && f->alone && f->apart && f->usual && f->mate && f->pair &&
           f->sitters && f->benches && f->said && f->room;
}

static void end_search(search *f)
{
    free(f->own);
    free(f->effect);
    free(f->alone);
    free(f->apart);
    free(f->mate);
    free(f->pair);
    free(f->usual);
    free(f->sitters);
    free(f->benches);
    free(f->said);
    free(f->room);
    free(f->looks);
}

bool pki_job_find_processors(pki_job_processors *p, const pki_job *j, const uint32_t *roles,
                             size_t role_count, double *values, double *low)
{
    search f = {.of = j, .loop = pki_job_usual(j), .values = values, .low = low};
    *p = (pki_job_processors){.determined = pki_array_zeroed(j->rank_count, sizeof *p->determined),
                              .alone = pki_array_zeroed(j->rank_count, sizeof *p->alone)};
    bool done = p->determined && p->alone;
    for (size_t r = 0; done && r < j->rank_count; r++)
        p->alone[r] = PKI_SEAT_UNKNOWN;
    if (!done || !knows_seats(j, f.loop))
        return done;
    done = begin_search(&f);
    if (done)
        begin_own(&f, roles, role_count);
    done = done && enter_hosts(&f, p);
    end_search(&f);
    return done;
}

void pki_job_processors_finish(pki_job_processors *p)
{
    free(p->slow);
    free(p->determined);
    free(p->alone);
    *p = (pki_job_processors){0};
}
