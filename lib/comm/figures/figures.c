#include "comm/figures/figures.h"

#include <pk/comm.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "comm/model/communicator.h"
#include "core/record.h"
#include "measure/steps/steps.h"
#include "measure/summary.h"

/* Its part of the time. */
static inline uint64_t pki_timed_operation_share(const pki_timed_operation *op)
{
    uint64_t sharers = op->sharers ? op->sharers : 1;
    return op->end > op->start ? (op->end - op->start) / sharers : 0;
}

/* ---- by which algorithm and protocol operations of a size were done ---- */

static bool is_same(const pki_operation_algorithm *a, const char *algorithm, const char *protocol)
{
    return strncmp(a->algorithm, algorithm, sizeof a->algorithm - 1) == 0 &&
           strncmp(a->protocol, protocol, sizeof a->protocol - 1) == 0;
}

static pki_operation_algorithm *algorithm_of(pki_operation_cell *cell, const char *algorithm,
                                             const char *protocol)
{
    for (size_t i = 0; i < cell->algorithm_count; i++)
        if (is_same(&cell->algorithms[i], algorithm, protocol))
            return &cell->algorithms[i];
    if (cell->algorithm_count == PKI_COMM_ALGORITHMS)
        return &cell->algorithms[PKI_COMM_ALGORITHMS - 1];
    pki_operation_algorithm *a = &cell->algorithms[cell->algorithm_count++];
    if (cell->algorithm_count == PKI_COMM_ALGORITHMS)
        algorithm = "(others)", protocol = "";
    snprintf(a->algorithm, sizeof a->algorithm, "%s", algorithm);
    snprintf(a->protocol, sizeof a->protocol, "%s", protocol);
    return a;
}

/* ---- algorithms ---- */
static void pki_comm_figures_count_algorithm(pki_operation_cell *cell,
                                             const pki_timed_operation *op)
{
    if (!cell || !op->algorithm || !*op->algorithm)
        return;
    pki_operation_algorithm *a =
        algorithm_of(cell, op->algorithm, op->protocol ? op->protocol : "");
    a->calls++;
    a->channels += op->channels;
}

/* ---- with whom messages were exchanged: how many, of how many bytes ---- */

static pki_partner_row *row_of(pki_comm_partners *p, int32_t rank)
{
    size_t at = (uint32_t)rank * UINT32_C(2654435769) % PKI_COUNT_OF(p->table);
    for (; p->table[at]; at = (at + 1) % PKI_COUNT_OF(p->table))
        if (p->rows[p->table[at] - 1].rank == rank)
            return &p->rows[p->table[at] - 1];
    if (p->count == PKI_PARTNERS_MOST)
        return &p->others;
    if (!pki_array_fit(&p->rows, &p->room, p->count + 1, sizeof *p->rows))
        return NULL;
    p->rows[p->count] = (pki_partner_row){.rank = rank};
    p->table[at] = (uint16_t)(p->count + 1);
    return &p->rows[p->count++];
}

bool pki_comm_partners_add(pki_comm_partners *p, const pki_timed_operation *op)
{
    if (!op->partner || !pki_comm_op_is_message(op->op))
        return true;
    pki_partner_row *row = row_of(p, (int32_t)(op->partner - 1));
    if (!row)
        return false;
    bool got = op->op == PK_COMM_OP_RECV;
    *(got ? &row->received : &row->sent) += 1;
    *(got ? &row->received_bytes : &row->sent_bytes) += op->bytes;
    *(got ? &row->received_time : &row->sent_time) += pki_timed_operation_share(op);
    return true;
}

static int by_rank(const void *a, const void *b)
{
    const pki_partner_row *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

pki_partner_row *pki_comm_partners_rows(const pki_comm_partners *p, size_t *count)
{
    pki_partner_row *rows = calloc(p->count + 1, sizeof *rows);
    *count = 0;
    if (!rows)
        return NULL;
    if (p->count) {
        memcpy(rows, p->rows, p->count * sizeof *rows);
        qsort(rows, p->count, sizeof *rows, by_rank);
    }
    *count = p->count;
    if (p->others.sent || p->others.received) {
        rows[p->count] = p->others;
        rows[p->count].rank = PKI_PARTNERS_OTHER;
        ++*count;
    }
    return rows;
}

/* ---- fewer of them ---- */

static uint64_t bytes_of(const pki_partner_row *r)
{
    return r->sent_bytes + r->received_bytes;
}

static int most_first(const void *a, const void *b)
{
    const pki_partner_row *x = a, *y = b;
    bool last_x = x->rank == PKI_PARTNERS_OTHER, last_y = y->rank == PKI_PARTNERS_OTHER;
    if (last_x != last_y)
        return last_x ? 1 : -1;
    if (bytes_of(x) != bytes_of(y))
        return bytes_of(x) < bytes_of(y) ? 1 : -1;
    uint64_t n = x->sent + x->received, m = y->sent + y->received;
    return n != m ? (n < m ? 1 : -1) : by_rank(a, b);
}

static void add_up(pki_partner_row *into, const pki_partner_row *from)
{
    into->sent += from->sent;
    into->sent_bytes += from->sent_bytes;
    into->sent_time += from->sent_time;
    into->received += from->received;
    into->received_bytes += from->received_bytes;
    into->received_time += from->received_time;
}

size_t pki_partners_narrow(pki_partner_row *rows, size_t count, size_t most)
{
    if (count <= most || most == 0)
        return count;
    qsort(rows, count, sizeof *rows, most_first);
    rows[most - 1].rank = PKI_PARTNERS_OTHER;
    for (size_t i = most; i < count; i++)
        add_up(&rows[most - 1], &rows[i]);
    qsort(rows, most - 1, sizeof *rows, by_rank);
    return most;
}

/* ---- the steps that the slowest operations began in ---- */

static bool put(pki_timed_operation *op, const pki_comm_step *step)
{
    if (op->in_step || op->start < step->start || op->start >= step->end)
        return false;
    op->in_step = 1;
    op->step = step->index;
    return true;
}

/* The step that it began in, if that is known by now. */
static void pki_comm_figures_find_step(const pki_comm_figures *c, pki_timed_operation *op)
{
    uint64_t known = PKI_MIN(c->step_count, (uint64_t)PKI_COMM_FIGURES_STEPS);
    for (uint64_t i = 1; i <= known; i++)
        if (put(op, &c->steps[(c->step_count - i) % PKI_COMM_FIGURES_STEPS]))
            return;
}

void pki_comm_figures_step(pki_comm_figures *c, uint64_t index, uint64_t start, uint64_t end)
{
    if (!c)
        return;
    pki_comm_step *step = &c->steps[c->step_count++ % PKI_COMM_FIGURES_STEPS];
    *step = (pki_comm_step){index, start, end};
    for (size_t i = 0; i < c->slow_count; i++)
        put(&c->slow[i], step);
}

/* ---- what has been gathered, as rows of a summary ---- */

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

/* By the id of its name its place among the regions, from 1; 0: none, or no room for its name. */
static uint32_t place_of_region(const builder *f, uint32_t ids[PKI_SEQUENCES_REGIONS], uint32_t id)
{
    pki_sequences *to = &f->out->sequences;
    size_t at = 0;
    while (at < to->region_count && ids[at] != id)
        at++;
    if (!id || at == PKI_SEQUENCES_REGIONS)
        return 0;
    if (at == to->region_count) {
        char *name = region_name(f, id);
        if (!name)
            return 0;
        ids[at] = id;
        to->regions[to->region_count++].name = name;
    }
    return (uint32_t)at + 1;
}

/* Whose clock it is, whoever asks knows. */
static bool build_sequences(builder *f)
{
    const pki_comm_sequences *from = &f->c->sequences;
    pki_sequences *to = &f->out->sequences;
    uint32_t ids[PKI_SEQUENCES_REGIONS];
    *to = (pki_sequences){.operations = from->operations,
                          .one_in = from->one_in,
                          .clock = strdup(""),
                          .rows = calloc(from->count + 1, sizeof *to->rows),
                          .regions = calloc(PKI_SEQUENCES_REGIONS, sizeof *to->regions)};
    if (!to->clock || !to->rows || !to->regions)
        return false;
    if (from->count)
        memcpy(to->rows, from->rows, from->count * sizeof *to->rows);
    to->row_count = from->count;
    for (size_t i = 0; i < to->row_count; i++)
        to->rows[i].region = place_of_region(f, ids, from->rows[i].region);
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
    out->comm.dropped_events = c->dropped_events;
    out->comm.dropped_operations = c->dropped_operations;
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

/* ---- communicators' operations in numbers ---- */

pki_comm_figures *pki_comm_figures_create(void)
{
    return calloc(1, sizeof(pki_comm_figures));
}

void pki_comm_figures_destroy(pki_comm_figures *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->cell_count; i++) {
        pki_tally_finish(&c->cells[i]->time);
        pki_tally_finish(&c->cells[i]->algbw);
        pki_tally_finish(&c->cells[i]->busbw);
        free(c->cells[i]);
    }
    free(c->comms);
    free(c->partners.rows);
    free(c->sequences.rows);
    free(c);
}

/* ---- nccl-tests' figures ---- */

double pki_comm_size(pk_comm_op op, uint64_t bytes, uint32_t ranks)
{
    if (ranks < 2 || op >= PK_COMM_OP_BARRIER)
        return 0;
    return op >= PK_COMM_OP_ALL_GATHER && op <= PK_COMM_OP_SCATTER ? (double)bytes * ranks
                                                                   : (double)bytes;
}

double pki_comm_bus_factor(pk_comm_op op, uint32_t ranks)
{
    double n = ranks;
    if (ranks < 2 || op >= PK_COMM_OP_BARRIER)
        return 0;
    if (op == PK_COMM_OP_ALL_REDUCE)
        return 2 * (n - 1) / n;
    return op >= PK_COMM_OP_ALL_GATHER && op <= PK_COMM_OP_SCATTER ? (n - 1) / n : 1;
}

uint64_t pki_comm_class(uint64_t bytes)
{
    return bytes ? (uint64_t)1 << (63 - __builtin_clzll(bytes)) : 0;
}

/* ---- cells ---- */

static bool is_of(const pki_operation_cell *cell, const pki_timed_operation *op, uint32_t region,
                  uint64_t size)
{
    return cell->comm == op->comm && cell->op == (uint32_t)op->op && cell->region == region &&
           cell->size == size;
}

static uint32_t hash_of(const pki_timed_operation *op, uint32_t region, uint64_t size)
{
    uint64_t h = ((uint64_t)op->comm << 32 | region) * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ size ^ (uint64_t)op->op << 56) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(h >> 32);
}

static pki_operation_cell *make_cell(pki_comm_figures *c, const pki_timed_operation *op,
                                     uint32_t region, uint64_t size)
{
    pki_operation_cell *cell =
        c->cell_count < PKI_COMM_FIGURES_ROWS ? calloc(1, sizeof *cell) : NULL;
    if (!cell)
        return NULL;
    cell->comm = op->comm;
    cell->op = (uint32_t)op->op;
    cell->region = region;
    cell->size = size;
    c->cells[c->cell_count++] = cell;
    return cell;
}

static pki_operation_cell *cell_of(pki_comm_figures *c, const pki_timed_operation *op,
                                   uint32_t region, uint64_t size)
{
    uint32_t at = hash_of(op, region, size) % PKI_COUNT_OF(c->table);
    for (; c->table[at]; at = (at + 1) % PKI_COUNT_OF(c->table))
        if (is_of(c->cells[c->table[at] - 1], op, region, size))
            return c->cells[c->table[at] - 1];
    pki_operation_cell *cell = make_cell(c, op, region, size);
    if (cell)
        c->table[at] = (uint16_t)c->cell_count;
    return cell;
}

static pki_comm_cell *comm_of(pki_comm_figures *c, uint32_t comm)
{
    bool there = pki_array_fit(&c->comms, &c->comm_room, comm + (size_t)1, sizeof *c->comms);
    return there ? &c->comms[comm] : NULL;
}

/* ---- an operation ---- */

static bool count_in(pki_operation_cell *cell, const pki_timed_operation *op)
{
    if (!cell)
        return false;
    cell->bytes += op->bytes;
    cell->exposed += PKI_MIN(op->exposed, pki_timed_operation_share(op));
    return pki_tally_add(&cell->time, (double)pki_timed_operation_share(op), 1);
}

/* Bytes per nanosecond are GB/s. What took no time on this clock has no bandwidth. */
static bool count_bandwidth(pki_operation_cell *cell, const pki_timed_operation *op)
{
    double size = pki_comm_size(op->op, op->bytes, op->ranks);
    double factor = pki_comm_bus_factor(op->op, op->ranks);
    if (!cell || size <= 0 || pki_timed_operation_share(op) == 0 || op->unrated)
        return true;
    double algbw = size / (double)pki_timed_operation_share(op);
    bool kept = pki_tally_add(&cell->algbw, algbw, 1);
    return pki_tally_add(&cell->busbw, algbw * factor, 1) && kept;
}

static void insert_if_slow(pki_comm_figures *c, const pki_timed_operation *op)
{
    size_t at = c->slow_count;
    while (at > 0 && pki_timed_operation_share(&c->slow[at - 1]) < pki_timed_operation_share(op))
        at--;
    if (at == PKI_COMM_FIGURES_SLOWEST)
        return;
    c->slow_count = PKI_MIN(c->slow_count + 1, (size_t)PKI_COMM_FIGURES_SLOWEST);
    memmove(&c->slow[at + 1], &c->slow[at], (c->slow_count - 1 - at) * sizeof c->slow[0]);
    c->slow[at] = *op;
    c->slow[at].algorithm = c->slow[at].protocol = NULL; /* the caller's */
    pki_comm_figures_find_step(c, &c->slow[at]);
}

void pki_comm_figures_add(pki_comm_figures *c, const pki_timed_operation *op)
{
    pki_comm_cell *comm = c ? comm_of(c, op->comm) : NULL;
    if (!comm) {
        if (c)
            c->unmeasured++;
        return;
    }
    comm->calls++;
    comm->bytes += op->bytes;
    comm->time += pki_timed_operation_share(op);
    comm->exposed += PKI_MIN(op->exposed, pki_timed_operation_share(op));
    comm->on_stream += op->on_stream ? pki_timed_operation_share(op) : 0;
    pki_union_add(&comm->busy, op->start, op->end);
    pki_union_add(&comm->waited, PKI_MAX(op->start, op->end - PKI_MIN(op->exposed, op->end)),
                  op->end);
    comm->in_flight = PKI_MAX(comm->in_flight, op->in_flight);
    pki_operation_cell *sized = cell_of(c, op, 0, pki_comm_class(op->bytes));
    bool timed = count_in(sized, op), rated = count_bandwidth(sized, op);
    pki_comm_figures_count_algorithm(sized, op);
    bool placed = count_in(cell_of(c, op, op->region + 1, 0), op);
    bool paired = pki_comm_partners_add(&c->partners, op);
    bool chosen = pki_comm_sequences_add(&c->sequences, op);
    c->unmeasured += !(timed && rated && placed && paired && chosen);
    insert_if_slow(c, op);
}

void pki_comm_figures_set_dropped(pki_comm_figures *c, uint64_t events, uint64_t operations)
{
    if (!c)
        return;
    c->dropped_events = events;
    c->dropped_operations = operations;
}

void pki_comm_figures_add_calls(pki_comm_figures *c, const pki_timed_operation *op, uint32_t calls)
{
    pki_timed_operation one = *op;
    for (uint32_t i = calls; i > 0; i--) {
        one.sequence = op->sequence - (i - 1);
        pki_comm_figures_add(c, &one);
    }
}

/* ---- single operations, chosen so that all their ranks choose the same ---- */

#define KEY_BITS 52 /* readers of JSON make doubles of numbers */

static uint64_t mixed(uint64_t h, uint64_t more)
{
    h = (h ^ more) * UINT64_C(0xFF51AFD7ED558CCD);
    h = (h ^ h >> 33) * UINT64_C(0xC4CEB9FE1A85EC53);
    return h ^ h >> 33;
}

#define LOOKS 32

/* The number of this message on its channel; 0: there is no room for the channel. */
static uint32_t number_of(struct pki_channel *all, uint64_t key)
{
    uint32_t mark = (uint32_t)(key >> 32) | 1;
    for (size_t i = 0; i < LOOKS; i++) {
        struct pki_channel *c = &all[(key + i) % PKI_SEQUENCES_CHANNELS];
        c->mark = c->mark ? c->mark : mark;
        if (c->mark == mark)
            return ++c->messages;
    }
    return 0;
}

static uint64_t key_of_message(pki_comm_sequences *s, const pki_timed_operation *op)
{
    bool got = op->op == PK_COMM_OP_RECV;
    uint64_t key = mixed(op->comm_id, 1);
    key = mixed(key, got ? op->partner : op->self);
    key = mixed(key, got ? op->self : op->partner);
    key = mixed(key, op->tag);
    uint32_t number = number_of(s->channels[got], key);
    return number ? mixed(key, number) : 0;
}

/* 0: it has none. */
static uint64_t key_of(pki_comm_sequences *s, const pki_timed_operation *op)
{
    uint64_t key = 0;
    if (!op->comm_id || op->sharers > 1)
        return 0;
    if (pki_comm_op_is_message(op->op))
        key = op->partner && op->self ? key_of_message(s, op) : 0;
    else if (op->op <= PK_COMM_OP_SCATTER || op->op == PK_COMM_OP_BARRIER)
        key = mixed(mixed(op->comm_id, 2), op->sequence);
    return key & (((uint64_t)1 << KEY_BITS) - 1);
}

size_t pki_sequences_narrow(pki_sequence_row *rows, size_t count, uint64_t *one_in, size_t most)
{
    while (count > most && *one_in < (uint64_t)1 << (KEY_BITS - 1)) {
        size_t kept = 0;
        *one_in *= 2;
        for (size_t i = 0; i < count; i++)
            if (rows[i].key % *one_in == 0)
                rows[kept++] = rows[i];
        count = kept;
    }
    return count < most ? count : most;
}

static bool make_room(pki_comm_sequences *s)
{
    if (!s->rows) {
        s->rows = malloc(PKI_SEQUENCES_MOST * sizeof *s->rows);
        s->one_in = 1;
        return s->rows;
    }
    if (s->count == PKI_SEQUENCES_MOST)
        s->count = pki_sequences_narrow(s->rows, s->count, &s->one_in, PKI_SEQUENCES_MOST - 1);
    return true;
}

bool pki_comm_sequences_add(pki_comm_sequences *s, const pki_timed_operation *op)
{
    uint64_t key = key_of(s, op);
    if (!key)
        return true;
    s->operations++;
    if ((s->one_in && key % s->one_in))
        return true;
    if (!make_room(s))
        return false;
    if (key % s->one_in)
        return true;
    uint64_t duration = pki_timed_operation_share(op);
    s->rows[s->count++] =
        (pki_sequence_row){.key = key,
                           .start = op->start,
                           .duration = duration,
                           .waited = op->exposed < duration ? op->exposed : duration,
                           .bytes = op->bytes,
                           .op = (uint32_t)op->op,
                           .ranks = op->ranks,
                           .partner = (int32_t)op->partner - 1,
                           .region = op->region};
    return true;
}
