#include "job/figures/figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "comm/figures/figures.h"
#include "comm/model/communicator.h"
#include "job/clocks.h"

/* ---- the ranks' moments on one time axis ---- */

/* Ranks that share a clock need nothing. Clocks of different nodes are bounded by the collectives
 * that were found at several ranks, as in `pk merge` (clocks.h). Messages bound nothing
 * here: they are known by their number, and one side may have counted some that the other did not.
 */

typedef struct time_axis {
    pki_clocked *files; /* by rank; names are the job's */
    pki_clocks clocks;
    double *own; /* by rank: uncertainty of its moments on its own clock, ns */
} time_axis;

/* Of a file anything may be said: times beyond 4 years, in ns, are not believed. */
#define AXIS_MOST ((uint64_t)1 << 57)

#define LEAST_DOUBT 200 /* ns: up to which a rank's own clock is corrected (base/clock.h) */
#define DOUBT_MOST 1e15

static const pki_sequences *of_rank(const pki_job *j, size_t rank)
{
    return &j->ranks[rank].comm.sequences;
}

static bool believes(const pki_sequence_row *row)
{
    return row->start <= AXIS_MOST && row->duration <= AXIS_MOST && row->waited <= row->duration;
}

static bool bounds_clocks(const pki_sequence_row *row)
{
    pki_joint_kind kind = pki_joint_kind_of(row->op);
    return kind != PKI_JOINT_SEND && kind != PKI_JOINT_RECEIVE && believes(row);
}

static bool add_rank(pki_joints *o, const pki_job *j, size_t rank)
{
    const pki_sequences *q = of_rank(j, rank);
    for (size_t i = 0; i < q->row_count; i++) {
        const pki_sequence_row *row = &q->rows[i];
        if (!bounds_clocks(row))
            continue;
        pki_joint op = {.key = row->key,
                        .start = row->start,
                        .end = row->start + row->duration,
                        .source = (uint32_t)rank,
                        .rank = j->ranks[rank].rank,
                        .peer = row->partner,
                        .ranks = row->ranks,
                        .kind = (uint8_t)pki_joint_kind_of(row->op),
                        .op = (uint8_t)row->op};
        if (!pki_joints_add(o, &op))
            return false;
    }
    return true;
}

/* Beside which file what bounds clocks is kept; to be freed. */
static char *kept_beside(void)
{
    const char *folder = secure_getenv("TMPDIR");
    folder = folder && *folder ? folder : "/tmp";
    size_t room = strlen(folder) + sizeof "/pk-job-axis";
    char *file = malloc(room);
    if (file)
        snprintf(file, room, "%s/pk-job-axis", folder);
    return file;
}

/* What cannot be kept bounds nothing: then real times are what there is. False without memory. */
static bool bound(time_axis *a, const pki_job *j)
{
    char *file = kept_beside();
    pki_joints *o = file ? pki_joints_create(file) : NULL;
    bool added = o != NULL;
    for (size_t r = 0; added && r < j->rank_count; r++)
        added = a->own[r] < 0 || add_rank(o, j, r);
    bool done = (added && pki_clocks_fit(&a->clocks, o)) || (o && errno != ENOMEM);
    pki_joints_destroy(o);
    free(file);
    return done;
}

/* Can ranks be compared? */
static bool find_files(time_axis *a, const pki_job *j)
{
    bool any = false;
    for (size_t r = 0; r < j->rank_count; r++) {
        const pki_job_rank *rank = &j->ranks[r];
        const pki_sequences *q = of_rank(j, r);
        bool sane = q->origin <= AXIS_MOST && rank->run.wall <= AXIS_MOST &&
                    rank->run.start_unix <= (uint64_t)1 << 61;
        bool known = sane && q->row_count && q->clock && *q->clock;
        a->files[r] = (pki_clocked){.host = j->hosts.texts[rank->host],
                                    .name = known ? q->clock : j->hosts.texts[rank->host],
                                    .base_ns = sane ? q->origin : 0,
                                    .unix_ns = sane ? rank->run.start_unix : 0,
                                    .last_ns = sane ? rank->run.wall : 0};
        double doubt = fmin(fmax(rank->run.clock_uncertainty_ns, LEAST_DOUBT), DOUBT_MOST);
        a->own[r] = known ? doubt : -1;
        any |= known;
    }
    return any;
}

/* False without memory; any: can ranks be compared? */
static bool make_axis(time_axis *a, const pki_job *j, bool *any)
{
    const size_t ranks = j->rank_count;
    a->own = pki_array_zeroed(ranks, sizeof *a->own);
    a->files = pki_array_zeroed(ranks, sizeof *a->files);
    *any = a->own && a->files && find_files(a, j);
    if (!*any)
        return a->own && a->files;
    return pki_clocks_make(&a->clocks, &(pki_clocked_files){a->files, ranks, sizeof *a->files}) &&
           (a->clocks.count < 2 || bound(a, j));
}

static void finish_axis(time_axis *a)
{
    pki_clocks_free(&a->clocks);
    free(a->files);
    free(a->own);
}

static int64_t axis_at(const time_axis *a, size_t rank, uint64_t ns)
{
    return (int64_t)pki_clocks_axis(&a->clocks, &a->files[rank], ns);
}

static int64_t axis_doubt(const time_axis *a, size_t one, size_t other)
{
    uint32_t c = a->files[one].clock, d = a->files[other].clock;
    if (a->own[one] < 0 || a->own[other] < 0)
        return -1;
    int64_t own = (int64_t)(a->own[one] + a->own[other]);
    if (c == d)
        return own;
    int64_t x = pki_clock_doubt(&a->clocks.all[c]), y = pki_clock_doubt(&a->clocks.all[d]);
    return x < 0 || y < 0 ? -1 : own + x + y;
}

/* ---- what ranks waited, each moment of a rank once ---- */

/* Who waits for 26 requests at once (MPI_Waitall) waits once, and not 26 times: of operations that
 * a rank waits for at the same moment the moment belongs to the one that kept it waiting longest.
 *
 * Operations that were not chosen (comm/figures/figures.h) are scaled up from those that were.
 * That alone would count such a wait as often as requests were chosen of it, so what all chosen
 * operations stand for together is compared with what the rank waited, which its file tells of all
 * operations, each moment once: messages and collectives apart, of which the latter wait alone as a
 * rule. What is more than that is scaled down. So no rank waits longer than it was in MPI. */

/* An operation at one of its ranks; moments are the axis'. */
typedef struct one_wait {
    size_t rank, other;  /* places; other: who was late */
    pki_job_wait sort;   /* which it would be */
    int64_t waits, ends; /* while the rank waited for it */
    int64_t from, until; /* of that: since the other was late; until <= from: it was not */
    double scale;        /* stands for so many */
    int64_t doubt;       /* of the two clocks */
    double share;        /* of from..until that counts: 1, unless it is not known which part */
    const pki_sequence_row *row, *of_other; /* NULL: nobody */
} one_wait;

typedef struct waiting {
    one_wait *all;
    size_t count, room;
} waiting;

static bool add_waited(waiting *w, const one_wait *one)
{
    if (!pki_array_fit(&w->all, &w->room, w->count + 1, sizeof *one))
        return false;
    w->all[w->count++] = *one;
    return true;
}

/* ---- ... what the rank's file says that it waited ---- */

enum { MESSAGES, COLLECTIVES, SORTS };

static int sort_of(const one_wait *w)
{
    return w->sort == PKI_JOB_LATE_SENDER || w->sort == PKI_JOB_LATE_RECEIVER ? MESSAGES
                                                                              : COLLECTIVES;
}

/* Communicators may be waited for at the same time: then the time in MPI is the bound. */
static double waited_of(const pki_job *j, size_t rank)
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    double waited = 0, share = pki_job_mpi_share(j, rank), run = (double)j->ranks[rank].run.wall;
    bool others = false;
    for (size_t i = 0; i < c->comm_count; i++) {
        waited += (double)c->comms[i].waited;
        others |= strcmp(c->comms[i].library, "MPI") != 0;
    }
    double within = share < 0 || others ? run : share * run;
    within = within > 0 ? within : INFINITY;
    return waited > 0 ? fmin(waited, within) : within; /* older files do not tell */
}

/* Exposed, as told of each operation: of requests that were waited for at once the same moments. */
static double exposed_of(const pki_comm_summary *c, size_t comm)
{
    double sum = 0;
    for (size_t i = 0; i < c->collective_count; i++)
        if (c->collectives[i].comm == comm && !pki_comm_op_is_message(c->collectives[i].op))
            sum += (double)c->collectives[i].exposed;
    return sum;
}

static void find_bounds(const pki_job *j, size_t rank, double bounds[SORTS])
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    double messages = 0, collectives = 0, waited = waited_of(j, rank);
    for (size_t i = 0; i < c->comm_count; i++) {
        double of_comm = (double)c->comms[i].waited, of_all = fmin(exposed_of(c, i), of_comm);
        collectives += of_all;
        messages += of_comm - of_all;
    }
    bool told = c->collective_count && messages + collectives > 0; /* else of both together */
    bounds[MESSAGES] = told ? fmin(messages, waited) : waited;
    bounds[COLLECTIVES] = told ? fmin(collectives, waited) : waited;
}

/* ---- ... each moment once ---- */

static int by_rank_and(size_t a_rank, size_t b_rank, int64_t a_end, int64_t b_end)
{
    if (a_rank != b_rank)
        return a_rank < b_rank ? -1 : 1;
    return (a_end < b_end) - (a_end > b_end);
}

static int ends_last_first(const void *x, const void *y)
{
    const one_wait *a = x, *b = y;
    return by_rank_and(a->rank, b->rank, a->ends, b->ends);
}

static int is_late_longest_first(const void *x, const void *y)
{
    const one_wait *a = x, *b = y;
    int order = by_rank_and(a->rank, b->rank, a->until, b->until);
    if (order)
        return order;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->other > b->other) - (a->other < b->other);
}

/* Of intervals whose ends fall: the part of one that is before all that came before it. */
static double take(int64_t *taken_from, int64_t from, int64_t until)
{
    double own = (double)(PKI_MIN(until, *taken_from) - from);
    *taken_from = PKI_MIN(*taken_from, from);
    return fmax(own, 0);
}

static void sum_waited(const one_wait *all, size_t count, double sums[SORTS])
{
    int64_t taken[SORTS] = {INT64_MAX, INT64_MAX};
    sums[MESSAGES] = sums[COLLECTIVES] = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].ends > all[i].waits)
            sums[sort_of(&all[i])] +=
                all[i].scale * take(&taken[sort_of(&all[i])], all[i].waits, all[i].ends);
}

/* Of operations that are drawn one in n each, which stands for n: sum of squares x (1 - 1 / n). Of
 * a collective all ranks draw the same, so their errors add up; those of messages do in squares. */
static void add_error(double *to, int sort, double of_rank)
{
    bool messages = sort == PKI_JOB_LATE_SENDER || sort == PKI_JOB_LATE_RECEIVER;
    *to = messages ? hypot(*to, of_rank) : *to + of_rank;
}

/* -- by where in the program both were -- */

static const char *region_of(const pki_job *j, size_t rank, const pki_sequence_row *row)
{
    const pki_sequences *q = of_rank(j, rank);
    return row->region && row->region <= q->region_count ? q->regions[row->region - 1].name : "";
}

/* NULL: there is no room, or no memory, which the sums do without. */
static pki_job_wait_site *site_of(const pki_job *j, pki_job_waits *to, const one_wait *w)
{
    const char *region = region_of(j, w->rank, w->row);
    const char *of_other = region_of(j, w->other, w->of_other);
    for (size_t i = 0; i < to->site_count; i++) {
        pki_job_wait_site *s = &to->sites[i];
        if (s->sort == w->sort && s->op == w->row->op && s->op_of_other == w->of_other->op &&
            strcmp(s->region, region) == 0 && strcmp(s->of_other, of_other) == 0)
            return s;
    }
    double *caused = to->site_count < PKI_JOB_WAIT_SITES
                         ? pki_array_zeroed(j->rank_count, sizeof *caused)
                         : NULL;
    if (!caused)
        return NULL;
    to->sites[to->site_count] = (pki_job_wait_site){.sort = w->sort,
                                                    .region = region,
                                                    .of_other = of_other,
                                                    .op = w->row->op,
                                                    .op_of_other = w->of_other->op,
                                                    .caused = caused};
    return &to->sites[to->site_count++];
}

/* Ranks come one after the other, so `here` is what this one has waited at each place so far. */
static void add_to_site(const pki_job *j, pki_job_waits *to, const one_wait *w, double wait,
                        double here[PKI_JOB_WAIT_SITES])
{
    pki_job_wait_site *s = w->of_other ? site_of(j, to, w) : NULL;
    if (!s)
        return;
    double *own = &here[s - to->sites];
    s->time += wait;
    *own += wait;
    s->caused[w->other] += wait;
    if (*own > s->of_most) {
        s->of_most = *own;
        s->most = w->rank;
    }
    if (s->caused[w->other] > s->of_other_rank) {
        s->of_other_rank = s->caused[w->other];
        s->other = w->other;
    }
}

static int most_waited_first(const void *x, const void *y)
{
    const pki_job_wait_site *a = x, *b = y;
    return (a->time < b->time) - (a->time > b->time);
}

/* Adds it to the rank's and to who caused it, times `factors`; without `to` only to the sums. */
static void sum_late(const pki_job *j, const one_wait *all, size_t count,
                     const double factors[SORTS], pki_job_waits *to, double sums[SORTS])
{
    int64_t taken = INT64_MAX;
    double squares[PKI_JOB_WAITS] = {0}, here[PKI_JOB_WAIT_SITES] = {0};
    for (size_t i = 0; i < count; i++) {
        const one_wait *w = &all[i];
        if (w->until <= w->from)
            continue;
        double wait = factors[sort_of(w)] * w->scale * w->share * take(&taken, w->from, w->until);
        sums[sort_of(w)] += wait;
        if (to && wait > 0) {
            to->doubt = PKI_MAX(to->doubt, w->doubt);
            to->by[w->sort][w->rank] += wait;
            to->caused[w->other] += wait;
            squares[w->sort] += wait * wait * (1 - 1 / w->scale);
            add_to_site(j, to, w, wait, here);
        }
    }
    for (int sort = 0; to && sort < PKI_JOB_WAITS; sort++)
        add_error(&to->error[sort], sort, sqrt(squares[sort]));
}

static void find_factors(const pki_job *j, size_t rank, const double stand_for[SORTS],
                         const double late[SORTS], double factors[SORTS])
{
    double bounds[SORTS], all = 0, waited = waited_of(j, rank);
    find_bounds(j, rank, bounds);
    for (int s = 0; s < SORTS; s++) {
        double most = fmax(stand_for[s], late[s]);
        factors[s] = most > bounds[s] ? bounds[s] / most : 1;
        all += factors[s] * late[s];
    }
    for (int s = 0; s < SORTS && all > waited; s++)
        factors[s] *= waited / all;
}

/* -- what is left of waiting for requests of collectives -- */

/* One that is not complete though all had come is under way, or a rank that has to pass it on does
 * not call MPI: which of the two, and which rank, nobody knows. */
static bool is_request(const one_wait *w)
{
    return sort_of(w) == COLLECTIVES && w->row->waited && w->row->waited < w->row->duration;
}

static int covers_last_first(const void *x, const void *y)
{
    const one_wait *a = x, *b = y;
    return by_rank_and(a->rank, b->rank, is_request(a) ? a->ends : a->until,
                       is_request(b) ? b->ends : b->until);
}

/* All of it beside `told`, of what was told of others. */
static void add_unknown(const pki_job *j, one_wait *all, size_t count, const double factors[SORTS],
                        double told, pki_job_waits *to)
{
    int64_t taken = INT64_MAX;
    double sum = 0, requests = 0, left = 0, most = waited_of(j, all->rank);
    qsort(all, count, sizeof *all, covers_last_first);
    for (size_t i = 0; i < count; i++) {
        const one_wait *w = &all[i];
        bool whole = is_request(w);
        int64_t from = whole ? w->waits : w->from, until = whole ? w->ends : w->until;
        requests += whole;
        left = whole ? 1 - 1 / w->scale : left;
        if (until > from)
            sum += factors[sort_of(w)] * w->scale * w->share * take(&taken, from, until);
    }
    double unknown = requests > 0 ? fmax(fmin(sum, most) - told, 0) : 0;
    to->by[PKI_JOB_WAIT_UNKNOWN][all->rank] = unknown;
    add_error(&to->error[PKI_JOB_WAIT_UNKNOWN], PKI_JOB_WAIT_UNKNOWN,
              unknown * sqrt(left / fmax(requests, 1))); /* as if all had been alike */
}

/* Those of one rank. */
static void add_rank_once(const pki_job *j, one_wait *all, size_t count, pki_job_waits *to)
{
    double stand_for[SORTS], late[SORTS] = {0}, told[SORTS] = {0}, factors[SORTS] = {1, 1};
    qsort(all, count, sizeof *all, ends_last_first);
    sum_waited(all, count, stand_for);
    qsort(all, count, sizeof *all, is_late_longest_first);
    sum_late(j, all, count, factors, NULL, late);
    find_factors(j, all->rank, stand_for, late, factors);
    sum_late(j, all, count, factors, to, told);
    add_unknown(j, all, count, factors, told[MESSAGES] + told[COLLECTIVES], to);
}

static int by_rank(const void *x, const void *y)
{
    const one_wait *a = x, *b = y;
    return by_rank_and(a->rank, b->rank, 0, 0);
}

static void end_waiting(waiting *w, const pki_job *j, pki_job_waits *to)
{
    if (w->count)
        qsort(w->all, w->count, sizeof *w->all, by_rank);
    for (size_t i = 0, next; i < w->count; i = next) {
        for (next = i + 1; next < w->count && w->all[next].rank == w->all[i].rank; next++)
            ;
        add_rank_once(j, &w->all[i], next - i, to);
    }
    if (to->site_count)
        qsort(to->sites, to->site_count, sizeof *to->sites, most_waited_first);
}

/* ---- calls that send and receive (MPI_Sendrecv) ---- */

/* Late receivers of their sends, without the time for which the receive of the same call waited.
 *
 * Both halves are over when the call is, so a wait of the receive looks like one of the send, too.
 * What is beyond the moment that the receive waited for is the send's. Where the receive was not
 * chosen (comm/figures/figures.h), the share that is beyond is that of the rank's other calls;
 * without any, nothing is. */

/* A receive whose sender was found. */
typedef struct half_received {
    size_t rank;
    uint64_t start, end; /* of the rank's clock */
    int64_t until;       /* its sender began; of the axis, as below */
} half_received;

/* The send of such a call, whose receiver came while it lasted. */
typedef struct half_sent {
    size_t rank, other;
    uint64_t start;                    /* of the rank's clock */
    int64_t waits, ends, until, doubt; /* until: its receiver began */
    double scale;
    const pki_sequence_row *row, *of_other;
} half_sent;

typedef struct exchanges {
    half_received *received;
    half_sent *sent;
    size_t received_count, received_room, sent_count, sent_room;
} exchanges;

static bool add_received(exchanges *e, const half_received *half)
{
    if (!pki_array_fit(&e->received, &e->received_room, e->received_count + 1, sizeof *half))
        return false;
    e->received[e->received_count++] = *half;
    return true;
}

static bool add_half_sent(exchanges *e, const half_sent *half)
{
    if (!pki_array_fit(&e->sent, &e->sent_room, e->sent_count + 1, sizeof *half))
        return false;
    e->sent[e->sent_count++] = *half;
    return true;
}

static int by_start(const void *x, const void *y)
{
    const half_received *a = x, *b = y;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->start > b->start) - (a->start < b->start);
}

/* The last one that had begun when the send did: it begins and ends a little before the call. */
static const half_received *half_of(const exchanges *e, const half_sent *s)
{
    size_t low = 0, high = e->received_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const half_received *r = &e->received[middle];
        if (r->rank < s->rank || (r->rank == s->rank && r->start <= s->start))
            low = middle + 1;
        else
            high = middle;
    }
    const half_received *r = low ? &e->received[low - 1] : NULL;
    return r && r->rank == s->rank && r->end > s->start ? r : NULL;
}

static double longer_than_doubt(const half_sent *s, int64_t from)
{
    int64_t wait = s->until - from;
    return wait > s->doubt ? (double)wait : 0;
}

typedef struct share {
    double whole, beyond; /* ns, of calls of which both halves are known */
} share;

static void count_share(share *usual, const half_sent *s, const half_received *r)
{
    usual->whole += s->scale * longer_than_doubt(s, s->waits);
    usual->beyond += s->scale * longer_than_doubt(s, PKI_MAX(s->waits, r->until));
}

static bool add_sent(waiting *to, const half_sent *s, const half_received *r, const share *usual)
{
    int64_t from = r ? PKI_MAX(s->waits, r->until) : s->waits;
    double beyond = usual->whole > 0 ? usual->beyond / usual->whole : 0;
    return add_waited(to, &(one_wait){.rank = s->rank,
                                      .other = s->other,
                                      .sort = PKI_JOB_LATE_RECEIVER,
                                      .waits = s->waits,
                                      .ends = s->ends,
                                      .from = from,
                                      .until = longer_than_doubt(s, from) > 0 ? s->until : from,
                                      .scale = s->scale,
                                      .share = r ? 1 : beyond,
                                      .doubt = s->doubt,
                                      .row = s->row,
                                      .of_other = s->of_other});
}

static bool end_exchanges(exchanges *e, waiting *to, size_t ranks)
{
    share *usual = pki_array_zeroed(ranks, sizeof *usual);
    bool done = usual != NULL;
    if (e->received_count)
        qsort(e->received, e->received_count, sizeof *e->received, by_start);
    for (size_t i = 0; done && i < e->sent_count; i++) {
        const half_received *r = half_of(e, &e->sent[i]);
        if (r)
            count_share(&usual[e->sent[i].rank], &e->sent[i], r);
    }
    for (size_t i = 0; done && i < e->sent_count; i++)
        done = add_sent(to, &e->sent[i], half_of(e, &e->sent[i]), &usual[e->sent[i].rank]);
    free(usual);
    return done;
}

/* ---- waiting against transfer ---- */

const char *const pki_job_wait_names[PKI_JOB_WAITS] = {
    [PKI_JOB_LATE_SENDER] = "late sender",        [PKI_JOB_LATE_RECEIVER] = "late receiver",
    [PKI_JOB_WAIT_NXN] = "wait at N x N",         [PKI_JOB_WAIT_BARRIER] = "wait at barrier",
    [PKI_JOB_LATE_BROADCAST] = "late broadcast",  [PKI_JOB_EARLY_REDUCE] = "early reduce",
    [PKI_JOB_WAIT_UNKNOWN] = "not known for whom"};
const char *const pki_job_wait_keys[PKI_JOB_WAITS] = {[PKI_JOB_LATE_SENDER] = "late_sender",
                                                      [PKI_JOB_LATE_RECEIVER] = "late_receiver",
                                                      [PKI_JOB_WAIT_NXN] = "wait_nxn",
                                                      [PKI_JOB_WAIT_BARRIER] = "wait_barrier",
                                                      [PKI_JOB_LATE_BROADCAST] = "late_broadcast",
                                                      [PKI_JOB_EARLY_REDUCE] = "early_reduce",
                                                      [PKI_JOB_WAIT_UNKNOWN] = "unknown"};

/* An operation as one rank saw it; moments are the axis'. */
typedef struct seen {
    uint64_t key;
    const pki_sequence_row *row;
    size_t rank;
} seen;

typedef struct moments {
    int64_t starts, waits, ends; /* waits: from when on */
} moments;

typedef struct analysis {
    const pki_job *of;
    time_axis axis;
    pki_job_waits *to;
    pki_job_transfers transfers;
    waiting waiting;
    exchanges exchanges;
    bool *exchange; /* by rank: does it send and receive in one call? */
    bool failed;    /* without memory: what is added from there on is not */
} analysis;

static moments moments_of(const analysis *a, const seen *s)
{
    const pki_sequence_row *r = s->row;
    return (moments){axis_at(&a->axis, s->rank, r->start),
                     axis_at(&a->axis, s->rank, r->start + r->duration - r->waited),
                     axis_at(&a->axis, s->rank, r->start + r->duration)};
}

static uint64_t one_in(const analysis *a, const seen *s)
{
    return a->of->ranks[s->rank].comm.sequences.one_in;
}

/* Of all that were not chosen this stands for so many: who chose fewest decides. */
static double scale_of(const analysis *a, const seen *all, size_t count)
{
    uint64_t most = 1;
    for (size_t i = 0; i < count; i++)
        most = PKI_MAX(most, one_in(a, &all[i]));
    return (double)most;
}

/* `who` waited from m.waits to m.ends, and until `until` for what `other` (NULL: nobody) did then.
 * Who had left before has not waited for that: there was nothing to move. */
static void add_wait(analysis *a, pki_job_wait sort, const seen *who, const moments *m,
                     const seen *other, int64_t until, double scale)
{
    int64_t doubt = other ? axis_doubt(&a->axis, who->rank, other->rank) : -1;
    bool left_before = doubt >= 0 && until > m->ends + doubt;
    until = PKI_MIN(until, m->ends);
    bool is_late = doubt >= 0 && !left_before && until - m->waits > doubt;
    a->failed |= !add_waited(&a->waiting, &(one_wait){.rank = who->rank,
                                                      .other = other ? other->rank : who->rank,
                                                      .sort = sort,
                                                      .waits = m->waits,
                                                      .ends = m->ends,
                                                      .from = m->waits,
                                                      .until = is_late ? until : m->waits,
                                                      .scale = scale,
                                                      .doubt = doubt,
                                                      .share = 1,
                                                      .row = who->row,
                                                      .of_other = other ? other->row : NULL});
}

/* ---- messages ---- */

#define CALL_BEGINS 10000 /* ns after its operation, at most */

/* May it have ended with a send that took longer? Such a receive begins just before its call. */
static bool may_be_half(const analysis *a, const seen *receive)
{
    uint64_t before = receive->row->duration - receive->row->waited;
    return a->exchange[receive->rank] && before > 0 && before < CALL_BEGINS;
}

/* Of one that had come before it was wanted nobody knows how long it took. */
static void add_transfer(analysis *a, const seen *send, const seen *receive, int64_t doubt)
{
    moments s = moments_of(a, send), r = moments_of(a, receive);
    if (doubt < 0 || r.waits > s.starts || may_be_half(a, receive))
        return;
    a->failed |= !pki_job_transfers_add(
        &a->transfers, &(pki_job_transfer){
                           send->rank, receive->rank,
                           a->of->ranks[send->rank].host != a->of->ranks[receive->rank].host,
                           pki_comm_class(send->row->bytes), r.ends,
                           (double)PKI_MAX(r.ends - PKI_MAX(s.starts, r.waits), 0), (double)doubt});
}

static void add_late_receiver(analysis *a, const seen *send, const seen *receive, double scale)
{
    moments s = moments_of(a, send), r = moments_of(a, receive);
    int64_t doubt = axis_doubt(&a->axis, send->rank, receive->rank);
    bool waited = r.starts <= s.ends; /* else not for that */
    if (waited && send->row->op == PK_COMM_OP_SEND_RECV && doubt >= 0 && r.starts - s.waits > doubt)
        a->failed |= !add_half_sent(
            &a->exchanges, &(half_sent){send->rank, receive->rank, send->row->start, s.waits,
                                        s.ends, r.starts, doubt, scale, send->row, receive->row});
    else
        add_wait(a, PKI_JOB_LATE_RECEIVER, send, &s, waited ? receive : NULL, r.starts, scale);
}

static void classify_message(analysis *a, const seen *send, const seen *receive)
{
    moments s = moments_of(a, send), r = moments_of(a, receive);
    const seen both[2] = {*send, *receive};
    double scale = scale_of(a, both, 2);
    int64_t doubt = axis_doubt(&a->axis, send->rank, receive->rank);
    if (send->row->bytes != receive->row->bytes || (doubt >= 0 && s.starts > r.ends + doubt)) {
        a->to->alone += 2; /* two messages: one side has not numbered all */
        return;
    }
    a->to->messages++;
    add_wait(a, PKI_JOB_LATE_SENDER, receive, &r, send, s.starts, scale);
    add_late_receiver(a, send, receive, scale);
    add_transfer(a, send, receive, doubt);
    if (a->exchange[receive->rank])
        a->failed |=
            !add_received(&a->exchanges,
                          &(half_received){receive->rank, receive->row->start,
                                           receive->row->start + receive->row->duration, s.starts});
}

/* ---- collectives ---- */

static size_t last_of(const analysis *a, const seen *all, size_t count)
{
    size_t last = 0;
    for (size_t i = 1; i < count; i++)
        if (moments_of(a, &all[i]).starts > moments_of(a, &all[last]).starts)
            last = i;
    return last;
}

static void add_all_to_all_waits(analysis *a, const seen *all, size_t count, double scale)
{
    size_t last = last_of(a, all, count);
    int64_t until = moments_of(a, &all[last]).starts;
    pki_job_wait sort =
        all[0].row->op == PK_COMM_OP_BARRIER ? PKI_JOB_WAIT_BARRIER : PKI_JOB_WAIT_NXN;
    for (size_t i = 0; i < count; i++) {
        moments m = moments_of(a, &all[i]);
        add_wait(a, sort, &all[i], &m, i != last ? &all[last] : NULL, until, scale);
    }
}

static const seen *root_of(const analysis *a, const seen *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a->of->ranks[all[i].rank].rank == all[i].row->partner)
            return &all[i];
    return NULL;
}

static void add_late_broadcast(analysis *a, const seen *all, size_t count, double scale)
{
    const seen *root = root_of(a, all, count);
    for (size_t i = 0; root && i < count; i++) {
        moments m = moments_of(a, &all[i]);
        bool is_root = &all[i] == root;
        add_wait(a, PKI_JOB_LATE_BROADCAST, &all[i], &m, is_root ? NULL : root,
                 moments_of(a, root).starts, scale);
    }
}

static void add_early_reduce(analysis *a, const seen *all, size_t count, double scale)
{
    const seen *root = root_of(a, all, count), *first = NULL;
    for (size_t i = 0; i < count; i++)
        if (&all[i] != root &&
            (!first || moments_of(a, &all[i]).starts < moments_of(a, first).starts))
            first = &all[i];
    for (size_t i = 0; root && first && i < count; i++) {
        moments m = moments_of(a, &all[i]);
        bool is_root = &all[i] == root;
        add_wait(a, PKI_JOB_EARLY_REDUCE, &all[i], &m, is_root ? first : NULL,
                 moments_of(a, first).starts, scale);
    }
}

static void classify_collective(analysis *a, const seen *all, size_t count)
{
    double scale = scale_of(a, all, count);
    uint32_t op = all[0].row->op;
    a->to->collectives++;
    if (op == PK_COMM_OP_BROADCAST || op == PK_COMM_OP_SCATTER)
        add_late_broadcast(a, all, count, scale);
    else if (op == PK_COMM_OP_REDUCE || op == PK_COMM_OP_GATHER)
        add_early_reduce(a, all, count, scale);
    else
        add_all_to_all_waits(a, all, count, scale);
}

/* ---- which belong together ---- */

static int in_order(const void *x, const void *y)
{
    const seen *a = x, *b = y;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    int received = (a->row->op == PK_COMM_OP_RECV) - (b->row->op == PK_COMM_OP_RECV);
    return received ? received : (a->rank > b->rank) - (a->rank < b->rank);
}

/* Once at each of its ranks, and the same thing there? */
static bool is_whole(const seen *all, size_t count)
{
    if (pki_comm_op_is_message(all[0].row->op))
        return count == 2 && all[0].row->op != PK_COMM_OP_RECV && all[1].row->op == PK_COMM_OP_RECV;
    for (size_t i = 1; i < count; i++)
        if (all[i].rank == all[i - 1].rank || all[i].row->op != all[0].row->op)
            return false;
    return count > 1 && count == all[0].row->ranks;
}

static void classify_group(analysis *a, const seen *all, size_t count)
{
    if (!is_whole(all, count))
        a->to->alone += count;
    else if (pki_comm_op_is_message(all[0].row->op))
        classify_message(a, &all[0], &all[1]);
    else
        classify_collective(a, all, count);
}

static void find_exchanges(analysis *a)
{
    for (size_t r = 0; r < a->of->rank_count; r++) {
        const pki_sequences *q = &a->of->ranks[r].comm.sequences;
        for (size_t i = 0; i < q->row_count; i++)
            a->exchange[r] |= q->rows[i].op == PK_COMM_OP_SEND_RECV;
    }
}

/* To be freed; NULL without memory. */
static seen *collect_operations(const pki_job *j, size_t *count)
{
    size_t n = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        n += j->ranks[r].comm.sequences.row_count;
    seen *all = pki_array_zeroed(n, sizeof *all);
    *count = 0;
    for (size_t r = 0; all && r < j->rank_count; r++) {
        const pki_sequences *q = &j->ranks[r].comm.sequences;
        for (size_t i = 0; i < q->row_count; i++)
            if (believes(&q->rows[i]))
                all[(*count)++] = (seen){q->rows[i].key, &q->rows[i], r};
    }
    if (*count)
        qsort(all, *count, sizeof *all, in_order);
    return all;
}

static bool classify_all(analysis *a)
{
    size_t count;
    seen *all = collect_operations(a->of, &count);
    a->exchange = pki_array_zeroed(a->of->rank_count, sizeof *a->exchange);
    a->failed = !all || !a->exchange;
    if (!a->failed)
        find_exchanges(a);
    for (size_t i = 0, next; i < count && !a->failed; i = next) {
        for (next = i + 1; next < count && all[next].key == all[i].key; next++)
            ;
        classify_group(a, &all[i], next - i);
    }
    bool done = !a->failed && end_exchanges(&a->exchanges, &a->waiting, a->of->rank_count);
    if (done)
        end_waiting(&a->waiting, a->of, a->to);
    free(all);
    return done;
}

static bool analyse(analysis *a)
{
    pki_job_waits *w = a->to;
    size_t ranks = a->of->rank_count;
    w->caused = pki_array_zeroed(ranks, sizeof *w->caused);
    w->sites = pki_array_zeroed(PKI_JOB_WAIT_SITES, sizeof *w->sites);
    bool done = w->caused && w->sites;
    for (int i = 0; done && i < PKI_JOB_WAITS; i++) {
        w->by[i] = pki_array_zeroed(ranks, sizeof *w->by[i]);
        done = w->by[i] != NULL;
    }
    if (!done || !classify_all(a))
        return false;
    w->links = pki_job_links_of_transfers(&a->transfers, a->of, &w->link_count);
    return w->links != NULL;
}

static void finish_analysis(analysis *a)
{
    finish_axis(&a->axis);
    free(a->transfers.all);
    free(a->waiting.all);
    free(a->exchanges.received);
    free(a->exchanges.sent);
    free(a->exchange);
}

/* ---- when steps began, on one time axis ---- */

#define DOUBT_OF_STEP 0.01

static bool tells_begins(const analysis *a)
{
    const pki_job *j = a->of;
    const pki_job_loop *usual = pki_job_usual(j);
    double time = 0, steps = 0;
    for (size_t i = 0; usual && i < usual->block_count * j->rank_count; i++) {
        time += usual->time[i];
        steps += usual->steps[i];
    }
    for (size_t r = 0; r < j->rank_count; r++) {
        int64_t doubt = axis_doubt(&a->axis, 0, r);
        if (doubt < 0 || (double)doubt * steps > DOUBT_OF_STEP * time)
            return false;
    }
    for (size_t l = 0; l < j->loop_count; l++)
        for (size_t i = 0; i < j->loops[l].block_count * j->rank_count; i++)
            if (j->loops[l].steps[i] > 0 &&
                !(j->loops[l].begins[i] >= 0 && j->loops[l].begins[i] <= (double)AXIS_MOST))
                return false;
    return steps > 0;
}

static bool find_begins(analysis *a)
{
    const pki_job *j = a->of;
    pki_job_waits *to = a->to;
    if (!tells_begins(a))
        return true;
    to->begins = pki_array_zeroed(j->loop_count, sizeof *to->begins);
    for (; to->begins && to->begin_count < j->loop_count; to->begin_count++) {
        const pki_job_loop *loop = &j->loops[to->begin_count];
        size_t cells = loop->block_count * j->rank_count;
        double *at = to->begins[to->begin_count] = pki_array_zeroed(cells, sizeof *at);
        for (size_t i = 0; at && i < cells; i++)
            if (loop->steps[i] > 0)
                at[i] = (double)axis_at(&a->axis, i % j->rank_count, (uint64_t)loop->begins[i]);
        if (!at)
            return false;
    }
    return to->begins != NULL;
}

static void finish_waits(pki_job_waits *w)
{
    for (int i = 0; i < PKI_JOB_WAITS; i++)
        free(w->by[i]);
    for (size_t i = 0; i < w->site_count; i++)
        free(w->sites[i].caused);
    free(w->sites);
    free(w->caused);
    free(w->links);
    *w = (pki_job_waits){.begins = w->begins, .begin_count = w->begin_count};
}

bool pki_job_find_waits(pki_job_waits *w, const pki_job *j)
{
    analysis a = {.of = j, .to = w};
    bool any;
    *w = (pki_job_waits){0};
    bool done = make_axis(&a.axis, j, &any) && (!any || (find_begins(&a) && analyse(&a)));
    finish_analysis(&a);
    if (done && !any) {
        w->why_not = "the files have no single operations of ranks that share communicators";
    } else if (done && !w->messages && !w->collectives) {
        finish_waits(w);
        w->why_not = "no operation was found at all of its ranks";
    }
    return done;
}

void pki_job_waits_finish(pki_job_waits *w)
{
    finish_waits(w);
    for (size_t l = 0; l < w->begin_count; l++)
        free(w->begins[l]);
    free(w->begins);
    *w = (pki_job_waits){0};
}

double pki_job_wait_sum(const pki_job *j, const double *by_rank, int32_t *most)
{
    double sum = 0;
    size_t at = 0;
    for (size_t r = 0; r < j->rank_count; r++) {
        sum += by_rank[r];
        at = by_rank[r] > by_rank[at] ? r : at;
    }
    *most = sum > 0 ? j->ranks[at].rank : PKI_JOB_NO_RANK;
    return sum;
}
