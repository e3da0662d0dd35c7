/* lib/job/figures/replay.c - the ranks' steps once more: who caused what others waited for, and how
 * long they would take if something were otherwise (figures.h) */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "job/figures/figures_internal.h"
#include "stats/series.h"

/* ---- the walk ---- */

/* Where a rank is: on the time that was measured, and by how much later on the other one. */
typedef struct moment {
    double at, later;
    pki_job_lag why;
    size_t through; /* the stage in which it has waited last, from 1; 0: in none */
} moment;

typedef struct runner {
    moment now, posts[POSTS]; /* when it began to send, to receive, has entered a collective... */
    moment before[POSTS];     /* ...in the steps before these */
    unsigned posted_before;
    double in, spent; /* in this meeting; in the stage's, before */
    bool unheld;      /* it has been done with sending before anybody was there to receive */
    moment came;      /* when it came to where it waits for partners: `waits`, last */
    size_t waits;
    size_t met; /* the leg in which all have come, where it is known when */
    unsigned posted;
    size_t stage; /* its leg */
    bool busy, here;
} runner;

typedef struct turn {
    size_t loop, block;
    uint64_t first;
} turn;

typedef struct latest {
    size_t rank;
    double at, other; /* when; on the other time */
    moment of;
    bool any;
} latest;

static const latest nobody = {.at = -INFINITY, .other = -INFINITY};

typedef struct walk {
    const pki_job *of;
    const pki_job_change *change; /* NULL: who caused what is asked */
    pki_job_blames *to;
    pki_job_legs legs;
    double **rows;    /* [(loop * stages + stage) * ranks + rank]; NULL: it does not have it */
    double **begins;  /* of the loops, by cell: when their steps began. NULL: not known */
    double *transfer; /* by loop and leg: ns per step, if nobody is waited for */
    double *extra;    /* by rank: what slow links add to it, ns per step */
    double *mean;     /* by leg, of this block */
    bool *early;      /* by leg: it is passed first of all */
    size_t *everybody;
    size_t *partners; /* senders to each rank, then receivers from each */
    struct lead {
        uint32_t later, waited; /* what it has sent in a step came after the rank had gone on there;
                                   the rank has waited for it */
    } * leads;                  /* of each sender */
    size_t *partners_begin[2];  /* where in it those of a rank stand */
    runner *runners;
    latest entered[2]; /* of all ranks, a collective that is a request: in these steps, before */
    bool looked;       /* for the former */
    turn turn;
    double part;   /* of its block that is passed at once, and... */
    double *parts; /* ...of each stage: those in which calls are rarer than steps are passed less
                      often */
    bool done;
} walk;

static double *row_of(const walk *w, size_t loop, size_t stage, size_t rank)
{
    return w->rows[(loop * w->of->stage_count + stage) * w->of->rank_count + rank];
}

static double share_of(const walk *w, size_t leg, size_t rank)
{
    const double *share = w->legs.all[leg].share;
    return share ? share[rank] : 1;
}

static double ns_of_stage(const walk *w, size_t stage, size_t rank)
{
    const double *row = row_of(w, w->turn.loop, stage, rank);
    return row ? row[w->turn.block] * w->parts[stage] : 0;
}

static double ns_of(const walk *w, size_t leg, size_t rank)
{
    return ns_of_stage(w, w->legs.all[leg].stage, rank) * share_of(w, leg, rank);
}

static pki_job_blame *blame_of(const walk *w, size_t leg)
{
    return &w->to->stages[w->legs.all[leg].stage];
}

static size_t cause_of(const walk *w, size_t leg, size_t rank)
{
    size_t stage = w->legs.all[leg].stage;
    return (w->turn.loop * w->of->stage_count + stage) * w->of->rank_count + rank;
}

static double steps_of(const walk *w, size_t rank)
{
    return w->part * w->of->loops[w->turn.loop].steps[pki_job_cell(w->of, w->turn.block, rank)];
}

/* Work, or a transfer; `usual`: what it takes otherwise. */
static void pass_time(walk *w, size_t rank, size_t leg, double ns, double usual)
{
    moment *now = &w->runners[rank].now;
    size_t stage = w->legs.all[leg].stage;
    pki_job_cell_at at = {w->turn.loop, w->turn.block, stage, rank, w->parts[stage], ns};
    now->at += ns;
    if (w->change)
        now->later += w->change->ns(w->change->user, &at) - ns;
    else if (ns != usual)
        pki_job_lag_add(&now->why, cause_of(w, leg, rank), ns - usual);
}

/* ---- to whom a wait is charged ---- */

static void add_cause(pki_job_blame *to, const pki_job_cause *c)
{
    size_t least = 0;
    for (size_t i = 0; i < to->count; i++) {
        pki_job_cause *one = &to->causes[i];
        if (one->rank == c->rank && one->stage == c->stage && one->loop == c->loop) {
            one->ns += c->ns;
            one->direct += c->direct;
            return;
        }
        least = one->ns < to->causes[least].ns ? i : least;
    }
    if (to->count < PKI_JOB_CAUSES)
        to->causes[to->count++] = *c;
    else if (c->ns > to->causes[least].ns)
        to->causes[least] = *c;
}

/* By how much the one that was waited for is more behind than who waited, by one of its causes: of
 * what both have done themselves the difference. */
static double beyond(const walk *w, const pki_job_lag *late, size_t i, size_t other,
                     const pki_job_lag *waiting, size_t rank)
{
    size_t cause = late->cause[i], ranks = w->of->rank_count;
    double own = cause % ranks == other ? pki_job_lag_of(waiting, cause - other + rank)
                                        : pki_job_lag_of(waiting, cause);
    return fmax(late->ns[i] - own, 0);
}

static void charge(walk *w, size_t leg, size_t rank, const moment *waiting, size_t other,
                   const moment *late, double ns)
{
    pki_job_blame *here = w->turn.loop ? NULL : blame_of(w, leg);
    size_t ranks = w->of->rank_count, stages = w->of->stage_count;
    double sum = 0;
    for (size_t i = 0; i < PKI_JOB_LAGS; i++)
        sum += beyond(w, &late->why, i, other, &waiting->why, rank);
    w->to->all.waited += ns;
    if (here)
        here->waited += ns;
    for (size_t i = 0; sum > 0 && i < PKI_JOB_LAGS; i++) {
        size_t cause = late->why.cause[i];
        double part = ns * beyond(w, &late->why, i, other, &waiting->why, rank) / sum;
        pki_job_cause c = {cause % ranks, cause / ranks % stages, cause / ranks / stages, part,
                           cause % ranks == other ? part : 0};
        if (part > 0) {
            add_cause(&w->to->all, &c);
            if (here)
                add_cause(here, &c);
            if (late->through && cause % ranks != other)
                w->to->stages[late->through - 1].passed_on += part;
        }
    }
}

/* ---- who waits goes on ---- */

static void advance(walk *w, size_t rank, size_t to);

#define NOISE 0.005       /* of a step */
#define NOISE_JOINED 0.25 /* of one of several that are told together */

static double time_of(const walk *w, size_t rank)
{
    const pki_job_loop *loop = &w->of->loops[w->turn.loop];
    size_t cell = pki_job_cell(w->of, w->turn.block, rank);
    return loop->time[cell] / loop->steps[cell];
}

static bool is_joined(const walk *w, size_t rank)
{
    return w->begins && steps_of(w, rank) > 1.5 * w->part;
}

/* How far apart two moments may be by what is not told. */
static double noise_of(const walk *w, size_t rank)
{
    return (is_joined(w, rank) ? NOISE_JOINED : NOISE) * time_of(w, rank);
}

static void note_latest(latest *l, size_t rank, const moment *m)
{
    l->any = true;
    l->other = fmax(l->other, m->at + m->later);
    if (m->at > l->at) {
        l->rank = rank;
        l->at = m->at;
        l->of = *m;
    }
}

static double transfer_of(const walk *w, size_t leg, size_t rank)
{
    return w->transfer[w->turn.loop * w->legs.count + leg] * steps_of(w, rank);
}

/* It has waited so long of `ns` for the last one, and comes so much later on the other time; the
 * rest is transfer. */
static void go_on(walk *w, size_t rank, size_t leg, double ns, double waited, double later,
                  const latest *l)
{
    moment *now = &w->runners[rank].now;
    double rest = ns - waited;
    now->at += waited;
    now->later = later;
    if (!w->change && waited > 0)
        charge(w, leg, rank, now, l->rank, &l->of, waited);
    if (waited > 0) {
        now->why = l->of.why;
        now->through = w->legs.all[leg].stage + 1;
    }
    pass_time(w, rank, leg, rest, fmin(transfer_of(w, leg, rank), rest));
    blame_of(w, leg)->transfer += w->turn.loop ? 0 : rest;
}

/* Where it is known when all were where, who waits has waited until the last one had come. One that
 * comes later than it has gone on, by the clocks, came when it did. */
static void go_on_from(walk *w, size_t rank, size_t leg, double ns, const latest *l)
{
    const moment *now = &w->runners[rank].now;
    double waited = l->any ? fmin(fmax(l->at - now->at, 0), ns) : 0, later = now->later;
    if (l->any)
        later = fmax(now->at + later, l->other - fmax(l->at - now->at - ns, 0)) - now->at - waited;
    go_on(w, rank, leg, ns, waited, later, l);
}

/* ---- where all meet ---- */

/* Nobody leaves before all have come: all leave at once, and who is in it for the shortest time
 * came last. So how far their arrivals lay apart is measured, and not what clocks say. */

typedef struct meet {
    const size_t *members;
    size_t count;
    size_t last;         /* who came last */
    double least, leave; /* how long that was in it; when all left... */
    double later;        /* ...and on the other time */
} meet;

static bool is_there(const walk *w, size_t leg, size_t rank)
{
    const runner *r = &w->runners[rank];
    return r->here && r->stage == leg && ns_of(w, leg, rank) > 0;
}

static meet members_of(const walk *w, size_t leg, size_t rank)
{
    const pki_job_leg *l = &w->legs.all[leg];
    if (!l->circle)
        return (meet){w->everybody, w->of->rank_count, 0, INFINITY, -INFINITY, -INFINITY};
    size_t begin = l->begins[l->circle[rank] - 1], end = l->begins[l->circle[rank]];
    return (meet){l->members + begin, end - begin, 0, INFINITY, -INFINITY, -INFINITY};
}

/* Where a rank's stage is divided, and it is known when all came: in all but its last meeting it is
 * until the last one comes; what is left is the last one's. */
static double ns_of_meeting(const walk *w, size_t leg, size_t rank, double last)
{
    const runner *r = &w->runners[rank];
    const pki_job_leg *l = &w->legs.all[leg], *end = w->legs.all + w->legs.count, *next = l + 1;
    if (!w->begins || !l->share)
        return ns_of(w, leg, rank);
    double left = ns_of_stage(w, l->stage, rank) - r->spent;
    while (next < end && next->stage == l->stage && !next->circle[rank])
        next++;
    bool more = next < end && next->stage == l->stage;
    return more ? fmin(left, last - r->now.at + transfer_of(w, leg, rank)) : left;
}

static void find_meeting(walk *w, size_t leg, meet *m)
{
    double last = -INFINITY;
    for (size_t i = 0; i < m->count; i++)
        if (is_there(w, leg, m->members[i]))
            last = fmax(last, w->runners[m->members[i]].now.at);
    for (size_t i = 0; i < m->count; i++) {
        size_t r = m->members[i];
        runner *one = &w->runners[r];
        if (!is_there(w, leg, r))
            continue;
        one->in = ns_of_meeting(w, leg, r, last);
        m->last = one->in < m->least ? r : m->last;
        m->least = fmin(one->in, m->least);
        m->leave = fmax(one->now.at + one->in, m->leave);
    }
    for (size_t i = 0; i < m->count; i++) {
        const runner *one = &w->runners[m->members[i]];
        if (is_there(w, leg, m->members[i]))
            m->later = fmax(m->leave - one->in + one->now.later, m->later);
    }
    m->later += m->least - m->leave;
}

/* Why they are behind does not matter any more where nobody is who was not in it. */
static void meet_all(walk *w, size_t leg, meet *m)
{
    find_meeting(w, leg, m);
    moment late = w->runners[m->last].now;
    bool some = w->legs.all[leg].circle;
    for (size_t i = 0; i < m->count; i++) {
        size_t r = m->members[i];
        runner *one = &w->runners[r];
        if (!is_there(w, leg, r))
            continue;
        if (!w->change && r != m->last)
            charge(w, leg, r, &one->now, m->last, &late, one->in - m->least);
        one->now = (moment){.at = w->begins && !is_joined(w, r) ? one->now.at + one->in : m->leave,
                            .later = m->later};
        if (some) {
            one->now.why = late.why;
            one->now.through = r == m->last ? late.through : w->legs.all[leg].stage + 1;
        }
        one->spent += one->in;
        one->stage++;
        blame_of(w, leg)->transfer += w->turn.loop ? 0 : m->least;
    }
}

/* -- where it is known when all were where -- */

#define LEAVES_EARLY                                                                               \
    1024 /* ranks of a collective, in which who of them came before one is looked at */

/* Of a broadcast and the like. Who sends it goes on before others have come: of those that came
 * while it was in it. */
static latest came_before(const walk *w, size_t leg, const meet *m, double until)
{
    latest l = nobody;
    for (size_t i = 0; m->count <= LEAVES_EARLY && i < m->count; i++) {
        const runner *one = &w->runners[m->members[i]];
        if (one->here && one->met == leg && one->came.at <= until)
            note_latest(&l, m->members[i], &one->came);
    }
    return l;
}

static void meet_known(walk *w, size_t leg, const meet *m)
{
    latest all = nobody;
    bool some = w->legs.all[leg].circle;
    for (size_t i = 0; i < m->count; i++) {
        runner *one = &w->runners[m->members[i]];
        one->met = is_there(w, leg, m->members[i]) ? leg : SIZE_MAX;
        if (one->met != leg)
            continue;
        one->came = one->now;
        note_latest(&all, m->members[i], &one->came);
    }
    for (size_t i = 0; i < m->count; i++) {
        size_t r = m->members[i];
        runner *one = &w->runners[r];
        if (one->met != leg)
            continue;
        double ns = ns_of(w, leg, r), until = one->now.at + ns + noise_of(w, r);
        bool whole = all.at <= until;
        latest l = whole ? all : came_before(w, leg, m, until);
        go_on_from(w, r, leg, ns, &l);
        if (whole && !some)
            one->now.why = (pki_job_lag){0};
        one->stage++;
    }
}

static void meet_in(walk *w, size_t leg, size_t rank)
{
    meet m = members_of(w, leg, rank);
    for (size_t i = 0; i < m.count; i++)
        advance(w, m.members[i], leg);
    if (w->begins && w->legs.all[leg].rooted)
        meet_known(w, leg, &m);
    else
        meet_all(w, leg, &m);
}

/* ---- where one waits for its partners ---- */

/* When it began to send, or to receive; false: not in this block, or it waits for us in turn. */
static bool find_post(walk *w, size_t rank, unsigned what, const moment **at)
{
    runner *r = &w->runners[rank];
    size_t leg = r->stage;
    while (!(r->posted & what) && leg < w->legs.count &&
           !(w->legs.all[leg].way.posts & what && ns_of(w, leg, rank) > 0))
        leg++;
    if (!(r->posted & what) && leg < w->legs.count) {
        advance(w, rank, leg);
        if (r->stage == leg) {
            *at = &r->now;
            return r->here;
        }
    }
    *at = &r->posts[what >> 1];
    return r->here && (r->posted & what);
}

/* A message that was sent after one had gone on is a later one: what came was sent before. If that
 * is so more often than that one waits, it is always so, also where who sends is far ahead. */
static void note_sender(walk *w, latest *l, size_t rank, size_t partner, double until)
{
    const moment *at;
    size_t other = w->partners[partner];
    struct lead *lead = &w->leads[partner];
    const runner *o = &w->runners[other];
    bool posted = find_post(w, other, SENDS, &at);
    lead->later += posted && at->at > until;
    lead->waited += posted && at->at <= until && at->at > w->runners[rank].now.at;
    if (posted && at->at <= until && lead->later <= lead->waited)
        note_latest(l, other, at);
    else if (w->begins && o->posted_before & SENDS && o->before[0].at <= until)
        note_latest(l, other, &o->before[0]);
}

/* One that came when the sender was done was not waited for; then it is not where it was there,
 * either: short messages are on their way without it. */
static void note_receiver(walk *w, latest *l, size_t rank, size_t other, double until)
{
    runner *one = &w->runners[rank];
    const moment *at;
    if (!find_post(w, other, RECEIVES, &at))
        return;
    one->unheld |= at->at > until;
    if (at->at <= until && (at->at > one->now.at || !one->unheld))
        note_latest(l, other, at);
}

static void note_there(walk *w, latest *l, size_t other, size_t leg, double until)
{
    advance(w, other, leg);
    const runner *o = &w->runners[other];
    const moment *at = o->waits == leg ? &o->came : &o->now;
    if (o->here && (o->waits == leg || (o->stage == leg && !o->busy)) && at->at <= until)
        note_latest(l, other, at);
}

typedef enum sight { AS_SENDERS, AS_RECEIVERS, WAITING } sight;

/* When the last one began to send, to receive, or was where this one waits, too. */
static latest find_latest(walk *w, size_t rank, size_t leg, double until, sight how)
{
    bool receivers = w->legs.all[leg].way.waits == FOR_RECEIVERS || how == AS_RECEIVERS;
    const size_t *begins = w->partners_begin[receivers];
    latest l = nobody;
    for (size_t i = begins[rank]; i < begins[rank + 1]; i++) {
        if (how == WAITING)
            note_there(w, &l, w->partners[i], leg, until);
        else if (how == AS_SENDERS)
            note_sender(w, &l, rank, i, until);
        else
            note_receiver(w, &l, rank, w->partners[i], until);
    }
    return l;
}

static bool fits_better(const latest *l, const latest *than, double until, double waited)
{
    return l->any && fabs(l->at - until) + waited / 10 < fabs(than->at - until);
}

/* None where a rank has not entered it, or is where it waits for who asks. */
static latest entered_by_all(walk *w, bool look)
{
    latest l = nobody;
    for (size_t r = 0; r < w->of->rank_count; r++) {
        const moment *at = &w->runners[r].posts[ENTERS >> 1];
        if (look ? !find_post(w, r, ENTERS, &at) : !(w->runners[r].posted & ENTERS))
            return nobody;
        note_latest(&l, r, at);
    }
    return l;
}

/* What is entered later than `until` is waited for in the next steps. */
static const latest *find_entered(walk *w, double until)
{
    bool first = !w->looked;
    w->looked = true; /* those that are looked at do not look */
    if (first)
        w->entered[0] = entered_by_all(w, true);
    return &w->entered[!w->entered[0].any || w->entered[0].at > until];
}

/* What is beyond a transfer it has waited for the last one of them: for its message to begin, or,
 * as most MPIs pass on long messages only where a rank calls them, until it was in that call
 * itself, or came to fetch what was sent; that which fits best. Where it is not known when it came,
 * it tells on the other's clock: so it is put there. */
static latest whom_for(walk *w, size_t rank, size_t leg, double waited, double end)
{
    meeting who = w->legs.all[leg].way.waits;
    double until = w->runners[rank].now.at + waited;
    latest l = find_latest(w, rank, leg, end, who == FOR_RECEIVERS ? AS_RECEIVERS : AS_SENDERS);
    latest there = find_latest(w, rank, leg, end, WAITING);
    if (waited > 0 && (l.any || w->begins) && fits_better(&there, &l, until, waited))
        l = there;
    if (waited <= 0 || !w->begins || who != FOR_EITHER)
        return l;
    latest other = find_latest(w, rank, leg, end, AS_RECEIVERS);
    l = fits_better(&other, &l, until, waited) ? other : l;
    const latest *all = find_entered(w, end);
    return fits_better(all, &l, until, waited) ? *all : l;
}

static void wait_for_partners(walk *w, size_t rank, size_t leg, double ns)
{
    moment *now = &w->runners[rank].now;
    double slow = transfer_of(w, leg, rank) + w->extra[rank] * steps_of(w, rank);
    double waited = fmax(ns - slow, 0), noise = noise_of(w, rank);
    latest l = whom_for(w, rank, leg, waited, w->begins ? now->at + ns + noise : INFINITY);
    if (w->begins && !is_joined(w, rank)) {
        go_on_from(w, rank, leg, ns, &l);
        return;
    }
    if (w->begins && l.any)
        waited = fmax(waited, fmin(l.at - now->at, ns));
    waited = l.any ? waited : 0;
    double apart = l.any ? l.at - now->at : -INFINITY, slack = 0;
    if (waited < noise && apart < 0)
        waited = 0; /* a transfer that took a little longer tells nothing of clocks */
    if (waited > apart && waited > 0)
        now->at -= waited - apart;
    else if (apart > waited && w->legs.all[leg].way.waits != FOR_RECEIVERS)
        now->at += apart - waited;
    else if (apart > waited)
        slack = apart - waited; /* the message went without the receiver */
    double later = l.any ? fmax(now->later + now->at, l.other - slack) - now->at : now->later;
    go_on(w, rank, leg, ns, waited, later - waited, &l);
}

static void note_posts(walk *w, runner *r, size_t leg, double ns)
{
    unsigned posts = ns > 0 ? w->legs.all[leg].way.posts & ~r->posted : 0;
    for (unsigned i = 0; i < POSTS; i++)
        if (posts & 1u << i)
            r->posts[i] = r->now;
    r->posted |= posts;
}

static void pass_leg(walk *w, size_t rank)
{
    runner *r = &w->runners[rank];
    size_t at = r->stage;
    double ns = ns_of(w, at, rank);
    const pki_job_leg *l = &w->legs.all[at];
    r->spent = at && l->stage == l[-1].stage ? r->spent : 0;
    if (w->early[at]) {
        r->stage++;
        return;
    }
    note_posts(w, r, at, ns);
    if (l->way.waits > FOR_ALL && ns > 0) {
        r->came = r->now;
        r->waits = at;
        wait_for_partners(w, rank, at, ns);
    } else if (l->way.waits == FOR_ALL && ns > 0 && (!l->circle || l->circle[rank])) {
        meet_in(w, at, rank);
    } else if (l->way.waits == FOR_NOBODY || ns > 0) {
        pass_time(w, rank, at, ns, w->mean[at]);
    }
    r->stage = PKI_MAX(r->stage, at + 1);
}

static void advance(walk *w, size_t rank, size_t to)
{
    runner *r = &w->runners[rank];
    if (r->busy || !r->here)
        return;
    r->busy = true;
    while (r->stage < to)
        pass_leg(w, rank);
    r->busy = false;
}

static void begin_rank(walk *w, size_t rank, bool first)
{
    runner *one = &w->runners[rank];
    for (unsigned i = 0; i < POSTS; i++)
        if (one->posted & 1u << i)
            one->before[i] = one->posts[i];
    one->posted_before |= one->posted;
    one->here = steps_of(w, rank) > 0;
    one->stage = one->posted = 0;
    one->waits = w->legs.count;
    if (!w->begins || !one->here || !first)
        return;
    double at = w->begins[w->turn.loop][pki_job_cell(w->of, w->turn.block, rank)];
    if (!is_joined(w, rank) || fabs(one->now.at - at) > noise_of(w, rank))
        one->now.at = at;
}

static void begin_steps(walk *w, bool first)
{
    size_t ranks = w->of->rank_count, here = 0;
    w->entered[1] = entered_by_all(w, false);
    w->entered[0] = nobody;
    w->looked = false;
    for (size_t r = 0; r < ranks; r++) {
        begin_rank(w, r, first);
        here += w->runners[r].here;
    }
    for (size_t k = 0; k < w->legs.count; k++) {
        w->mean[k] = 0;
        for (size_t r = 0; r < ranks; r++)
            w->mean[k] += ns_of(w, k, r) / (double)PKI_MAX(here, (size_t)1);
    }
    for (size_t k = 0; k < w->legs.count; k++)
        for (size_t r = 0; w->early[k] && r < ranks; r++)
            if (w->runners[r].here)
                pass_time(w, r, k, ns_of(w, k, r), w->mean[k]);
}

/* Of steps that are told together each is passed by itself, as if they had been alike, up to so
 * many; of very large jobs fewer. */
#define PARTS 8
#define CELLS 2e7

static size_t parts_of(const walk *w, size_t turns)
{
    double steps = 1, cells = (double)w->of->rank_count * (double)w->legs.count;
    for (size_t r = 0; r < w->of->rank_count; r++)
        steps = fmax(steps, steps_of(w, r));
    return (size_t)fmax(fmin(fmin(steps, PARTS), CELLS / (cells * (double)turns)), 1);
}

/* The part `k` of so many. What is called in each tenth step alone is in one of ten parts. */
static void divide(walk *w, size_t k, size_t parts)
{
    w->part = 1 / (double)parts;
    double most = 0;
    for (size_t r = 0; r < w->of->rank_count; r++)
        most = fmax(most, steps_of(w, r));
    for (size_t i = 0; i < w->legs.count; i++) {
        const pki_job_leg *l = &w->legs.all[i];
        double calls = fmin(fmax(round(l->rate * most * (double)parts), 1), (double)parts);
        double before = floor((double)k * calls / (double)parts);
        bool is_here = floor((double)(k + 1) * calls / (double)parts) > before;
        w->parts[l->stage] = is_here ? 1 / calls : 0;
    }
}

/* Who has not been there is where the first one is, if that is not known. */
static void pass_steps(walk *w, bool first)
{
    moment front = {.at = -INFINITY};
    begin_steps(w, first);
    for (size_t r = 0; r < w->of->rank_count; r++)
        advance(w, r, w->legs.count);
    for (size_t r = 0; !w->begins && r < w->of->rank_count; r++)
        if (w->runners[r].here && w->runners[r].now.at > front.at)
            front = w->runners[r].now;
    for (size_t r = 0; r < w->of->rank_count; r++)
        if (!w->begins && !w->runners[r].here)
            w->runners[r].now = front;
}

/* ---- what it is made of ---- */

static void fill_rows(walk *w)
{
    const pki_job *j = w->of;
    for (size_t l = 0; l < j->loop_count; l++)
        for (size_t k = 0; k < j->stage_count; k++) {
            const pki_job_selves *of = &j->loops[l].selves[k];
            for (size_t i = 0; i < of->count; i++)
                w->rows[(l * j->stage_count + k) * j->rank_count + of->ranks[i]] =
                    of->rows + i * j->loops[l].block_count;
        }
}

/* Of its stage, this one too: who comes last in all of them takes as long in each. */
static size_t legs_beside(const walk *w, size_t leg)
{
    size_t count = 0;
    for (size_t k = 0; k < w->legs.count; k++)
        count += w->legs.all[k].stage == w->legs.all[leg].stage;
    return count;
}

/* ns per step of a rank's better blocks; -1: it does not have the leg. */
static double better_quarter(const walk *w, size_t loop, size_t leg, size_t rank, double *room)
{
    const pki_job_loop *of = &w->of->loops[loop];
    const double *row = row_of(w, loop, w->legs.all[leg].stage, rank);
    double share = share_of(w, leg, rank) > 0 ? 1 / (double)legs_beside(w, leg) : 0;
    size_t count = 0;
    for (size_t b = 0; row && b < of->block_count; b++)
        if (share * row[b] > 0)
            room[count++] = share * row[b] / of->steps[pki_job_cell(w->of, b, rank)];
    if (!count)
        return -1;
    pki_select(room, count, count / 4);
    return room[count / 4];
}

static bool find_transfers(walk *w)
{
    const pki_job *j = w->of;
    size_t most = 0, legs = w->legs.count;
    for (size_t l = 0; l < j->loop_count; l++)
        most = PKI_MAX(most, j->loops[l].block_count);
    double *room = pki_array_zeroed(most, sizeof *room);
    for (size_t i = 0; room && i < j->loop_count * legs; i++) {
        meeting waits = w->legs.all[i % legs].way.waits;
        double least = INFINITY;
        for (size_t r = 0; waits > FOR_NOBODY && r < j->rank_count; r++) {
            double ns = better_quarter(w, i / legs, i % legs, r, room);
            least = ns >= 0 ? fmin(ns, least) : least;
        }
        w->transfer[i] = isfinite(least) ? least : 0;
    }
    free(room);
    return room != NULL;
}

/* Twenty steps with one message: no neighbour. */
static bool counts(const walk *w, const pki_job_pair *p)
{
    return 20 * p->messages >= w->of->loops[0].made[p->to];
}

static void fill_partners(walk *w, const pki_job_exchange *e)
{
    size_t ranks = w->of->rank_count, at = 0;
    for (int side = 0; side < 2; side++) {
        size_t *begins = w->partners_begin[side];
        for (size_t i = 0; i < e->pair_count; i++)
            begins[(side ? e->pairs[i].from : e->pairs[i].to) + 1] += counts(w, &e->pairs[i]);
        for (size_t r = 0; r < ranks; r++)
            begins[r + 1] += begins[r];
        for (size_t r = 0; r <= ranks; r++)
            begins[r] += at;
        at = begins[ranks];
        for (size_t i = e->pair_count; i-- > 0;)
            if (counts(w, &e->pairs[i]))
                w->partners[--begins[(side ? e->pairs[i].from : e->pairs[i].to) + 1]] =
                    side ? e->pairs[i].to : e->pairs[i].from;
        memmove(begins, begins + 1, ranks * sizeof *begins);
        begins[ranks] = at;
    }
}

static bool begin_walk(walk *w, const pki_job_exchange *e, const pki_job_waits *waits)
{
    const pki_job *j = w->of;
    size_t ranks = j->rank_count, legs = w->legs.count, loops = j->loop_count;
    w->rows = pki_array_zeroed(loops * j->stage_count * ranks, sizeof *w->rows);
    w->transfer = pki_array_zeroed(loops * legs, sizeof *w->transfer);
    w->extra = pki_array_zeroed(ranks, sizeof *w->extra);
    w->mean = pki_array_zeroed(legs, sizeof *w->mean);
    w->early = pki_array_zeroed(legs, sizeof *w->early);
    w->everybody = pki_array_zeroed(ranks, sizeof *w->everybody);
    w->partners = pki_array_zeroed(2 * e->pair_count, sizeof *w->partners);
    w->leads = pki_array_zeroed(2 * e->pair_count, sizeof *w->leads);
    w->partners_begin[0] = pki_array_zeroed(ranks + 1, sizeof **w->partners_begin);
    w->partners_begin[1] = pki_array_zeroed(ranks + 1, sizeof **w->partners_begin);
    w->runners = pki_array_zeroed(ranks, sizeof *w->runners);
    w->parts = pki_array_zeroed(j->stage_count, sizeof *w->parts);
    w->begins = waits->begins;
    if (!w->rows || !w->transfer || !w->extra || !w->mean || !w->early || !w->everybody ||
        !w->partners || !w->leads || !w->parts || !w->partners_begin[0] || !w->partners_begin[1] ||
        !w->runners)
        return false;
    for (size_t r = 0; r < ranks; r++)
        w->everybody[r] = r;
    for (size_t i = 0; i < waits->link_count; i++)
        w->extra[waits->links[i].to] += pki_job_link_excess(j, &waits->links[i]);
    fill_partners(w, e);
    fill_rows(w);
    return find_transfers(w);
}

static void end_walk(walk *w)
{
    pki_job_finish_legs(&w->legs);
    free(w->rows);
    free(w->transfer);
    free(w->extra);
    free(w->mean);
    free(w->early);
    free(w->everybody);
    free(w->partners);
    free(w->leads);
    free(w->parts);
    free(w->partners_begin[0]);
    free(w->partners_begin[1]);
    free(w->runners);
}

static int in_order(const void *x, const void *y)
{
    const turn *a = x, *b = y;
    return (a->first > b->first) - (a->first < b->first);
}

/* Blocks of all kinds of steps, in their order; to be freed. NULL without memory. */
static turn *find_turns(const pki_job *j, size_t *count)
{
    size_t all = 0;
    for (size_t l = 0; l < j->loop_count; l++)
        all += j->loops[l].block_count;
    turn *turns = pki_array_zeroed(all, sizeof *turns);
    *count = 0;
    for (size_t l = 0; turns && l < j->loop_count; l++)
        for (size_t b = 0; b < j->loops[l].block_count; b++)
            turns[(*count)++] = (turn){l, b, j->loops[l].first[b]};
    if (*count)
        qsort(turns, *count, sizeof *turns, in_order);
    return turns;
}

static double sum_of(walk *w, const turn *t, size_t leg)
{
    double sum = 0;
    w->turn = *t;
    divide(w, 0, 1);
    for (size_t r = 0; r < w->of->rank_count; r++)
        sum += ns_of(w, leg, r);
    return sum;
}

static double waiting_in(walk *w, const turn *t)
{
    double sum = 0;
    for (size_t k = 0; k < w->legs.count; k++)
        sum += w->legs.all[k].way.waits ? sum_of(w, t, k) : 0;
    return sum;
}

/* Stages stand in the order in which they first began. One that is not in most blocks (a
 * checkpoint) stands behind the others, wherever in the step it is: if ranks wait more in its
 * blocks than in the next ones, it was before they did. */
static void find_early(walk *w, const turn *turns, size_t count)
{
    for (size_t k = 0; k + 1 < w->legs.count; k++) {
        double here = 0, next = 0, blocks = 0, nexts = 0;
        bool waits = w->of->stages[w->legs.all[k].stage].waits;
        for (size_t i = 0; !waits && i < count; i++) {
            if (sum_of(w, &turns[i], k) <= 0)
                continue;
            bool follows = i + 1 < count && sum_of(w, &turns[i + 1], k) <= 0;
            here += waiting_in(w, &turns[i]);
            next += follows ? waiting_in(w, &turns[i + 1]) : 0;
            blocks++;
            nexts += follows;
        }
        w->early[k] =
            blocks > 0 && 2 * blocks < (double)count && nexts > 0 && here / blocks > next / nexts;
    }
}

static bool pass_turns(walk *w)
{
    size_t count;
    turn *turns = find_turns(w->of, &count);
    if (turns)
        find_early(w, turns, count);
    for (size_t i = 0; turns && i < count; i++) {
        w->turn = turns[i];
        divide(w, 0, 1);
        size_t parts = parts_of(w, count);
        for (size_t k = 0; k < parts; k++) {
            divide(w, k, parts);
            pass_steps(w, k == 0);
        }
    }
    free(turns);
    return turns != NULL;
}

static void *walk_here(void *user)
{
    walk *w = user;
    w->done = pass_turns(w);
    return NULL;
}

/* Whom one waits for is passed first, and whom that waits for before it: as deep as there are
 * ranks, so it takes a stack for so many. */
#define STACK_OF_RANK ((size_t)8 << 10)

static bool walk_all(walk *w)
{
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr) != 0)
        return false;
    bool begun =
        pthread_attr_setstacksize(&attr, (1u << 20) + w->of->rank_count * STACK_OF_RANK) == 0 &&
        pthread_create(&thread, &attr, walk_here, w) == 0;
    pthread_attr_destroy(&attr);
    return begun && pthread_join(thread, NULL) == 0 && w->done;
}

/* ---- what is asked ---- */

static int dearest_first(const void *x, const void *y)
{
    const pki_job_cause *a = x, *b = y;
    return (a->ns < b->ns) - (a->ns > b->ns);
}

static void put_in_order(pki_job_blame *b)
{
    if (b->count)
        qsort(b->causes, b->count, sizeof *b->causes, dearest_first);
}

bool pki_job_find_blames(pki_job_blames *to, const pki_job *j, const pki_job_exchange *e,
                         const pki_job_waits *waits)
{
    *to = (pki_job_blames){.why_not = j->rank_count < 2   ? "there is one rank only"
                                      : !pki_job_usual(j) ? "there are no steps"
                                      : j->outside_waits
                                          ? "no stage of the steps is of the kind comm or wait"
                                          : NULL};
    if (to->why_not)
        return true;
    walk w = {.of = j, .to = to};
    bool done = pki_job_find_legs(&w.legs, j);
    to->why_not = w.legs.why_not;
    if (to->why_not) {
        end_walk(&w);
        return done;
    }
    to->stages = pki_array_zeroed(j->stage_count, sizeof *to->stages);
    done = done && to->stages && begin_walk(&w, e, waits) && walk_all(&w);
    for (size_t k = 0; done && k < j->stage_count; k++)
        put_in_order(&to->stages[k]);
    put_in_order(&to->all);
    end_walk(&w);
    return done;
}

void pki_job_blames_finish(pki_job_blames *b)
{
    free(b->stages);
    *b = (pki_job_blames){0};
}

bool pki_job_replay(const pki_job_change *change, const pki_job *j, const pki_job_exchange *e,
                    const pki_job_waits *waits, double *saved)
{
    pki_job_blames none = {.stages = pki_array_zeroed(j->stage_count, sizeof *none.stages)};
    walk w = {.of = j, .to = &none, .change = change};
    bool done =
        none.stages && pki_job_find_legs(&w.legs, j) && begin_walk(&w, e, waits) && walk_all(&w);
    double was = -INFINITY, is = -INFINITY;
    for (size_t r = 0; done && r < j->rank_count; r++) {
        was = fmax(was, w.runners[r].now.at);
        is = fmax(is, w.runners[r].now.at + w.runners[r].now.later);
    }
    *saved = done ? was - is : 0;
    end_walk(&w);
    free(none.stages);
    return done;
}
