/* lib/measure/fold/ended.c - what is left of a thread that has ended. */
#include <string.h>

#include "measure/fold/fold.h"
#include "measure/fold/order.h"

/* The slots of a block's lost calls, into a table. */
static void merge_lost(pki_fold *fold, pki_table *to, const pki_thread *t)
{
    pki_spans *spans = &fold->registry->arena->spans;
    pki_slot *rest =
        t->last_resort.count ? pki_table_add(spans, to, PKI_NAME_TOO_MANY, PK_OTHER) : NULL;
    pki_table_merge(spans, to, &t->lost);
    if (rest)
        pki_slot_merge(spans, &to->pool, rest, &t->last_resort);
}

/* Those that found no room there share one, as all calls without room do. */
static void merge_the_rest(pki_fold *fold, const pki_thread *t)
{
    for (const pki_slot *s = t->lost.first; s; s = pki_table_next(s))
        if (!pki_table_slot(&fold->totals, s->id) && s->kind <= PK_WAIT)
            pki_slot_merge(&fold->registry->arena->spans, &fold->totals.pool, fold->last_resort, s);
}

static pki_ended_thread *ended_of(pki_fold *fold, const pki_thread *t)
{
    if (fold->ended_count == PKI_ENDED_MOST)
        return &fold->ended_others;
    pki_ended_thread *ended = &fold->ended[fold->ended_count++];
    memcpy(ended->name, t->name, sizeof ended->name);
    ended->name[sizeof ended->name - 1] = '\0';
    ended->tid = t->tid;
    return ended;
}

static void record_ended(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    pki_ended_thread *ended = ended_of(fold, t);
    ended->recorded += pki_load(&t->recorded);
    ended->dropped += pki_load(&t->dropped);
    for (int k = 0; k < PKI_KINDS; k++)
        ended->kinds[k] += alone->kinds[k];
    memset(alone->kinds, 0, sizeof alone->kinds);
    if (fold->per_thread) {
        merge_lost(fold, &ended->calls, t);
        pki_table_merge(&fold->registry->arena->spans, &ended->calls, &alone->calls);
    }
}

static void fold_ended_thread(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    merge_lost(fold, &fold->totals, t);
    merge_the_rest(fold, t);
    record_ended(fold, alone, t);
    pki_table_reset(&fold->registry->arena->spans, &alone->calls);
}

void pki_fold_recycle(pki_fold *fold, pki_thread *t)
{
    pki_spare_bring_home(t);
    pki_fold_one(fold, t); /* calls may have been lost since */
    pki_fold_pending(fold, t);
    pki_fold_settle(t);
    pki_thread_fold *alone = pki_fold_thread(fold, t);
    fold_ended_thread(fold, alone, t);
    alone->tracked = alone->starved = false;
    pki_registry_lock();
    pki_registry_recycle(fold->registry, t);
    pki_registry_unlock();
}
