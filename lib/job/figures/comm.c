#include "job/figures/figures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pk/comm.h>

#include "base/memory.h"

/* ---- MPI over the ranks, and who talks to whom ---- */

static bool is_mpi(const char *name)
{
    return strncmp(name, "MPI_", 4) == 0;
}

/* ---- time ---- */

/* -1: none of it. */
static double mpi_time(const pki_job *j, size_t rank)
{
    double time = -1;
    for (size_t i = 0; i < j->region_count; i++) {
        double self =
            is_mpi(j->regions[i].name) ? pki_job_self_of_rank(&j->ranks[rank], &j->regions[i]) : -1;
        if (self >= 0)
            time = (time < 0 ? 0 : time) + self;
    }
    return time;
}

double pki_job_mpi_share(const pki_job *j, size_t rank)
{
    double time = mpi_time(j, rank), run = (double)j->ranks[rank].run.wall;
    return time < 0 || run <= 0 ? -1 : time / run;
}

static bool find_time(const pki_job *j, pki_job_exchange *e)
{
    double *shares = pki_array_zeroed(j->rank_count, sizeof *shares);
    e->calls = pki_array_zeroed(j->region_count, sizeof *e->calls);
    bool done = shares && e->calls;
    for (size_t r = 0; done && r < j->rank_count; r++) {
        double time = mpi_time(j, r);
        shares[r] = pki_job_mpi_share(j, r);
        e->mpi_ranks += time >= 0;
        e->mpi_time += time >= 0 ? time : 0;
        e->run_time += time >= 0 ? (double)j->ranks[r].run.wall : 0;
    }
    if (done)
        e->share = pki_job_spread_of(j, shares);
    free(shares);
    for (size_t i = 0; done && i < j->region_count; i++) /* they are by self time already */
        if (is_mpi(j->regions[i].name))
            e->calls[e->call_count++] = i;
    return done;
}

/* ---- who talks to whom ---- */

/* rank_count: it is not there. */
static size_t index_of_rank(const pki_job *j, int32_t rank)
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

static const pki_partner_row *partner_of(const pki_job *j, size_t rank, int32_t other)
{
    const pki_comm_summary *c = &j->ranks[rank].comm;
    for (size_t i = 0; i < c->partner_count; i++)
        if (c->partners[i].rank == other)
            return &c->partners[i];
    return NULL;
}

static bool add_pair(pki_job_exchange *e, size_t *room, const pki_job_pair *pair)
{
    if (!pki_array_fit(&e->pairs, room, e->pair_count + 1, sizeof *e->pairs))
        return false;
    e->pairs[e->pair_count++] = *pair;
    e->messages += pair->messages;
    e->bytes += pair->bytes;
    return true;
}

/* Counted by who has got them, if the sender does not tell of this rank. */
static bool add_received(const pki_job *j, pki_job_exchange *e, size_t *room, size_t rank,
                         const pki_partner_row *p)
{
    size_t from = index_of_rank(j, p->rank);
    if (!p->received || from == j->rank_count || partner_of(j, from, j->ranks[rank].rank))
        return true;
    e->other_messages -= (double)p->received;
    e->other_bytes -= (double)p->received_bytes;
    return add_pair(e, room,
                    &(pki_job_pair){from, rank, (double)p->received, (double)p->received_bytes,
                                    (double)p->received_time});
}

static bool add_partner(const pki_job *j, pki_job_exchange *e, size_t *room, size_t rank,
                        const pki_partner_row *p)
{
    size_t to = index_of_rank(j, p->rank);
    bool done = true;
    if (p->rank == PKI_PARTNERS_OTHER || to == j->rank_count) {
        e->other_messages += (double)p->sent;
        e->other_bytes += (double)p->sent_bytes;
    } else if (p->sent) {
        done = add_pair(e, room,
                        &(pki_job_pair){rank, to, (double)p->sent, (double)p->sent_bytes,
                                        (double)p->sent_time});
    }
    return done && add_received(j, e, room, rank, p);
}

static int by_pair(const void *x, const void *y)
{
    const pki_job_pair *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

static bool find_pairs(const pki_job *j, pki_job_exchange *e)
{
    size_t room = 0;
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; i < j->ranks[r].comm.partner_count; i++)
            if (!add_partner(j, e, &room, r, &j->ranks[r].comm.partners[i]))
                return false;
    if (e->pair_count)
        qsort(e->pairs, e->pair_count, sizeof *e->pairs, by_pair);
    e->other_messages = e->other_messages < 0 ? 0 : e->other_messages;
    e->other_bytes = e->other_bytes < 0 ? 0 : e->other_bytes;
    return true;
}

/* ---- where in the program ---- */

/* The number of an operation within a region; PKI_TEXTS_NONE: without memory. */
static uint32_t number_of(pki_texts *keys, const pki_comm_region_row *row)
{
    size_t length = strlen(row->region);
    char *key = malloc(length + 2);
    if (!key)
        return PKI_TEXTS_NONE;
    key[0] = (char)('a' + row->op);
    memcpy(key + 1, row->region, length + 1);
    uint32_t at = pki_texts_add(keys, key);
    free(key);
    return at;
}

static bool add_site(pki_job_exchange *e, pki_texts *keys, size_t *room,
                     const pki_comm_region_row *row)
{
    uint32_t at = number_of(keys, row);
    if (at == PKI_TEXTS_NONE || !pki_array_fit(&e->sites, room, at + (size_t)1, sizeof *e->sites))
        return false;
    if (at == e->site_count)
        e->sites[e->site_count++] = (pki_job_site){.region = strdup(row->region), .op = row->op};
    e->sites[at].calls += (double)row->time.count;
    e->sites[at].bytes += (double)row->bytes;
    e->sites[at].time += row->time.sum;
    return e->sites[at].region != NULL;
}

static int most_time_first(const void *x, const void *y)
{
    const pki_job_site *a = x, *b = y;
    if (a->time != b->time)
        return a->time < b->time ? 1 : -1;
    int by_name = strcmp(a->region, b->region);
    return by_name ? by_name : (a->op > b->op) - (a->op < b->op);
}

static bool find_sites(const pki_job *j, pki_job_exchange *e)
{
    pki_texts keys = {0};
    size_t room = 0;
    bool done = true;
    for (size_t r = 0; r < j->rank_count; r++)
        for (size_t i = 0; done && i < j->ranks[r].comm.region_count; i++)
            done = add_site(e, &keys, &room, &j->ranks[r].comm.regions[i]);
    pki_texts_finish(&keys);
    if (done && e->site_count)
        qsort(e->sites, e->site_count, sizeof *e->sites, most_time_first);
    return done;
}

bool pki_job_find_exchange(pki_job_exchange *e, const pki_job *j)
{
    *e = (pki_job_exchange){0};
    return find_time(j, e) && find_pairs(j, e) && find_sites(j, e);
}

void pki_job_exchange_finish(pki_job_exchange *e)
{
    for (size_t i = 0; i < e->site_count; i++)
        free(e->sites[i].region);
    free(e->sites);
    free(e->calls);
    free(e->pairs);
    *e = (pki_job_exchange){0};
}

/* ---- communication: communicators, operations by size, who comes last ---- */

typedef struct gathering {
    const pki_job *of;
    pki_job_links *to;
    pki_texts comms, operations, sequences; /* keys of what there is, in its order */
    size_t comm_room, operation_room, arrival_room;
    double **waited, **time, **busbw; /* by communicator; by operation: then by rank, -1: none */
    size_t waited_room, time_room, busbw_room;
} gathering;

static double *none(const pki_job *j)
{
    double *values = pki_array_zeroed(j->rank_count, sizeof *values);
    for (size_t r = 0; values && r < j->rank_count; r++)
        values[r] = -1;
    return values;
}

static bool add_new_comm(gathering *g, const pki_comm_row *row)
{
    pki_job_links *l = g->to;
    size_t at = l->comm_count;
    if (!pki_array_fit(&l->comms, &g->comm_room, at + 1, sizeof *l->comms) ||
        !pki_array_fit(&g->waited, &g->waited_room, at + 1, sizeof *g->waited))
        return false;
    l->comms[l->comm_count++] = (pki_job_comm){.library = strdup(row->library),
                                               .name = strdup(row->name),
                                               .id = row->id,
                                               .size = row->size};
    g->waited[at] = none(g->of);
    return l->comms[at].library && l->comms[at].name && g->waited[at];
}

/* PKI_TEXTS_NONE: without memory; so it is with operations. */
static uint32_t index_of_comm(gathering *g, const pki_comm_row *row)
{
    char key[400];
    snprintf(key, sizeof key, "%.100s\x1f%.200s\x1f%" PRIx64, row->library, row->name, row->id);
    uint32_t at = pki_texts_add(&g->comms, key);
    bool there = at == PKI_TEXTS_NONE || at < g->to->comm_count;
    return there || add_new_comm(g, row) ? at : PKI_TEXTS_NONE;
}

static bool add_comm(gathering *g, size_t rank, const pki_comm_row *row)
{
    uint32_t at = index_of_comm(g, row);
    if (at == PKI_TEXTS_NONE)
        return false;
    pki_job_comm *c = &g->to->comms[at];
    double *waited = &g->waited[at][rank];
    c->ranks += *waited < 0;
    c->calls += (double)row->calls;
    c->bytes += (double)row->bytes;
    *waited = (*waited < 0 ? 0 : *waited) + (double)row->waited;
    return true;
}

static bool add_new_operation(gathering *g, const pki_job_operation *o)
{
    pki_job_links *l = g->to;
    size_t at = l->operation_count;
    if (!pki_array_fit(&l->operations, &g->operation_room, at + 1, sizeof *l->operations) ||
        !pki_array_fit(&g->time, &g->time_room, at + 1, sizeof *g->time) ||
        !pki_array_fit(&g->busbw, &g->busbw_room, at + 1, sizeof *g->busbw))
        return false;
    l->operations[l->operation_count++] = *o;
    g->time[at] = none(g->of);
    g->busbw[at] = none(g->of);
    return g->time[at] && g->busbw[at];
}

static uint32_t index_of_operation(gathering *g, size_t comm, const pki_operation_row *row)
{
    char key[100];
    const pki_job_operation o = {.comm = comm, .op = row->op, .size = row->size};
    snprintf(key, sizeof key, "%zu %u %" PRIu64, comm, row->op, row->size);
    uint32_t at = pki_texts_add(&g->operations, key);
    bool there = at == PKI_TEXTS_NONE || at < g->to->operation_count;
    return there || add_new_operation(g, &o) ? at : PKI_TEXTS_NONE;
}

static bool add_operation(gathering *g, size_t rank, size_t comm, const pki_operation_row *row)
{
    uint32_t at = index_of_operation(g, comm, row);
    if (at == PKI_TEXTS_NONE)
        return false;
    pki_job_operation *o = &g->to->operations[at];
    o->calls += (double)row->time.count;
    o->bytes += (double)row->bytes;
    g->time[at][rank] = row->time.mean;
    if (row->busbw.count)
        g->busbw[at][rank] = row->busbw.mean;
    return true;
}

static bool is_collective(uint32_t op)
{
    return op <= PK_COMM_OP_SCATTER || op == PK_COMM_OP_BARRIER;
}

static bool add_call(gathering *g, size_t rank, size_t comm, const pki_comm_call_row *row)
{
    char key[100];
    pki_job_links *l = g->to;
    if (!row->sequence || !is_collective(row->op))
        return true;
    snprintf(key, sizeof key, "%zu %" PRIu64, comm, row->sequence);
    uint32_t at = pki_texts_add(&g->sequences, key);
    if (at == PKI_TEXTS_NONE ||
        !pki_array_fit(&l->arrivals, &g->arrival_room, at + (size_t)1, sizeof *l->arrivals))
        return false;
    if (at == l->arrival_count)
        l->arrivals[l->arrival_count++] = (pki_job_arrival){
            .comm = comm, .op = row->op, .sequence = row->sequence, .shortest = UINT64_MAX};
    pki_job_arrival *a = &l->arrivals[at];
    a->ranks++;
    a->bytes = row->bytes > a->bytes ? row->bytes : a->bytes;
    a->longest = row->duration > a->longest ? row->duration : a->longest;
    if (row->duration < a->shortest) {
        a->shortest = row->duration;
        a->last = g->of->ranks[rank].rank;
    }
    return true;
}

static bool add_rank(gathering *g, size_t rank)
{
    const pki_comm_summary *c = &g->of->ranks[rank].comm;
    bool done = true;
    for (size_t i = 0; done && i < c->comm_count; i++)
        done = add_comm(g, rank, &c->comms[i]);
    for (size_t i = 0; done && i < c->collective_count; i++)
        if (c->collectives[i].comm < c->comm_count) {
            uint32_t at = index_of_comm(g, &c->comms[c->collectives[i].comm]);
            done = at != PKI_TEXTS_NONE && add_operation(g, rank, at, &c->collectives[i]);
        }
    for (size_t i = 0; done && i < c->slowest_count; i++)
        if (c->slowest[i].comm < c->comm_count) {
            uint32_t at = index_of_comm(g, &c->comms[c->slowest[i].comm]);
            done = at != PKI_TEXTS_NONE && add_call(g, rank, at, &c->slowest[i]);
        }
    return done;
}

/* ---- what comes out ---- */

static int32_t lowest(const pki_job *j, const double *values)
{
    size_t found = j->rank_count;
    for (size_t r = 0; r < j->rank_count; r++)
        if (values[r] >= 0 && (found == j->rank_count || values[r] < values[found]))
            found = r;
    return found < j->rank_count ? j->ranks[found].rank : PKI_JOB_NO_RANK;
}

static int by_sort_and_size(const void *x, const void *y)
{
    const pki_job_operation *a = x, *b = y;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

static uint64_t apart(const pki_job_arrival *a)
{
    return a->longest - a->shortest;
}

static int furthest_first(const void *x, const void *y)
{
    const pki_job_arrival *a = x, *b = y;
    if (apart(a) != apart(b))
        return apart(a) < apart(b) ? 1 : -1;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static void keep_shared(pki_job_links *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->arrival_count; i++)
        if (l->arrivals[i].ranks > 1)
            l->arrivals[kept++] = l->arrivals[i];
    l->arrival_count = kept;
    if (kept)
        qsort(l->arrivals, kept, sizeof *l->arrivals, furthest_first);
}

static void sum_up(const gathering *g)
{
    pki_job_links *l = g->to;
    for (size_t i = 0; i < l->comm_count; i++)
        l->comms[i].waited = pki_job_spread_of(g->of, g->waited[i]);
    for (size_t i = 0; i < l->operation_count; i++) {
        l->operations[i].time = pki_job_spread_of(g->of, g->time[i]);
        l->operations[i].busbw = pki_job_spread_of(g->of, g->busbw[i]);
        l->operations[i].slowest = lowest(g->of, g->busbw[i]);
    }
    if (l->operation_count)
        qsort(l->operations, l->operation_count, sizeof *l->operations, by_sort_and_size);
    keep_shared(l);
}

static void finish_gathering(gathering *g)
{
    for (size_t i = 0; i < g->to->comm_count; i++)
        free(g->waited[i]);
    for (size_t i = 0; i < g->to->operation_count; i++) {
        free(g->time[i]);
        free(g->busbw[i]);
    }
    free(g->waited);
    free(g->time);
    free(g->busbw);
    pki_texts_finish(&g->comms);
    pki_texts_finish(&g->operations);
    pki_texts_finish(&g->sequences);
}

bool pki_job_find_links(pki_job_links *l, const pki_job *j)
{
    gathering g = {.of = j, .to = l};
    bool done = true;
    *l = (pki_job_links){0};
    for (size_t r = 0; done && r < j->rank_count; r++)
        done = add_rank(&g, r);
    if (done)
        sum_up(&g);
    finish_gathering(&g);
    return done;
}

void pki_job_links_finish(pki_job_links *l)
{
    for (size_t i = 0; i < l->comm_count; i++) {
        free(l->comms[i].library);
        free(l->comms[i].name);
    }
    free(l->comms);
    free(l->operations);
    free(l->arrivals);
    *l = (pki_job_links){0};
}
