#include "job/figures/links.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

typedef struct gathering {
    const job *of;
    job_links *to;
    table comms, operations, sequences; /* keys of what there is, in its order */
    size_t comm_room, operation_room, arrival_room;
    double **waited, **time, **busbw; /* by communicator; by operation: then by rank, -1: none */
    size_t waited_room, time_room, busbw_room;
} gathering;

static double *none(const job *j)
{
    double *values = memory_resized(NULL, (j->rank_count + 1) * sizeof *values);
    for (size_t r = 0; r < j->rank_count; r++)
        values[r] = -1;
    return values;
}

static size_t index_of_comm(gathering *g, const pki_comm_row *row)
{
    char key[400];
    snprintf(key, sizeof key, "%.100s\x1f%.200s\x1f%" PRIx64, row->library, row->name, row->id);
    uint32_t at = table_add(&g->comms, key);
    if (at < g->to->comm_count)
        return at;
    memory_fit(&g->to->comms, &g->comm_room, at + (size_t)1, sizeof *g->to->comms);
    memory_fit(&g->waited, &g->waited_room, at + (size_t)1, sizeof *g->waited);
    g->to->comms[at] = (job_comm){.library = memory_copy(row->library),
                                  .name = memory_copy(row->name),
                                  .id = row->id,
                                  .size = row->size};
    g->waited[at] = none(g->of);
    g->to->comm_count++;
    return at;
}

static void add_comm(gathering *g, size_t rank, const pki_comm_row *row)
{
    size_t at = index_of_comm(g, row);
    job_comm *c = &g->to->comms[at];
    c->ranks += g->waited[at][rank] < 0;
    c->calls += (double)row->calls;
    c->bytes += (double)row->bytes;
    g->waited[at][rank] = (g->waited[at][rank] < 0 ? 0 : g->waited[at][rank]) + (double)row->waited;
}

static size_t index_of_operation(gathering *g, size_t comm, const pki_operation_row *row)
{
    char key[100];
    snprintf(key, sizeof key, "%zu %u %" PRIu64, comm, row->op, row->size);
    uint32_t at = table_add(&g->operations, key);
    if (at < g->to->operation_count)
        return at;
    memory_fit(&g->to->operations, &g->operation_room, at + (size_t)1, sizeof *g->to->operations);
    memory_fit(&g->time, &g->time_room, at + (size_t)1, sizeof *g->time);
    memory_fit(&g->busbw, &g->busbw_room, at + (size_t)1, sizeof *g->busbw);
    g->to->operations[at] = (job_operation){.comm = comm, .op = row->op, .size = row->size};
    g->time[at] = none(g->of);
    g->busbw[at] = none(g->of);
    g->to->operation_count++;
    return at;
}

static void add_operation(gathering *g, size_t rank, size_t comm, const pki_operation_row *row)
{
    size_t at = index_of_operation(g, comm, row);
    job_operation *o = &g->to->operations[at];
    o->calls += (double)row->time.count;
    o->bytes += (double)row->bytes;
    g->time[at][rank] = row->time.mean;
    if (row->busbw.count)
        g->busbw[at][rank] = row->busbw.mean;
}

static bool is_collective(uint32_t op)
{
    return op <= PK_OP_SCATTER || op == PK_OP_BARRIER;
}

static void add_call(gathering *g, size_t rank, size_t comm, const pki_comm_call_row *row)
{
    char key[100];
    if (!row->sequence || !is_collective(row->op))
        return;
    snprintf(key, sizeof key, "%zu %" PRIu64, comm, row->sequence);
    uint32_t at = table_add(&g->sequences, key);
    if (at == g->to->arrival_count) {
        memory_fit(&g->to->arrivals, &g->arrival_room, at + (size_t)1, sizeof *g->to->arrivals);
        g->to->arrivals[at] = (job_arrival){
            .comm = comm, .op = row->op, .sequence = row->sequence, .shortest = UINT64_MAX};
        g->to->arrival_count++;
    }
    job_arrival *a = &g->to->arrivals[at];
    a->ranks++;
    a->bytes = row->bytes > a->bytes ? row->bytes : a->bytes;
    a->longest = row->duration > a->longest ? row->duration : a->longest;
    if (row->duration < a->shortest) {
        a->shortest = row->duration;
        a->last = g->of->ranks[rank].rank;
    }
}

static void add_rank(gathering *g, size_t rank)
{
    const pki_comm_summary *c = &g->of->ranks[rank].comm;
    for (size_t i = 0; i < c->comm_count; i++)
        add_comm(g, rank, &c->comms[i]);
    for (size_t i = 0; i < c->collective_count; i++)
        if (c->collectives[i].comm < c->comm_count)
            add_operation(g, rank, index_of_comm(g, &c->comms[c->collectives[i].comm]),
                          &c->collectives[i]);
    for (size_t i = 0; i < c->slowest_count; i++)
        if (c->slowest[i].comm < c->comm_count)
            add_call(g, rank, index_of_comm(g, &c->comms[c->slowest[i].comm]), &c->slowest[i]);
}

/* ---- what comes out ---- */

static int32_t lowest(const job *j, const double *values)
{
    size_t found = j->rank_count;
    for (size_t r = 0; r < j->rank_count; r++)
        if (values[r] >= 0 && (found == j->rank_count || values[r] < values[found]))
            found = r;
    return found < j->rank_count ? j->ranks[found].rank : JOB_NO_RANK;
}

static int by_sort_and_size(const void *x, const void *y)
{
    const job_operation *a = x, *b = y;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->op != b->op)
        return a->op < b->op ? -1 : 1;
    return (a->size > b->size) - (a->size < b->size);
}

static uint64_t apart(const job_arrival *a)
{
    return a->longest - a->shortest;
}

static int furthest_first(const void *x, const void *y)
{
    const job_arrival *a = x, *b = y;
    if (apart(a) != apart(b))
        return apart(a) < apart(b) ? 1 : -1;
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return (a->sequence > b->sequence) - (a->sequence < b->sequence);
}

static void keep_shared(job_links *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->arrival_count; i++)
        if (l->arrivals[i].ranks > 1)
            l->arrivals[kept++] = l->arrivals[i];
    l->arrival_count = kept;
    if (kept)
        qsort(l->arrivals, kept, sizeof *l->arrivals, furthest_first);
}

static void finish_sums(gathering *g)
{
    job_links *l = g->to;
    for (size_t i = 0; i < l->comm_count; i++) {
        l->comms[i].waited = job_spread_of(g->of, g->waited[i]);
        free(g->waited[i]);
    }
    for (size_t i = 0; i < l->operation_count; i++) {
        l->operations[i].time = job_spread_of(g->of, g->time[i]);
        l->operations[i].busbw = job_spread_of(g->of, g->busbw[i]);
        l->operations[i].slowest = lowest(g->of, g->busbw[i]);
        free(g->time[i]);
        free(g->busbw[i]);
    }
    free(g->waited);
    free(g->time);
    free(g->busbw);
}

job_links job_find_links(const job *j)
{
    job_links l = {0};
    gathering g = {.of = j, .to = &l};
    for (size_t r = 0; r < j->rank_count; r++)
        add_rank(&g, r);
    finish_sums(&g);
    if (l.operation_count)
        qsort(l.operations, l.operation_count, sizeof *l.operations, by_sort_and_size);
    keep_shared(&l);
    table_finish(&g.comms);
    table_finish(&g.operations);
    table_finish(&g.sequences);
    return l;
}

void job_links_finish(job_links *l)
{
    for (size_t i = 0; i < l->comm_count; i++) {
        free(l->comms[i].library);
        free(l->comms[i].name);
    }
    free(l->comms);
    free(l->operations);
    free(l->arrivals);
    *l = (job_links){0};
}
