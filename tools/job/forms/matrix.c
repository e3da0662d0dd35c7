/* tools/job/forms/matrix.c - who talks to whom, for the page: senders x receivers. Beyond
 * JOB_PAGE_MATRIX ranks a cell is of a block of them, and has the sum of what they sent.
 */
#include "job/forms/page.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "memory.h"

typedef struct cell {
    double messages, bytes;
} cell;

static cell *cells_of(const job_exchange *e, size_t per_block, size_t blocks)
{
    cell *cells = memory_zeroed(blocks * blocks, sizeof *cells);
    for (size_t i = 0; i < e->pair_count; i++) {
        const job_pair *p = &e->pairs[i];
        cell *to = &cells[p->from / per_block * blocks + p->to / per_block];
        to->messages += p->messages;
        to->bytes += p->bytes;
    }
    return cells;
}

/* The first and the last rank of each. */
static void put_ranks(const job *j, size_t per_block, pki_json *to)
{
    pki_json_open(to, "ranks", '[');
    for (size_t r = 0; r < j->rank_count; r += per_block) {
        size_t last = PKI_MIN(r + per_block, j->rank_count) - 1;
        pki_json_open(to, NULL, '[');
        pki_json_int(to, NULL, j->ranks[r].rank);
        pki_json_int(to, NULL, j->ranks[last].rank);
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
}

void job_page_matrix(const job_findings *f, const char *key, pki_json *to)
{
    const job *j = f->of;
    size_t per_block = (j->rank_count + JOB_PAGE_MATRIX - 1) / JOB_PAGE_MATRIX;
    if (!f->exchange.pair_count)
        return;
    size_t blocks = (j->rank_count + per_block - 1) / per_block;
    cell *cells = cells_of(&f->exchange, per_block, blocks);
    pki_json_open(to, key, '{');
    pki_json_uint(to, "ranks_per_block", per_block);
    put_ranks(j, per_block, to);
    pki_json_open(to, "cells", '[');
    for (size_t i = 0; i < blocks * blocks; i++) {
        if (!(cells[i].messages > 0))
            continue;
        pki_json_open(to, NULL, '[');
        pki_json_uint(to, NULL, i / blocks);
        pki_json_uint(to, NULL, i % blocks);
        pki_json_real(to, NULL, cells[i].messages);
        pki_json_real(to, NULL, cells[i].bytes);
        pki_json_close(to, ']');
    }
    pki_json_close(to, ']');
    pki_json_close(to, '}');
    free(cells);
}
