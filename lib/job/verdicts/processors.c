#include "job/verdicts/verdicts.h"

#include <math.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/samples.h"
#include "stats/series.h"

/* ---- what a rank's time owes to the processor that it had ---- */

#define SLOW_FROM 0.10
#define SLOW_SURELY 0.05
#define SLOW_BLOCKS 8

#define TURNS 5
#define PURE 0.75 /* of a block on one processor: says something of that */
#define ALONE 0.9 /* of a rank's blocks, and of each */
#define MANY 64   /* ranks on a processor: one of them makes no difference any more */

/* A rank on the processor on which it was most. */
typedef struct sitter {
    uint32_t processor;
    double value, share, weight; /* what is not its own; of the block; of what it says */
    size_t rank;
} sitter;

/* A processor with the ranks that were there. */
typedef struct bench {
    size_t begin, count, pure;
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
    double *effect; /* by cell: the processors'; NAN: not known */
    size_t *alone;  /* by rank: blocks in which it was, on the processor in `out` */
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

/* The weighted median of what those on it say, but for one of them; NAN: there are none.
 * elsewhere: how slow the other processors are, on which they were for a part of the block. */
static double slowness(search *f, const bench *b, size_t but, double elsewhere)
{
    const sitter *all = f->sitters + b->begin;
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        const sitter *s = &all[i];
        if (i != but && s->weight > 0)
            f->said[count++] = (pki_weighted){
                .value = (s->value - (1 - s->share) * elsewhere) / s->share, .weight = s->weight};
    }
    return pki_select_weighted_median(f->said, count);
}

/* Over the ranks on all processors of which anybody says anything. */
typedef struct total {
    double sum, ranks;
} total;

static void add(total *to, const bench *b, double sign)
{
    if (isnan(b->slow))
        return;
    to->sum += sign * (double)b->count * b->slow;
    to->ranks += sign * (double)b->count;
}

static double mean_but(total all, const bench *b, double otherwise)
{
    add(&all, b, -1);
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
            add(&all, b, -1);
            b->slow = slowness(f, b, SIZE_MAX, elsewhere);
            add(&all, b, 1);
            add(&next, b, 1);
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
            double here = by_others && b->count <= MANY
                              ? slowness(f, b, i, isnan(elsewhere) ? 0 : elsewhere)
                              : b->slow;
            f->effect[pki_job_cell(f->of, block, s->rank)] =
                s->share * here + (1 - s->share) * elsewhere;
        }
    }
}

static void look(search *f, size_t block, size_t count, total all)
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

/* Does anybody share a processor? */
static bool enter(search *f, const size_t *ranks, size_t count, bool last)
{
    bool shared = false;
    f->look_count = 0;
    for (size_t b = 0; b < f->loop->block_count; b++) {
        size_t sitters = find_sitters(f, b, ranks, count), benches = find_benches(f, sitters);
        shared |= benches < sitters;
        total all = find_slowness(f, benches);
        set_effects(f, b, benches, all, last);
        if (last)
            look(f, b, benches, all);
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

/* The same for all ranks of a role. level: room for one of each rank. */
static void begin_own(search *f, const uint32_t *roles, size_t role_count, double *level)
{
    size_t ranks = f->of->rank_count;
    for (size_t r = 0; r < ranks; r++)
        level[r] = own_of(f, r, false);
    for (uint32_t k = 0; k < role_count; k++) {
        size_t count = 0;
        for (size_t r = 0; r < ranks; r++)
            if (roles[r] == k && !isnan(level[r]))
                f->room[count++] = level[r];
        double middle = count ? pki_samples_select_median(f->room, count) : 0;
        for (size_t r = 0; r < ranks; r++)
            if (roles[r] == k)
                f->own[r] = middle;
    }
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

/* The number of the last step of a block, of the rank that has most. */
static uint64_t last_step(const pki_job *j, size_t block)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double steps = 1;
    for (size_t r = 0; r < j->rank_count; r++)
        steps = PKI_MAX(steps, loop->steps[pki_job_cell(j, block, r)]);
    return loop->first[block] + (uint64_t)steps - 1;
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
    slow.last = last_step(f->of, looks[begin + length - 1].block);
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
    f->sitters = pki_array_zeroed(ranks, sizeof *f->sitters);
    f->benches = pki_array_zeroed(ranks, sizeof *f->benches);
    f->said = pki_array_zeroed(ranks, sizeof *f->said);
    f->room = pki_array_zeroed(PKI_MAX(ranks, blocks), sizeof *f->room);
    return f->own && f->effect && f->alone && f->sitters && f->benches && f->said && f->room;
}

static void end_search(search *f)
{
    free(f->own);
    free(f->effect);
    free(f->alone);
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
    double *level = pki_array_zeroed(j->rank_count, sizeof *level);
    done = begin_search(&f) && level;
    if (done)
        begin_own(&f, roles, role_count, level);
    free(level);
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
