#include "backend/cuda/comm/operation.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/memory.h"

/* ---- parts beyond the first ---- */

#define BATCH 64u
#define BATCHES 1024u

typedef struct part {
    pki_cuda_operation operation;
    uint32_t next; /* while free */
} part;

static pki_free_list free_ones PKI_ALIGNED;
static uint32_t batches;
static part *chunks[BATCHES];

static part *at(uint32_t index)
{
    part *chunk =
        pki_load_acquire(&chunks[(index - 1) / BATCH]); /* pairs with the release in grow */
    return &chunk[(index - 1) % BATCH];
}

pki_cuda_operation *pki_cuda_part_at(uint32_t index)
{
    return &at(index)->operation;
}

static uint32_t *link_of(void *none, uint32_t index)
{
    (void)none;
    return &at(index)->next;
}

static void release(uint32_t index)
{
    pki_free_list_push(&free_ones, link_of, NULL, index);
}

/* One of a new batch. */
static PKI_COLD uint32_t grow(void)
{
    part *chunk = pki_load(&batches) < BATCHES ? calloc(BATCH, sizeof *chunk) : NULL;
    if (!chunk)
        return 0;
    uint32_t batch = pki_fetch_add(&batches, 1u);
    if (batch >= BATCHES) {
        free(chunk);
        return 0;
    }
    pki_store_release(&chunks[batch], chunk); /* pairs with the acquire in at */
    for (uint32_t i = BATCH; i > 1; i--)
        release(batch * BATCH + i);
    return batch * BATCH + 1;
}

uint32_t pki_cuda_part_allocate(void)
{
    uint32_t index = pki_free_list_pop(&free_ones, link_of, NULL);
    return PKI_LIKELY(index) ? index : grow();
}

/* The parts of the parent's operations are not used again. */
void pki_cuda_operations_after_fork(void)
{
    free_ones = 0;
}

/* ---- operations ---- */

static pk_comm *comm_of(const pki_cuda_operation *o)
{
    return pki_comm_of_name(pki_comm_unpack(o->what, o->extra).comm);
}

static pki_comm_payload enqueue(const pki_cuda_operation *o)
{
    uint64_t sequence;
    pki_comm_fields f = pki_comm_unpack(o->what, o->extra);
    pk_comm *comm = pki_comm_of_name(f.comm);
    pki_comm_payload payload = {o->what, o->extra};
    for (uint32_t i = 0; comm && i < o->calls; i++)
        payload = pki_comm_enqueue(comm, (pk_comm_op)f.op, (pk_comm_type)f.type, f.peer, f.parent,
                                   &sequence);
    return payload;
}

void pki_cuda_operation_enqueue(pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o)) {
        pki_comm_payload payload = enqueue(o);
        o->what = payload.what;
        o->extra = payload.extra;
    }
}

/* Its parts go back, and it is none any more. */
static void clear(pki_cuda_operation *o)
{
    uint32_t left = o->more;
    o->what = 0;
    o->more = 0;
    while (left) {
        uint32_t next = pki_cuda_part_at(left)->more;
        release(left);
        left = next;
    }
}

static void complete(const pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o))
        for (uint32_t i = o->calls; i > 0; i--)
            pki_comm_complete(o->what, pki_comm_extra_before(o->extra, i - 1));
}

void pki_cuda_operation_unseen(pki_cuda_operation *o)
{
    pki_cuda_operation_enqueue(o);
    pki_cuda_operation_complete(o);
}

void pki_cuda_operation_begun(const pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o)) {
        pk_comm *comm = o->calls ? comm_of(o) : NULL;
        if (comm)
            pki_comm_begun(comm, pki_comm_whole(comm, (uint32_t)o->extra));
    }
}

void pki_cuda_operation_complete(pki_cuda_operation *o)
{
    complete(o);
    clear(o);
}

static void abandon(const pki_cuda_operation *o)
{
    for (; o; o = pki_cuda_operation_next(o)) {
        pk_comm *comm = comm_of(o);
        for (uint32_t i = 0; comm && i < o->calls; i++)
            pki_comm_abandon(comm);
    }
}

void pki_cuda_operation_abandon(pki_cuda_operation *o)
{
    if (!o->what)
        return;
    if (pki_cuda_operation_is_numbered(o))
        abandon(o);
    clear(o);
}

/* ---- replays ---- */

void pki_cuda_replay_enqueue(const pki_cuda_operation *pattern)
{
    for (const pki_cuda_operation *o = pattern->what ? pattern : NULL; o;
         o = pki_cuda_operation_next(o))
        enqueue(o);
}

pki_comm_payload pki_cuda_replay_payload(const pki_cuda_operation *pattern)
{
    pki_comm_fields f = pki_comm_unpack(pattern->what, pattern->extra);
    const pk_comm *comm = comm_of(pattern);
    if (comm && pattern->calls)
        f.sequence = (uint32_t)(pki_comm_oldest(comm) + pattern->calls - 1);
    return pki_comm_pack(&f);
}

void pki_cuda_replay_abandon(const pki_cuda_operation *pattern)
{
    if (pattern->what)
        abandon(pattern);
}
