/* lib/job/figures/replay.c - the ranks' steps once more: who caused what others waited for, and how
 * long they would take if something were otherwise (figures.h) */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "job/figures/figures.h"
#include "stats/series.h"

/* ---- whom a stage waits for ---- */

typedef enum meeting { FOR_NOBODY, FOR_ALL, FOR_SENDERS, FOR_RECEIVERS } meeting;

enum { SENDS = 1, RECEIVES = 2 }; /* from its beginning on the other side can go on */

typedef struct way {
    const char *name;
    meeting waits;
    unsigned posts;
} way;

static const way ways[] = {
    {"MPI_Send", FOR_RECEIVERS, SENDS},
    {"MPI_Ssend", FOR_RECEIVERS, SENDS},
    {"MPI_Rsend", FOR_RECEIVERS, SENDS},
    {"MPI_Bsend", FOR_NOBODY, SENDS},
    {"MPI_Isend", FOR_NOBODY, SENDS},
    {"MPI_Issend", FOR_NOBODY, SENDS},
    {"MPI_Irsend", FOR_NOBODY, SENDS},
    {"MPI_Ibsend", FOR_NOBODY, SENDS},
    {"MPI_Isendrecv", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Isendrecv_replace", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Sendrecv", FOR_SENDERS, SENDS | RECEIVES},
    {"MPI_Sendrecv_replace", FOR_SENDERS, SENDS | RECEIVES},
    {"MPI_Start", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Startall", FOR_NOBODY, SENDS | RECEIVES},
    {"MPI_Recv", FOR_SENDERS, RECEIVES},
    {"MPI_Mrecv", FOR_SENDERS, RECEIVES},
    {"MPI_Irecv", FOR_NOBODY, RECEIVES},
    {"MPI_Imrecv", FOR_NOBODY, RECEIVES},
    {"MPI_Probe", FOR_SENDERS, 0},
    {"MPI_Mprobe", FOR_SENDERS, 0},
    {"MPI_Wait", FOR_SENDERS, 0},
    {"MPI_Waitall", FOR_SENDERS, 0},
    {"MPI_Waitany", FOR_SENDERS, 0},
    {"MPI_Waitsome", FOR_SENDERS, 0},
    {"MPI_Test", FOR_SENDERS, 0},
    {"MPI_Testall", FOR_SENDERS, 0},
    {"MPI_Testany", FOR_SENDERS, 0},
    {"MPI_Testsome", FOR_SENDERS, 0},
    {"MPI_Cancel", FOR_NOBODY, 0},
};

static bool is_mpi(const char *name)
{
    return strncmp(name, "MPI_", 4) == 0;
}

/* MPI_Allreduce, and MPI_Allreduce_c */
static bool is_collective(const char *name)
{
    static const char *const begins[] = {"nccl",        "MPI_All",       "MPI_Barrier", "MPI_Bcast",
                                         "MPI_Reduce",  "MPI_Gather",    "MPI_Scatter", "MPI_Scan",
                                         "MPI_Exscan",  "MPI_Win_fence", "MPI_Comm_",   "MPI_Cart_",
                                         "MPI_Finalize"};
    for (size_t i = 0; i < PKI_COUNT_OF(begins); i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* With MPI a region of the program's around its calls has waited in these. */
static way way_of(const pki_job_stage *stage, bool with_mpi)
{
    size_t length = strlen(stage->name);
    if (length > 2 && strcmp(stage->name + length - 2, "_c") == 0)
        length -= 2;
    for (size_t i = 0; stage->waits && i < PKI_COUNT_OF(ways); i++)
        if (strlen(ways[i].name) == length && strncmp(stage->name, ways[i].name, length) == 0)
            return ways[i];
    bool joins = stage->waits && (!with_mpi || is_collective(stage->name));
    return (way){stage->name, joins ? FOR_ALL : FOR_NOBODY, 0};
}

/* ---- why a rank is behind ---- */

/* A cause is a stage of a rank in steps of a kind. Of each rank the largest few are kept. */

#define LAGS 8

typedef struct lag {
    size_t cause[LAGS];
    double ns[LAGS]; /* 0: none */
} lag;

static double lag_of(const lag *l, size_t cause)
{
    for (size_t i = 0; i < LAGS; i++)
        if (l->ns[i] != 0 && l->cause[i] == cause)
            return l->ns[i];
    return 0;
}

static void lag_add(lag *l, size_t cause, double ns)
{
    size_t least = 0;
    for (size_t i = 0; i < LAGS; i++) {
        if (l->ns[i] != 0 && l->cause[i] == cause) {
            l->ns[i] += ns;
            return;
        }
        least = fabs(l->ns[i]) < fabs(l->ns[least]) ? i : least;
    }
    if (fabs(ns) > fabs(l->ns[least])) {
        l->cause[least] = cause;
        l->ns[least] = ns;
    }
}

/* ---- the walk ---- */

/* Where a rank is: on the time that was measured, and by how much later on the other one. */
typedef struct moment {
    double at, later;
    lag why;
} moment;

typedef struct runner {
    moment now, posts[2]; /* when it began to send, to receive */
    moment came;          /* when it came to where it waits for partners: `waits`, last */
    size_t waits;
    unsigned posted;
    size_t stage;
    bool busy, here;
} runner;

typedef struct turn {
    size_t loop, block;
    uint64_t first;
} turn;

typedef struct walk {
    const pki_job *of;
    const pki_job_change *change; /* NULL: who caused what is asked */
    pki_job_blames *to;
    way *ways;         /* by stage */
    double **rows;     /* [(loop * stages + stage) * ranks + rank]; NULL: it does not have it */
    double *transfer;  /* by loop and stage: ns per step, if nobody is waited for */
    double *extra;     /* by rank: what slow links add to it, ns per step */
    double *mean;      /* by stage, of this block */
    bool *early;       /* by stage: it is passed first of all */
    size_t *partners;  /* senders to each rank, then receivers from each */
    size_t *begins[2]; /* where in it those of a rank stand */
    runner *runners;
    turn turn;
    double part; /* of its block that is passed at once */
    bool done;
} walk;

static double *row_of(const walk *w, size_t loop, size_t stage, size_t rank)
{
    return w->rows[(loop * w->of->stage_count + stage) * w->of->rank_count + rank];
}

static double ns_of(const walk *w, size_t stage, size_t rank)
{
    const double *row = row_of(w, w->turn.loop, stage, rank);
    return row ? row[w->turn.block] * w->part : 0;
}

static size_t cause_of(const walk *w, size_t stage, size_t rank)
{
    return (w->turn.loop * w->of->stage_count + stage) * w->of->rank_count + rank;
}

static double steps_of(const walk *w, size_t rank)
{
    return w->part * w->of->loops[w->turn.loop].steps[pki_job_cell(w->of, w->turn.block, rank)];
}

/* Work, or a transfer; `usual`: what it takes otherwise. */
static void pass_time(walk *w, size_t rank, size_t stage, double ns, double usual)
{
    moment *now = &w->runners[rank].now;
    now->at += ns;
    if (w->change)
        now->later += w->change->ns(w->change->user, &(pki_job_cell_at){w->turn.loop, w->turn.block,
                                                                        stage, rank, w->part, ns}) -
                      ns;
    else if (ns != usual)
        lag_add(&now->why, cause_of(w, stage, rank), ns - usual);
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
static double beyond(const walk *w, const lag *late, size_t i, size_t other, const lag *waiting,
                     size_t rank)
{
    size_t cause = late->cause[i], ranks = w->of->rank_count;
    double own =
        cause % ranks == other ? lag_of(waiting, cause - other + rank) : lag_of(waiting, cause);
    return fmax(late->ns[i] - own, 0);
}

static void charge(walk *w, size_t stage, size_t rank, const moment *waiting, size_t other,
                   const moment *late, double ns)
{
    pki_job_blame *here = w->turn.loop ? NULL : &w->to->stages[stage];
    size_t ranks = w->of->rank_count, stages = w->of->stage_count;
    double sum = 0;
    for (size_t i = 0; i < LAGS; i++)
        sum += beyond(w, &late->why, i, other, &waiting->why, rank);
    w->to->all.waited += ns;
    if (here)
        here->waited += ns;
    for (size_t i = 0; sum > 0 && i < LAGS; i++) {
        size_t cause = late->why.cause[i];
        double part = ns * beyond(w, &late->why, i, other, &waiting->why, rank) / sum;
        pki_job_cause c = {cause % ranks, cause / ranks % stages, cause / ranks / stages, part,
                           cause % ranks == other ? part : 0};
        if (part > 0) {
            add_cause(&w->to->all, &c);
            if (here)
                add_cause(here, &c);
        }
    }
}

/* ---- where all meet ---- */

/* Nobody leaves before all have come: all leave at once, and who is in it for the shortest time
 * came last. So how far their arrivals lay apart is measured, and not what clocks say. */

static void advance(walk *w, size_t rank, size_t to);

typedef struct meet {
    size_t last;         /* who came last */
    double least, leave; /* how long that was in it; when all left... */
    double later;        /* ...and on the other time */
} meet;

static bool is_there(const walk *w, size_t stage, size_t rank)
{
    const runner *r = &w->runners[rank];
    return r->here && r->stage == stage && ns_of(w, stage, rank) > 0;
}

static meet find_meeting(const walk *w, size_t stage)
{
    meet m = {.least = INFINITY, .leave = -INFINITY, .later = -INFINITY};
    for (size_t r = 0; r < w->of->rank_count; r++) {
        double ns = ns_of(w, stage, r);
        if (!is_there(w, stage, r))
            continue;
        m.last = ns < m.least ? r : m.last;
        m.least = fmin(ns, m.least);
        m.leave = fmax(w->runners[r].now.at + ns, m.leave);
    }
    for (size_t r = 0; r < w->of->rank_count; r++)
        if (is_there(w, stage, r))
            m.later = fmax(m.leave - ns_of(w, stage, r) + w->runners[r].now.later, m.later);
    m.later += m.least - m.leave;
    return m;
}

static void meet_all(walk *w, size_t stage)
{
    for (size_t r = 0; r < w->of->rank_count; r++)
        advance(w, r, stage);
    meet m = find_meeting(w, stage);
    moment late = w->runners[m.last].now;
    for (size_t r = 0; r < w->of->rank_count; r++) {
        runner *one = &w->runners[r];
        if (!is_there(w, stage, r))
            continue;
        if (!w->change && r != m.last)
            charge(w, stage, r, &one->now, m.last, &late, ns_of(w, stage, r) - m.least);
        one->now = (moment){.at = m.leave, .later = m.later};
        one->stage++;
        w->to->stages[stage].transfer += w->turn.loop ? 0 : m.least;
    }
}

/* ---- where one waits for its partners ---- */

/* When it began to send, or to receive; false: not in this block, or it waits for us in turn. */
static bool find_post(walk *w, size_t rank, unsigned what, const moment **at)
{
    runner *r = &w->runners[rank];
    size_t stage = r->stage;
    while (!(r->posted & what) && stage < w->of->stage_count &&
           !(w->ways[stage].posts & what && ns_of(w, stage, rank) > 0))
        stage++;
    if (!(r->posted & what) && stage < w->of->stage_count) {
        advance(w, rank, stage);
        if (r->stage == stage) {
            *at = &r->now;
            return r->here;
        }
    }
    *at = &r->posts[what == RECEIVES];
    return r->here && (r->posted & what);
}

typedef struct latest {
    size_t rank;
    double at, other; /* when; on the other time */
    moment of;
    bool any;
} latest;

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

/* When the last one began to send; `there`: when it was where this one waits, too. */
static latest find_latest(walk *w, size_t rank, size_t stage, bool there)
{
    meeting who = w->ways[stage].waits;
    const size_t *begins = w->begins[who == FOR_RECEIVERS];
    latest l = {.at = -INFINITY, .other = -INFINITY};
    for (size_t i = begins[rank]; i < begins[rank + 1]; i++) {
        size_t other = w->partners[i];
        const moment *at;
        if (there) {
            advance(w, other, stage);
            const runner *o = &w->runners[other];
            if (o->here && (o->waits == stage || (o->stage == stage && !o->busy)))
                note_latest(&l, other, o->waits == stage ? &o->came : &o->now);
        } else if (find_post(w, other, who == FOR_SENDERS ? SENDS : RECEIVES, &at)) {
            note_latest(&l, other, at);
        }
    }
    return l;
}

/* What is beyond a transfer it has waited for the last one of them: for its message to begin, or,
 * as most MPIs pass on long messages only where a rank calls them, until it was in that call
 * itself; that which fits better. It tells when it came here on the other's clock, which the files
 * do not: so it is put there. */
static latest whom_for(walk *w, size_t rank, size_t stage, double waited)
{
    latest l = find_latest(w, rank, stage, false), there = find_latest(w, rank, stage, true);
    double until = w->runners[rank].now.at + waited;
    bool fits = there.any && fabs(there.at - until) + waited / 10 < fabs(l.at - until);
    return waited > 0 && l.any && fits ? there : l;
}

#define NOISE 0.005 /* of a step */

static double time_of(const walk *w, size_t rank)
{
    const pki_job_loop *loop = &w->of->loops[w->turn.loop];
    size_t cell = pki_job_cell(w->of, w->turn.block, rank);
    return loop->time[cell] / loop->steps[cell];
}

static void wait_for_partners(walk *w, size_t rank, size_t stage, double ns)
{
    moment *now = &w->runners[rank].now;
    double usual = w->transfer[w->turn.loop * w->of->stage_count + stage] * steps_of(w, rank);
    double slow = usual + w->extra[rank] * steps_of(w, rank), waited = fmax(ns - slow, 0);
    latest l = whom_for(w, rank, stage, waited);
    waited = l.any ? waited : 0;
    double apart = l.any ? l.at - now->at : -INFINITY, slack = 0;
    if (waited < NOISE * time_of(w, rank) && apart < 0)
        waited = 0; /* a transfer that took a little longer tells nothing of clocks */
    if (waited > apart && waited > 0)
        now->at -= waited - apart;
    else if (apart > waited && w->ways[stage].waits == FOR_SENDERS)
        now->at += apart - waited;
    else if (apart > waited)
        slack = apart - waited; /* the message went without the receiver */
    double later = l.any ? fmax(now->later + now->at, l.other - slack) - now->at : now->later;
    now->at += waited;
    now->later = later - waited;
    if (!w->change && waited > 0)
        charge(w, stage, rank, now, l.rank, &l.of, waited);
    if (waited > 0)
        now->why = l.of.why;
    pass_time(w, rank, stage, ns - waited, fmin(usual, ns - waited));
    w->to->stages[stage].transfer += w->turn.loop ? 0 : ns - waited;
}

static void pass_stage(walk *w, size_t rank)
{
    runner *r = &w->runners[rank];
    size_t stage = r->stage;
    double ns = ns_of(w, stage, rank);
    meeting waits = w->ways[stage].waits;
    if (w->early[stage]) {
        r->stage++;
        return;
    }
    unsigned posts = ns > 0 ? w->ways[stage].posts & ~r->posted : 0;
    if (posts & SENDS)
        r->posts[0] = r->now;
    if (posts & RECEIVES)
        r->posts[1] = r->now;
    r->posted |= posts;
    if (waits > FOR_ALL && ns > 0) {
        r->came = r->now;
        r->waits = stage;
    }
    if (waits == FOR_ALL && ns > 0)
        meet_all(w, stage);
    else if (waits > FOR_ALL && ns > 0)
        wait_for_partners(w, rank, stage, ns);
    else if (waits == FOR_NOBODY)
        pass_time(w, rank, stage, ns, w->mean[stage]);
    r->stage = PKI_MAX(r->stage, stage + 1);
}

static void advance(walk *w, size_t rank, size_t to)
{
    runner *r = &w->runners[rank];
    if (r->busy || !r->here)
        return;
    r->busy = true;
    while (r->stage < to)
        pass_stage(w, rank);
    r->busy = false;
}

static void begin_steps(walk *w)
{
    size_t ranks = w->of->rank_count, here = 0;
    for (size_t r = 0; r < ranks; r++) {
        runner *one = &w->runners[r];
        one->here = steps_of(w, r) > 0;
        one->stage = one->posted = 0;
        one->waits = w->of->stage_count;
        here += one->here;
    }
    for (size_t k = 0; k < w->of->stage_count; k++) {
        w->mean[k] = 0;
        for (size_t r = 0; r < ranks; r++)
            w->mean[k] += ns_of(w, k, r) / (double)PKI_MAX(here, (size_t)1);
    }
    for (size_t k = 0; k < w->of->stage_count; k++)
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
    double steps = 1, cells = (double)w->of->rank_count * (double)w->of->stage_count;
    for (size_t r = 0; r < w->of->rank_count; r++)
        steps = fmax(steps, steps_of(w, r));
    return (size_t)fmax(fmin(fmin(steps, PARTS), CELLS / (cells * (double)turns)), 1);
}

/* Who has not been there is where the first one is. */
static void pass_steps(walk *w)
{
    moment front = {.at = -INFINITY};
    begin_steps(w);
    for (size_t r = 0; r < w->of->rank_count; r++)
        advance(w, r, w->of->stage_count);
    for (size_t r = 0; r < w->of->rank_count; r++)
        if (w->runners[r].here && w->runners[r].now.at > front.at)
            front = w->runners[r].now;
    for (size_t r = 0; r < w->of->rank_count; r++)
        if (!w->runners[r].here)
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

/* ns per step of a rank's better blocks; -1: it does not have the stage. */
static double better_quarter(const walk *w, size_t loop, size_t stage, size_t rank, double *room)
{
    const pki_job_loop *of = &w->of->loops[loop];
    const double *row = row_of(w, loop, stage, rank);
    size_t count = 0;
    for (size_t b = 0; row && b < of->block_count; b++)
        if (row[b] > 0)
            room[count++] = row[b] / of->steps[pki_job_cell(w->of, b, rank)];
    if (!count)
        return -1;
    pki_select(room, count, count / 4);
    return room[count / 4];
}

static bool find_transfers(walk *w)
{
    const pki_job *j = w->of;
    size_t most = 0;
    for (size_t l = 0; l < j->loop_count; l++)
        most = PKI_MAX(most, j->loops[l].block_count);
    double *room = pki_array_zeroed(most, sizeof *room);
    for (size_t i = 0; room && i < j->loop_count * j->stage_count; i++) {
        double least = INFINITY;
        for (size_t r = 0; w->ways[i % j->stage_count].waits > FOR_ALL && r < j->rank_count; r++) {
            double ns = better_quarter(w, i / j->stage_count, i % j->stage_count, r, room);
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
        size_t *begins = w->begins[side];
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

double pki_job_link_excess(const pki_job *j, const pki_job_link *l)
{
    const pki_job_loop *usual = pki_job_usual(j);
    double steps = usual ? usual->made[l->to] : 0;
    return l->slow && steps > 0 ? l->messages * (l->transfer - l->usual) / steps : 0;
}

static bool begin_walk(walk *w, const pki_job_exchange *e, const pki_job_waits *waits)
{
    const pki_job *j = w->of;
    size_t ranks = j->rank_count, stages = j->stage_count, loops = j->loop_count;
    bool with_mpi = false;
    w->ways = pki_array_zeroed(stages, sizeof *w->ways);
    w->rows = pki_array_zeroed(loops * stages * ranks, sizeof *w->rows);
    w->transfer = pki_array_zeroed(loops * stages, sizeof *w->transfer);
    w->extra = pki_array_zeroed(ranks, sizeof *w->extra);
    w->mean = pki_array_zeroed(stages, sizeof *w->mean);
    w->early = pki_array_zeroed(stages, sizeof *w->early);
    w->partners = pki_array_zeroed(2 * e->pair_count, sizeof *w->partners);
    w->begins[0] = pki_array_zeroed(ranks + 1, sizeof **w->begins);
    w->begins[1] = pki_array_zeroed(ranks + 1, sizeof **w->begins);
    w->runners = pki_array_zeroed(ranks, sizeof *w->runners);
    if (!w->ways || !w->rows || !w->transfer || !w->extra || !w->mean || !w->early ||
        !w->partners || !w->begins[0] || !w->begins[1] || !w->runners)
        return false;
    for (size_t k = 0; k < stages; k++)
        with_mpi = with_mpi || is_mpi(j->stages[k].name);
    for (size_t k = 0; k < stages; k++)
        w->ways[k] = way_of(&j->stages[k], with_mpi);
    for (size_t i = 0; i < waits->link_count; i++)
        w->extra[waits->links[i].to] += pki_job_link_excess(j, &waits->links[i]);
    fill_partners(w, e);
    fill_rows(w);
    return find_transfers(w);
}

static void end_walk(walk *w)
{
    free(w->ways);
    free(w->rows);
    free(w->transfer);
    free(w->extra);
    free(w->mean);
    free(w->early);
    free(w->partners);
    free(w->begins[0]);
    free(w->begins[1]);
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

static double sum_of(walk *w, const turn *t, size_t stage)
{
    double sum = 0;
    w->turn = *t;
    w->part = 1;
    for (size_t r = 0; r < w->of->rank_count; r++)
        sum += ns_of(w, stage, r);
    return sum;
}

static double waiting_in(walk *w, const turn *t)
{
    double sum = 0;
    for (size_t k = 0; k < w->of->stage_count; k++)
        sum += w->ways[k].waits ? sum_of(w, t, k) : 0;
    return sum;
}

/* Stages stand in the order in which they first began. One that is not in most blocks (a
 * checkpoint) stands behind the others, wherever in the step it is: if ranks wait more in its
 * blocks than in the next ones, it was before they did. */
static void find_early(walk *w, const turn *turns, size_t count)
{
    for (size_t k = 0; k + 1 < w->of->stage_count; k++) {
        double here = 0, next = 0, blocks = 0, nexts = 0;
        for (size_t i = 0; !w->of->stages[k].waits && i < count; i++) {
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
        w->part = 1;
        size_t parts = parts_of(w, count);
        w->part = 1 / (double)parts;
        for (size_t k = 0; k < parts; k++)
            pass_steps(w);
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

/* A collective of some of the ranks: whose it is stands in no file. */
static bool has_groups(const pki_job *j)
{
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_comm_summary *c = &j->ranks[r].comm;
        for (size_t i = 0; i < c->collective_count; i++) {
            const pki_operation_row *o = &c->collectives[i];
            int32_t size = o->comm < c->comm_count ? c->comms[o->comm].size : 0;
            if (!pki_comm_op_is_message(o->op) && size > 1 && size < j->world)
                return true;
        }
    }
    return false;
}

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
    *to = (pki_job_blames){
        .why_not = j->rank_count < 2   ? "there is one rank only"
                   : !pki_job_usual(j) ? "there are no steps"
                   : j->outside_waits  ? "no stage of the steps is of the kind comm or wait"
                   : has_groups(j)     ? "there are collectives of some of the ranks, and which"
                                         " stage is whose is not known"
                                       : NULL};
    if (to->why_not)
        return true;
    walk w = {.of = j, .to = to};
    to->stages = pki_array_zeroed(j->stage_count, sizeof *to->stages);
    bool done = to->stages && begin_walk(&w, e, waits) && walk_all(&w);
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
    bool done = none.stages && begin_walk(&w, e, waits) && walk_all(&w);
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
