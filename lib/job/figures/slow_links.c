#include "job/figures/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "bench/stats/samples.h"

/* ---- of how long single messages took, which links are slow ---- */

#define LEAST 4     /* messages: fewer tell nothing */
#define TWICE 2     /* as long as usual is slow */
#define CHANCE 0.05 /* that any link of the job is called slow and is not */
#define COST 0.01   /* of the run, at the least */
#define SLICE 4e6   /* ns: Linux gives a thread 0.7 to 4 ms on end */
#define SHARE 0.25  /* of usual messages that count as long, at the least */

/* Messages of one pair and size; `all` are theirs, shortest first. */
typedef struct pair {
    size_t from, to, count;
    bool across;
    uint64_t size;
    const pki_job_transfer *all;
    double median, above; /* above: share of them that take twice as long as usual */
} pair;

static int by_size_and_pair(const void *x, const void *y)
{
    const pki_job_transfer *a = x, *b = y;
    if (a->across != b->across)
        return a->across ? 1 : -1;
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

/* How many there are. */
static size_t find_pairs(const pki_job_transfers *t, pair *pairs)
{
    size_t count = 0;
    for (size_t i = 0, next; i < t->count; i = next) {
        const pki_job_transfer *first = &t->all[i];
        for (next = i + 1; next < t->count && t->all[next].size == first->size &&
                           t->all[next].from == first->from && t->all[next].to == first->to;)
            next++;
        pairs[count++] = (pair){.from = first->from,
                                .to = first->to,
                                .count = next - i,
                                .across = first->across,
                                .size = first->size,
                                .all = first,
                                .median = t->all[i + (next - i) / 2].ns};
    }
    return count;
}

/* ---- one pair beside the others of its size ---- */

static int by_number(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

/* Of the others' numbers, all of which are here in order with one's own, the one that so large a
 * share is below. */
static double among_others(const double *sorted, size_t count, double own, double share)
{
    size_t at = (size_t)(share * (double)(count - 2)), low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sorted[middle] < own)
            low = middle + 1;
        else
            high = middle;
    }
    return sorted[at < low ? at : at + 1];
}

static double share_above(const pair *p, double limit)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++)
        n += p->all[i].ns > limit;
    return (double)n / (double)p->count;
}

static double tenth_of(const pair *p)
{
    return p->all[p->count / 10].ns;
}

/* That so many of n, or more, come by chance, each with probability q. */
static double tail(size_t n, size_t least, double q)
{
    double sum = 0;
    for (size_t k = least; k <= n; k++)
        sum += exp(lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1) +
                   (double)k * log(q) + (double)(n - k) * log1p(-q));
    return sum;
}

static double sent_between(const pki_job *j, size_t from, size_t to)
{
    const pki_comm_summary *c = &j->ranks[from].comm;
    for (size_t i = 0; i < c->partner_count; i++)
        if (c->partners[i].rank == j->ranks[to].rank)
            return (double)c->partners[i].sent;
    return 0;
}

/* What judging takes, and room for it. */
typedef struct judging {
    const pki_job *of;
    pair *pairs;
    size_t count;              /* of them all */
    double *shares;            /* of as many */
    pki_job_transfer *in_time; /* of as many as there are messages, ... */
    double *ns;                /* ...as are these */
} judging;

/* Messages of one size, within hosts or between them: how long they take as a rule, and of each
 * pair the share of those that take twice as long. In order: of a slow pair both are at the end. */
typedef struct usual {
    double ns, *shares;
    const pair *pairs;
    size_t count;
    size_t fair;         /* pairs that are not slow */
    const pair *longest; /* of these, the one with the longest median; NULL: there is none */
    double second;       /* the longest median of the others of them; 0: none */
} usual;

static bool is_fair(const usual *u, const pair *p)
{
    return p->all[p->count / 10].ns < TWICE * u->ns;
}

static void find_longest(usual *u)
{
    for (size_t i = 0; i < u->count; i++) {
        const pair *p = &u->pairs[i];
        if (!is_fair(u, p))
            continue;
        bool is_first = !u->longest || p->median > u->longest->median;
        u->second = fmax(u->second, !is_first ? p->median : u->longest ? u->longest->median : 0);
        u->longest = is_first ? p : u->longest;
        u->fair++;
    }
}

static usual usual_of(const judging *g, pair *pairs, size_t count)
{
    usual u = {.shares = g->shares, .pairs = pairs, .count = count};
    for (size_t i = 0; i < count; i++)
        u.shares[i] = pairs[i].median;
    qsort(u.shares, count, sizeof *u.shares, by_number);
    u.ns = u.shares[(count - 1) / 2];
    for (size_t i = 0; i < count; i++)
        u.shares[i] = pairs[i].above = share_above(&pairs[i], TWICE * u.ns);
    qsort(u.shares, count, sizeof *u.shares, by_number);
    find_longest(&u);
    return u;
}

static int by_time(const void *x, const void *y)
{
    const pki_job_transfer *a = x, *b = y;
    return (a->at > b->at) - (a->at < b->at);
}

/* A rank without a processor keeps messages waiting that follow each other: they count as one. */
static size_t independent(const judging *g, const pair *p)
{
    memcpy(g->in_time, p->all, p->count * sizeof *g->in_time);
    qsort(g->in_time, p->count, sizeof *g->in_time, by_time);
    for (size_t i = 0; i < p->count; i++)
        g->ns[i] = g->in_time[i].ns;
    double dependence = pki_samples_dependence(g->ns, p->count, p->median);
    return (size_t)((double)p->count / PKI_MAX(dependence, 1));
}

/* Where ranks share processors, some pairs are slow more often than others: so chance is what three
 * quarters of the other pairs stay below. */
static bool is_beyond_chance(const judging *g, const usual *u, const pair *p)
{
    double q = among_others(u->shares, u->count, p->above, 0.75);
    size_t count = independent(g, p), above = (size_t)lround(p->above * (double)count);
    return tail(count, above, fmin(fmax(q, SHARE), 0.99)) < CHANCE / (double)g->count;
}

/* What a link takes longer it takes with every message, also with those that found both ranks on
 * their processors: so nine of ten of its messages take longer than the median of any pair does
 * that is not slow as well, and of those there are three times as many. What a busy machine makes
 * of a pair now and then is not the link. */
static bool stands_apart(const usual *u, const pair *p)
{
    double longest = u->longest == p ? u->second : u->longest ? u->longest->median : 0;
    size_t others = u->fair - is_fair(u, p);
    return 4 * others >= 3 * (u->count - 1) && tenth_of(p) > longest;
}

/* A thread that has a processor keeps it for a slice, so that a message to one that has none waits
 * for as long: on a crowded host what is less is not known to be the link. */
static double slice_of(const pki_job *j, const pair *p)
{
    return pki_job_is_crowded(j, p->from) || pki_job_is_crowded(j, p->to) ? SLICE : 0;
}

static pki_job_link judge(const judging *g, const usual *u, const pair *p)
{
    const pki_job *j = g->of;
    pki_job_link l = {.from = p->from,
                      .to = p->to,
                      .looked_at = p->count,
                      .size = p->size,
                      .transfer = p->median,
                      .messages = sent_between(j, p->from, p->to)};
    if (u->count < 3)
        return l; /* which of two is the slow one? */
    l.usual = u->ns;
    double more = l.transfer - TWICE * l.usual, run = (double)j->ranks[p->to].run.wall;
    l.slow = p->count >= LEAST && more > p->all[0].doubt &&
             (l.transfer - l.usual) * l.messages >= COST * run && stands_apart(u, p) &&
             tenth_of(p) - l.usual > slice_of(j, p) && is_beyond_chance(g, u, p);
    return l;
}

static void judge_size(const judging *g, pair *pairs, size_t count, pki_job_link *to)
{
    usual u = usual_of(g, pairs, count);
    for (size_t i = 0; i < count; i++)
        to[i] = judge(g, &u, &pairs[i]);
}

/* ---- all of them ---- */

static int by_pair(const void *x, const void *y)
{
    const pki_job_link *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->slow != b->slow)
        return a->slow ? -1 : 1;
    if (a->looked_at != b->looked_at)
        return a->looked_at < b->looked_at ? 1 : -1;
    return (a->size > b->size) - (a->size < b->size);
}

static double cost_of(const pki_job_link *l)
{
    return (l->transfer - l->usual) * l->messages;
}

static int slow_first(const void *x, const void *y)
{
    const pki_job_link *a = x, *b = y;
    if (a->slow != b->slow)
        return a->slow ? -1 : 1;
    if (a->slow && cost_of(a) != cost_of(b))
        return cost_of(a) < cost_of(b) ? 1 : -1;
    return by_pair(x, y);
}

/* Of a pair with messages of several sizes the slow one, or the one with most messages. */
static size_t keep_one_of_each(pki_job_link *links, size_t count)
{
    size_t kept = 0;
    qsort(links, count, sizeof *links, by_pair);
    for (size_t i = 0; i < count; i++)
        if (!kept || links[kept - 1].from != links[i].from || links[kept - 1].to != links[i].to)
            links[kept++] = links[i];
    return kept;
}

/* Where all links of a rank are slow, of two or more, it is the rank that does not get on. ends: of
 * each rank four, 0. */
static void acquit(pki_job_link *links, size_t count, size_t *ends)
{
    for (size_t i = 0; i < count; i++) {
        size_t *from = &ends[4 * links[i].from], *to = &ends[4 * links[i].to + 2];
        from[0]++, to[0]++;
        from[1] += links[i].slow, to[1] += links[i].slow;
    }
    for (size_t i = 0; i < count; i++) {
        const size_t *from = &ends[4 * links[i].from], *to = &ends[4 * links[i].to + 2];
        if ((from[0] > 1 && from[0] == from[1]) || (to[0] > 1 && to[0] == to[1]))
            links[i].slow = false;
    }
}

static size_t judge_all(const judging *g, pki_job_link *links, size_t *ends)
{
    for (size_t i = 0, next; i < g->count; i = next) {
        for (next = i + 1; next < g->count && g->pairs[next].size == g->pairs[i].size &&
                           g->pairs[next].across == g->pairs[i].across;)
            next++;
        judge_size(g, &g->pairs[i], next - i, &links[i]);
    }
    size_t count = g->count ? keep_one_of_each(links, g->count) : 0;
    acquit(links, count, ends);
    if (count)
        qsort(links, count, sizeof *links, slow_first);
    return count;
}

pki_job_link *pki_job_links_of_transfers(pki_job_transfers *t, const pki_job *j, size_t *count)
{
    judging g = {.of = j, .pairs = pki_array_zeroed(t->count, sizeof *g.pairs)};
    if (t->count)
        qsort(t->all, t->count, sizeof *t->all, by_size_and_pair);
    g.count = g.pairs ? find_pairs(t, g.pairs) : 0;
    g.shares = pki_array_zeroed(g.count, sizeof *g.shares);
    g.in_time = pki_array_zeroed(t->count, sizeof *g.in_time);
    g.ns = pki_array_zeroed(t->count, sizeof *g.ns);
    size_t *ends = pki_array_zeroed(4 * j->rank_count, sizeof *ends);
    pki_job_link *links = NULL;
    if (g.pairs && g.shares && g.in_time && g.ns && ends)
        links = pki_array_zeroed(g.count, sizeof *links);
    *count = links ? judge_all(&g, links, ends) : 0;
    free(g.pairs);
    free(g.shares);
    free(g.in_time);
    free(g.ns);
    free(ends);
    return links;
}

double pki_job_link_excess(const pki_job *j, const pki_job_link *l)
{
    const pki_job_loop *loop = pki_job_usual(j);
    double steps = loop ? loop->made[l->to] : 0;
    return l->slow && steps > 0 ? l->messages * (l->transfer - l->usual) / steps : 0;
}
