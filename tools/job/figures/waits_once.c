#include "job/figures/waits_once.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "comm/model/operation.h"
#include "job/figures/exchange.h"
#include "memory.h"

void job_waiting_add(job_waiting *w, const job_waited *one)
{
    memory_fit(&w->all, &w->room, w->count + 1, sizeof *one);
    w->all[w->count++] = *one;
}

/* ---- what the rank's file says that it waited ---- */

enum { MESSAGES, COLLECTIVES, SORTS };

static int sort_of(const job_waited *w)
{
    return w->sort == JOB_LATE_SENDER || w->sort == JOB_LATE_RECEIVER ? MESSAGES : COLLECTIVES;
}

/* Communicators may be waited for at the same time: then the time in MPI is the bound. */
static double waited_of(const job *j, size_t rank)
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    double waited = 0, share = job_mpi_share(j, rank), run = (double)j->ranks[rank].run.wall;
    bool others = false;
    for (size_t i = 0; i < c->comm_count; i++) {
        waited += (double)c->comms[i].waited;
        others |= strcmp(c->comms[i].library, "MPI") != 0;
    }
    double within = share < 0 || others ? run : share * run;
    within = within > 0 ? within : INFINITY;
    return waited > 0 ? fmin(waited, within) : within; /* older files do not tell */
}

static void find_bounds(const job *j, size_t rank, double bounds[SORTS])
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    double collectives = 0, waited = waited_of(j, rank);
    bounds[MESSAGES] = bounds[COLLECTIVES] = waited;
    for (size_t i = 0; i < c->collective_count; i++)
        if (!pki_comm_op_is_message(c->collectives[i].op))
            collectives += (double)c->collectives[i].exposed;
    if (!c->collective_count)
        return; /* of both together */
    bounds[COLLECTIVES] = fmin(collectives, waited);
    bounds[MESSAGES] = waited - bounds[COLLECTIVES];
}

/* ---- each moment once ---- */

static int by_rank_and(size_t a_rank, size_t b_rank, int64_t a_end, int64_t b_end)
{
    if (a_rank != b_rank)
        return a_rank < b_rank ? -1 : 1;
    return (a_end < b_end) - (a_end > b_end);
}

static int ends_last_first(const void *x, const void *y)
{
    const job_waited *a = x, *b = y;
    return by_rank_and(a->rank, b->rank, a->ends, b->ends);
}

static int is_late_longest_first(const void *x, const void *y)
{
    const job_waited *a = x, *b = y;
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

static void sum_waited(const job_waited *all, size_t count, double sums[SORTS])
{
    int64_t taken[SORTS] = {INT64_MAX, INT64_MAX};
    sums[MESSAGES] = sums[COLLECTIVES] = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].ends > all[i].waits)
            sums[sort_of(&all[i])] +=
                all[i].scale * take(&taken[sort_of(&all[i])], all[i].waits, all[i].ends);
}

/* Adds it to the rank's and to who caused it, times `factors`; without `to` only to the sums. */
static void sum_late(const job_waited *all, size_t count, const double factors[SORTS],
                     job_waits *to, double sums[SORTS])
{
    int64_t taken = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const job_waited *w = &all[i];
        if (w->until <= w->from)
            continue;
        double wait = factors[sort_of(w)] * w->scale * w->share * take(&taken, w->from, w->until);
        sums[sort_of(w)] += wait;
        if (to && wait > 0) {
            to->doubt = PKI_MAX(to->doubt, w->doubt);
            to->by[w->sort][w->rank] += wait;
            to->caused[w->other] += wait;
        }
    }
}

static void find_factors(const job *j, size_t rank, const double stand_for[SORTS],
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

/* Those of one rank. */
static void add_rank(const job *j, job_waited *all, size_t count, job_waits *to)
{
    double stand_for[SORTS], late[SORTS] = {0}, factors[SORTS] = {1, 1};
    qsort(all, count, sizeof *all, ends_last_first);
    sum_waited(all, count, stand_for);
    qsort(all, count, sizeof *all, is_late_longest_first);
    sum_late(all, count, factors, NULL, late);
    find_factors(j, all->rank, stand_for, late, factors);
    sum_late(all, count, factors, to, late);
}

static int by_rank(const void *x, const void *y)
{
    const job_waited *a = x, *b = y;
    return by_rank_and(a->rank, b->rank, 0, 0);
}

void job_waiting_end(job_waiting *w, const job *j, job_waits *to)
{
    if (w->count)
        qsort(w->all, w->count, sizeof *w->all, by_rank);
    for (size_t i = 0, next; i < w->count; i = next) {
        for (next = i + 1; next < w->count && w->all[next].rank == w->all[i].rank; next++)
            ;
        add_rank(j, &w->all[i], next - i, to);
    }
    free(w->all);
    *w = (job_waiting){0};
}
