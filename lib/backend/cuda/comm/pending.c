#include "backend/cuda/comm/pending.h"

#include <stdlib.h>

#define MOST 64u

typedef struct waiting {
    const pk_comm *comm;
    pki_cuda_lane *lane;
    CUstream stream;
    uint32_t name, session;
} waiting;

static _Thread_local struct {
    waiting *list;
    uint32_t count;
} pending;

bool pki_cuda_pending_add(pk_comm *comm, pki_cuda_lane *lane, CUstream stream, uint32_t name)
{
    if (!pending.list)
        pending.list = calloc(MOST, sizeof *pending.list);
    if (!pending.list || pending.count == MOST)
        return false;
    pending.list[pending.count++] =
        (waiting){comm, lane, stream, name, pki_load(&pki_cuda_session)};
    return true;
}

void pki_cuda_pending_free(void)
{
    free(pending.list);
    pending.list = NULL;
    pending.count = 0;
}

static bool is_same(const waiting *a, const waiting *b)
{
    return a->lane == b->lane && a->name == b->name && a->session == b->session;
}

static waiting remove_at(uint32_t i)
{
    waiting w = pending.list[i];
    pending.count--;
    for (; i < pending.count; i++)
        pending.list[i] = pending.list[i + 1];
    return w;
}

/* Of a group of several communicators the others, too: true, if there were any. */
static bool is_awaited(const waiting *w, bool forget)
{
    bool any = false;
    for (uint32_t i = pending.count; i-- > 0;)
        if (is_same(&pending.list[i], w)) {
            any = true;
            if (forget)
                remove_at(i);
        }
    return any;
}

static void settle(const waiting *w, pki_cuda_arrival how)
{
    bool others = is_awaited(w, how != PKI_CUDA_ARRIVED);
    if (w->session != pki_load(&pki_cuda_session) || !pki_cuda_lane_is_own(w->lane, w->stream))
        return;
    if (how != PKI_CUDA_ARRIVED || !others)
        pki_cuda_operation_settle(w->lane, w->name, how == PKI_CUDA_ARRIVED,
                                  how == PKI_CUDA_FAILED);
}

/* The newest first, as they nest. */
void pki_cuda_pending_settle(const pk_comm *comm, pki_cuda_arrival how)
{
    for (uint32_t i = pending.count; i-- > 0;) {
        if (i >= pending.count || pending.list[i].comm != comm)
            continue;
        waiting w = remove_at(i);
        settle(&w, how);
    }
}
