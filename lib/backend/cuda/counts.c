#include "backend/cuda/counts.h"

#include "backend/cuda/lane.h"

/* Outcomes first: begun is counted before any of them. */
static void add_lane(pk_gpu_counts *c, const pki_cuda_lane *l)
{
    const pki_cuda_counters *o = &l->counters;
    c->recorded += pki_load(&l->recorded);
    c->lost += pki_load(&l->lost);
    c->replayed += pki_load(&l->replayed);
    c->sampled += pki_load(&l->sampled);
    c->operations += pki_load(&l->operations);
    c->refused += pki_load(&o->refused);
    c->kept_out += pki_load(&o->kept_out);
    c->dropped += pki_load_acquire(&o->dropped); /* these pair with the releases in cuda/span.c */
    c->skipped += pki_load_acquire(&o->skipped);
    uint64_t captured = pki_load_acquire(&o->captured);
    c->captured += captured;
    c->unbalanced += pki_load(&o->unbalanced);
    c->stray_ends += pki_load(&o->stray_ends);
    c->begun += pki_load(&o->begun) - captured;
}

void pki_cuda_sum(pk_gpu_counts *c)
{
    uint64_t dropped = pki_load(&pki_cuda_refused_dropped);
    uint64_t begun = pki_load(&pki_cuda_refused_begun);
    *c = (pk_gpu_counts){.size = sizeof *c, .begun = begun, .dropped = dropped};
    c->skipped = begun - dropped;
    for (const pki_cuda_lane *l = pki_cuda_lanes(); l; l = l->next)
        if (pki_cuda_lane_is_current(l))
            add_lane(c, l);
    for (pki_cuda_context *x = pki_cuda_contexts(); x; x = x->next) {
        c->contexts += pki_load(&x->session) == pki_load(&pki_cuda_session);
        c->pairs += pki_load(&x->pool.pairs);
    }
}
