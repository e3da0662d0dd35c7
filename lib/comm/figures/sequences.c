#include "comm/figures/sequences.h"

#include <stdlib.h>

#include "comm/model/operation.h"
#include "core/record.h"

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
    bool got = op->op == PK_OP_RECV;
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
    else if (op->op <= PK_OP_SCATTER || op->op == PK_OP_BARRIER)
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
                           .partner = (int32_t)op->partner - 1};
    return true;
}
