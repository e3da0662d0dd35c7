#include "comm/figures/partners.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/compiler.h"
#include "comm/model/operation.h"

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
    bool got = op->op == PK_OP_RECV;
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
