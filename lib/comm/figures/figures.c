#include "comm/figures/cells.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/compiler.h"

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
    if (ranks < 2 || op >= PK_OP_BARRIER)
        return 0;
    return op >= PK_OP_ALL_GATHER && op <= PK_OP_SCATTER ? (double)bytes * ranks : (double)bytes;
}

double pki_comm_bus_factor(pk_comm_op op, uint32_t ranks)
{
    double n = ranks;
    if (ranks < 2 || op >= PK_OP_BARRIER)
        return 0;
    if (op == PK_OP_ALL_REDUCE)
        return 2 * (n - 1) / n;
    return op >= PK_OP_ALL_GATHER && op <= PK_OP_SCATTER ? (n - 1) / n : 1;
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

void pki_comm_figures_add_calls(pki_comm_figures *c, const pki_timed_operation *op, uint32_t calls)
{
    pki_timed_operation one = *op;
    for (uint32_t i = calls; i > 0; i--) {
        one.sequence = op->sequence - (i - 1);
        pki_comm_figures_add(c, &one);
    }
}
