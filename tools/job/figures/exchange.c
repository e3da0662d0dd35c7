#include "job/figures/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

static bool is_mpi(const char *name)
{
    return strncmp(name, "MPI_", 4) == 0;
}

/* ---- time ---- */

/* -1: none of it. */
static double mpi_time(const job *j, size_t rank)
{
    double time = -1;
    for (size_t i = 0; i < j->region_count; i++) {
        double self =
            is_mpi(j->regions[i].name) ? job_self_of_rank(&j->ranks[rank], &j->regions[i]) : -1;
        if (self >= 0)
            time = (time < 0 ? 0 : time) + self;
    }
    return time;
}

double job_mpi_share(const job *j, size_t rank)
{
    double time = mpi_time(j, rank), run = (double)j->ranks[rank].run.wall;
    return time < 0 || run <= 0 ? -1 : time / run;
}

static void find_time(const job *j, job_exchange *e)
{
    double *shares = memory_zeroed(j->rank_count + 1, sizeof *shares);
    for (size_t r = 0; r < j->rank_count; r++) {
        double time = mpi_time(j, r);
        shares[r] = job_mpi_share(j, r);
        e->mpi_ranks += time >= 0;
        e->mpi_time += time >= 0 ? time : 0;
        e->run_time += time >= 0 ? (double)j->ranks[r].run.wall : 0;
    }
    e->share = job_spread_of(j, shares);
    free(shares);
    e->calls = memory_zeroed(j->region_count + 1, sizeof *e->calls);
    for (size_t i = 0; i < j->region_count; i++) /* they are by self time already */
        if (is_mpi(j->regions[i].name))
            e->calls[e->call_count++] = i;
}

/* ---- who talks to whom ---- */

/* rank_count: it is not there. */
static size_t index_of_rank(const job *j, int32_t rank)
{
    size_t low = 0, high = j->rank_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (j->ranks[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < j->rank_count && j->ranks[low].rank == rank ? low : j->rank_count;
}

static const pki_partner_row *partner_of(const job *j, size_t rank, int32_t other)
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    for (size_t i = 0; i < c->partner_count; i++)
        if (c->partners[i].rank == other)
            return &c->partners[i];
    return NULL;
}

static void add_pair(job_exchange *e, size_t *room, const job_pair *pair)
{
    memory_fit(&e->pairs, room, e->pair_count + 1, sizeof *e->pairs);
    e->pairs[e->pair_count++] = *pair;
    e->messages += pair->messages;
    e->bytes += pair->bytes;
}

/* Counted by who has got them, if the sender does not tell of this rank. */
static void add_received(const job *j, job_exchange *e, size_t *room, size_t rank,
                         const pki_partner_row *p)
{
    size_t from = index_of_rank(j, p->rank);
    if (!p->received || from == j->rank_count || partner_of(j, from, j->ranks[rank].rank))
        return;
    add_pair(e, room,
             &(job_pair){from, rank, (double)p->received, (double)p->received_bytes,
                         (double)p->received_time});
    e->other_messages -= (double)p->received;
    e->other_bytes -= (double)p->received_bytes;
}

static void add_partner(const job *j, job_exchange *e, size_t *room, size_t rank,
                        const pki_partner_row *p)
{
    size_t to = index_of_rank(j, p->rank);
    if (p->rank == PKI_PARTNERS_OTHER || to == j->rank_count) {
        e->other_messages += (double)p->sent;
        e->other_bytes += (double)p->sent_bytes;
    } else if (p->sent) {
        add_pair(
            e, room,
            &(job_pair){rank, to, (double)p->sent, (double)p->sent_bytes, (double)p->sent_time});
    }
    add_received(j, e, room, rank, p);
}

static int by_pair(const void *x, const void *y)
{
    const job_pair *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

static void find_pairs(const job *j, job_exchange *e)
{
    size_t room = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].comm.partner_count; i++)
            add_partner(j, e, &room, r, &j->ranks[r].comm.partners[i]);
    if (e->pair_count)
        qsort(e->pairs, e->pair_count, sizeof *e->pairs, by_pair);
    e->other_messages = e->other_messages < 0 ? 0 : e->other_messages;
    e->other_bytes = e->other_bytes < 0 ? 0 : e->other_bytes;
}

/* ---- where in the program ---- */

static void add_site(job_exchange *e, table *keys, size_t *room, const pki_comm_region_row *row)
{
    char *key = memory_zeroed(strlen(row->region) + 2, 1);
    key[0] = (char)('a' + row->op);
    memcpy(key + 1, row->region, strlen(row->region) + 1);
    uint32_t at = table_add(keys, key);
    free(key);
    if (at == e->site_count) {
        memory_fit(&e->sites, room, at + (size_t)1, sizeof *e->sites);
        e->sites[e->site_count++] = (job_site){.region = memory_copy(row->region), .op = row->op};
    }
    e->sites[at].calls += (double)row->time.count;
    e->sites[at].bytes += (double)row->bytes;
    e->sites[at].time += row->time.sum;
}

static int most_time_first(const void *x, const void *y)
{
    const job_site *a = x, *b = y;
    if (a->time != b->time)
        return a->time < b->time ? 1 : -1;
    int by_name = strcmp(a->region, b->region);
    return by_name ? by_name : (a->op > b->op) - (a->op < b->op);
}

static void find_sites(const job *j, job_exchange *e)
{
    table keys = {0};
    size_t room = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].comm.region_count; i++)
            add_site(e, &keys, &room, &j->ranks[r].comm.regions[i]);
    table_finish(&keys);
    if (e->site_count)
        qsort(e->sites, e->site_count, sizeof *e->sites, most_time_first);
}

job_exchange job_find_exchange(const job *j)
{
    job_exchange e = {0};
    find_time(j, &e);
    find_pairs(j, &e);
    find_sites(j, &e);
    return e;
}

void job_exchange_finish(job_exchange *e)
{
    for (size_t i = 0; i < e->site_count; i++)
        free(e->sites[i].region);
    free(e->sites);
    free(e->calls);
    free(e->pairs);
    *e = (job_exchange){0};
}
