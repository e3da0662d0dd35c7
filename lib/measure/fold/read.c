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

static void add_sums(pki_fold_sum *sum, const pki_slot *slot)
{
    if (!slot)
        return;
    sum->count += pki_load(&slot->count);
    sum->sum += pki_load(&slot->sum);
    sum->self += pki_load(&slot->self);
    sum->bytes += pki_load(&slot->bytes);
    sum->untimed += pki_load(&slot->untimed);
}

bool pki_fold_sums(const pki_fold *fold, uint32_t id, pki_fold_sum *sum)
{
    *sum = (pki_fold_sum){0};
    add_sums(sum, pki_table_slot(&fold->totals, id));
    pki_registry_lock();
    for (uint32_t i = 0; i < pki_registry_blocks(fold->registry); i++)
        add_sums(sum, pki_table_slot(&pki_registry_block(fold->registry, i)->lost, id));
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
