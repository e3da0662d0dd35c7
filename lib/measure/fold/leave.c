/* lib/measure/fold/leave.c - what is left of a thread that has ended. */
#include "measure/fold/leave.h"

#include <string.h>

/* The slots of a block's lost calls, into a table. */
static void merge_lost(pki_fold *fold, pki_table *to, const pki_thread *t)
{
    pki_arena *arena = fold->registry->arena;
    pki_slot *rest = t->last_resort.count ? pki_table_add(arena, to, PKI_NAME_TOO_MANY) : NULL;
    pki_table_merge(arena, to, &t->lost);
    if (rest)
        pki_table_merge_slot(arena, to, rest, &t->last_resort);
}

/* Those that found no room there share one, as all calls without room do. */
static void merge_the_rest(pki_fold *fold, const pki_thread *t)
{
    for (const pki_slot *s = t->lost.first; s; s = pki_table_next(s))
        if (!pki_table_slot(&fold->totals, s->id) && pki_name_at(s->id)->kind <= PK_WAIT)
            pki_table_merge_slot(fold->registry->arena, &fold->totals, fold->last_resort, s);
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

static void take_leave(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    pki_ended_thread *ended = ended_of(fold, t);
    ended->recorded += pki_load(&t->recorded);
    ended->dropped += pki_load(&t->dropped);
    for (int k = 0; k < PKI_KINDS; k++)
        ended->kinds[k] += alone->kinds[k];
    memset(alone->kinds, 0, sizeof alone->kinds);
    if (fold->per_thread) {
        merge_lost(fold, &ended->calls, t);
        pki_table_merge(fold->registry->arena, &ended->calls, &alone->calls);
    }
}

void pki_fold_leave(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t)
{
    merge_lost(fold, &fold->totals, t);
    merge_the_rest(fold, t);
    take_leave(fold, alone, t);
    pki_table_reset(fold->registry->arena, &alone->calls);
}
