/* lib/measure/fold/read.c - one name's distribution: what has been folded, and what threads keep.
 */
#include "measure/fold/fold.h"

bool pki_fold_stats(const pki_fold *fold, uint32_t id, pk_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    if (slot)
        pki_stats_add_slot(stats, slot);
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_thread *t = pki_registry_block(fold->registry, i);
        const pki_slot *lost = pki_table_slot(&t->lost, id);
        if (lost)
            pki_stats_add_slot(stats, lost);
        if (id == PKI_NAME_TOO_MANY)
            pki_stats_add_slot(stats, &t->last_resort);
    }
    pki_registry_unlock();
    return stats->count > 0;
}

/* Of the losses up to this one. */
static uint64_t unsettled_in(const pki_thread *t, uint32_t id, uint64_t made)
{
    uint64_t ns = 0;
    for (uint64_t i = t->losses_folded; i != made; i++)
        if (t->losses[i % PKI_LOSSES].id == id)
            ns += t->losses[i % PKI_LOSSES].own;
    return ns;
}

uint64_t pki_fold_unsettled(const pki_fold *fold, uint32_t id)
{
    uint64_t ns = 0;
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_thread *t = pki_registry_block(fold->registry, i);
        ns += unsettled_in(t, id, pki_load_acquire(&t->losses_made)); /* pairs with note_loss */
    }
    pki_registry_unlock();
    return ns;
}

/* Of the thread's lost calls, whose self time comes just before its loss is noted. It is read again
 * if one was noted meanwhile: PKI_LOSSES times at most, as they all wait for the fold. */
static uint64_t settled_self(const pki_thread *t, const pki_slot *lost)
{
    uint64_t made, self;
    do {
        made = pki_load_acquire(&t->losses_made); /* pairs with note_loss */
        self = pki_load_acquire(&lost->self);
    } while (made != pki_load(&t->losses_made));
    return self - unsettled_in(t, lost->id, made);
}

static void add_sums(pki_fold_sum *sum, const pki_slot *slot, uint64_t self)
{
    sum->count += pki_load(&slot->count);
    sum->sum += pki_load(&slot->sum);
    sum->self += self;
    sum->bytes += pki_load(&slot->bytes);
    sum->untimed += pki_load(&slot->untimed);
}

bool pki_fold_sums(const pki_fold *fold, uint32_t id, pki_fold_sum *sum)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    *sum = (pki_fold_sum){0};
    if (slot)
        add_sums(sum, slot, slot->self);
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_thread *t = pki_registry_block(fold->registry, i);
        slot = pki_table_slot(&t->lost, id);
        if (slot)
            add_sums(sum, slot, settled_self(t, slot));
    }
    pki_registry_unlock();
    return sum->count > 0;
}

bool pki_fold_values(const pki_fold *fold, uint32_t id, pki_value_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    bool fits = !slot || pki_value_stats_add(stats, (const pki_values *)slot);
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++) {
        const pki_slot *lost = pki_table_slot(&pki_registry_block(fold->registry, i)->lost, id);
        if (lost)
            fits = pki_value_stats_add(stats, (const pki_values *)lost) && fits;
    }
    pki_registry_unlock();
    return fits;
}

double pki_fold_threads(const pki_fold *fold, uint32_t id)
{
    uint64_t sum = 0, most = 0;
    for (size_t i = 0; i < fold->thread_count; i++) {
        const pki_thread_fold *t = &fold->threads[i];
        uint64_t ns = id < t->work_room ? t->work[id] : 0;
        sum += ns;
        most = PKI_MAX(most, ns);
    }
    return most ? (double)sum / (double)most : 0;
}
