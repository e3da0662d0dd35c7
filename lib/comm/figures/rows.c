/* lib/comm/figures/rows.c - what has been gathered, as rows of a summary. */
#include "comm/figures/cells.h"

#include <stdlib.h>
#include <string.h>

typedef struct builder {
    const pki_comm_figures *c;
    pki_comm_facts_of *facts;
    pki_steps_name *name;
    void *user;
    size_t *row_of; /* a communicator's index to its row */
    pki_comm_summary *out;
} builder;

static char *region_name(const builder *f, uint32_t id)
{
    const char *name = id ? f->name(f->user, id) : NULL;
    return strdup(name ? name : "");
}

static bool build_comm(builder *f, uint32_t index)
{
    static const pki_comm_cell nothing;
    const pki_comm_cell *cell = index < f->c->comm_room ? &f->c->comms[index] : &nothing;
    pki_comm_facts facts = {.library = "", .name = "(unknown)", .rank = -1};
    bool known = f->facts(f->user, index, &facts);
    if (!cell->calls && !(known && facts.enqueued))
        return true;
    f->row_of[index] = f->out->comm_count;
    pki_comm_row *row = &f->out->comms[f->out->comm_count++];
    *row = (pki_comm_row){.library = strdup(facts.library),
                          .name = strdup(facts.name),
                          .id = facts.id,
                          .rank = facts.rank,
                          .size = facts.size,
                          .calls = cell->calls,
                          .bytes = cell->bytes,
                          .time = cell->time,
                          .exposed = cell->exposed,
                          .on_stream = cell->on_stream,
                          .busy = pki_union_length(&cell->busy),
                          .waited = pki_union_length(&cell->waited),
                          .enqueued = facts.enqueued,
                          .started = facts.started,
                          .completed = facts.completed,
                          .under_way = facts.under_way,
                          .in_flight = cell->in_flight};
    return row->library && row->name;
}

/* Given out so far: indices are dense. */
static uint32_t count_comms(const builder *f)
{
    pki_comm_facts facts;
    uint32_t n = (uint32_t)f->c->comm_room;
    while (f->facts(f->user, n, &facts))
        n++;
    return n;
}

/* Also one without an operation that has ended: it may be the one that hangs. */
static bool build_comms(builder *f)
{
    uint32_t n = count_comms(f);
    f->out->comms = calloc(n + 1u, sizeof *f->out->comms);
    f->row_of = calloc(n + 1u, sizeof *f->row_of);
    if (!f->out->comms || !f->row_of)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!build_comm(f, i))
            return false;
    return true;
}

static int by_calls(const void *a, const void *b)
{
    const pki_comm_way *x = a, *y = b;
    if (x->calls != y->calls)
        return x->calls < y->calls ? 1 : -1;
    int by_algorithm = strcmp(x->algorithm, y->algorithm);
    return by_algorithm ? by_algorithm : strcmp(x->protocol, y->protocol);
}

static bool build_algorithms(const pki_operation_cell *cell, pki_operation_row *row)
{
    row->ways = calloc(cell->algorithm_count + 1, sizeof *row->ways);
    for (size_t i = 0; row->ways && i < cell->algorithm_count; i++) {
        const pki_operation_algorithm *from = &cell->algorithms[i];
        pki_comm_way *to = &row->ways[row->way_count++];
        *to = (pki_comm_way){.algorithm = strdup(from->algorithm),
                             .protocol = strdup(from->protocol),
                             .calls = from->calls,
                             .channels = (double)from->channels / (double)from->calls};
        if (!to->algorithm || !to->protocol)
            return false;
    }
    if (row->ways)
        qsort(row->ways, row->way_count, sizeof row->ways[0], by_calls);
    return row->ways;
}

static bool build_sized(const builder *f, const pki_operation_cell *cell)
{
    pki_operation_row *row = &f->out->collectives[f->out->collective_count++];
    *row = (pki_operation_row){.comm = f->row_of[cell->comm],
                               .op = cell->op,
                               .size = cell->size,
                               .bytes = cell->bytes,
                               .exposed = cell->exposed,
                               .time = pki_tally_dist(&cell->time),
                               .algbw = pki_tally_dist(&cell->algbw),
                               .busbw = pki_tally_dist(&cell->busbw)};
    return build_algorithms(cell, row);
}

static bool build_region(const builder *f, const pki_operation_cell *cell)
{
    pki_comm_region_row *row = &f->out->regions[f->out->region_count++];
    *row = (pki_comm_region_row){.region = region_name(f, cell->region - 1),
                                 .comm = f->row_of[cell->comm],
                                 .op = cell->op,
                                 .bytes = cell->bytes,
                                 .exposed = cell->exposed,
                                 .time = pki_tally_dist(&cell->time)};
    return row->region;
}

static bool build_cells(builder *f)
{
    size_t n = f->c->cell_count + 1;
    f->out->collectives = calloc(n, sizeof *f->out->collectives);
    f->out->regions = calloc(n, sizeof *f->out->regions);
    if (!f->out->collectives || !f->out->regions)
        return false;
    for (size_t i = 0; i < f->c->cell_count; i++) {
        const pki_operation_cell *cell = f->c->cells[i];
        if (!(cell->region ? build_region(f, cell) : build_sized(f, cell)))
            return false;
    }
    return true;
}

static bool build_slowest(builder *f)
{
    f->out->slowest = calloc(f->c->slow_count + 1, sizeof *f->out->slowest);
    for (size_t i = 0; f->out->slowest && i < f->c->slow_count; i++) {
        const pki_timed_operation *op = &f->c->slow[i];
        pki_comm_call_row *row = &f->out->slowest[f->out->slowest_count++];
        *row = (pki_comm_call_row){.region = region_name(f, op->region),
                                   .comm = f->row_of[op->comm],
                                   .op = (uint32_t)op->op,
                                   .bytes = op->bytes,
                                   .sequence = op->sequence,
                                   .start = op->start,
                                   .duration = pki_timed_operation_share(op),
                                   .exposed = op->exposed,
                                   .in_step = op->in_step,
                                   .step = op->step};
        if (!row->region)
            return false;
    }
    return f->out->slowest;
}

static bool build_partners(builder *f)
{
    f->out->partners = pki_comm_partners_rows(&f->c->partners, &f->out->partner_count);
    return f->out->partners;
}

/* Whose clock it is, whoever asks knows. */
static bool build_sequences(builder *f)
{
    const pki_comm_sequences *from = &f->c->sequences;
    pki_sequences *to = &f->out->sequences;
    *to = (pki_sequences){.operations = from->operations,
                          .one_in = from->one_in,
                          .clock = strdup(""),
                          .rows = calloc(from->count + 1, sizeof *to->rows)};
    if (!to->clock || !to->rows)
        return false;
    if (from->count)
        memcpy(to->rows, from->rows, from->count * sizeof *to->rows);
    to->row_count = from->count;
    return true;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_size(const void *a, const void *b)
{
    const pki_operation_row *x = a, *y = b;
    int by_comm = order(x->comm, y->comm), by_op = order(x->op, y->op);
    return by_comm ? by_comm : by_op ? by_op : order(x->size, y->size);
}

static int by_time(const void *a, const void *b)
{
    const pki_comm_region_row *x = a, *y = b;
    if (x->time.sum != y->time.sum)
        return x->time.sum < y->time.sum ? 1 : -1;
    int by_comm = order(x->comm, y->comm), by_name = strcmp(x->region, y->region);
    return by_comm ? by_comm : by_name ? by_name : order(x->op, y->op);
}

bool pki_comm_figures_build_rows(const pki_comm_figures *c, pki_comm_facts_of *facts,
                                 pki_steps_name *name, void *user, pki_summary *out)
{
    pki_comm_finish(out);
    if (!c)
        return true;
    builder f = {.c = c, .facts = facts, .name = name, .user = user, .out = &out->comm};
    out->comm.unmeasured = c->unmeasured;
    bool built = build_comms(&f) && build_cells(&f) && build_slowest(&f) && build_partners(&f) &&
                 build_sequences(&f);
    free(f.row_of);
    if (!built) {
        pki_comm_finish(out);
        return false;
    }
    qsort(out->comm.collectives, out->comm.collective_count, sizeof *out->comm.collectives,
          by_size);
    qsort(out->comm.regions, out->comm.region_count, sizeof *out->comm.regions, by_time);
    return true;
}
