#include "measure/device/regions.h"

#include <errno.h>

#include <pk/gpu.h>

#include "core/inside.h"

/* Without memory for a region's own distribution the span is not in any: the trace has it. */
void pki_device_region_add(pki_fold *fold, uint32_t region, uint64_t ns)
{
    pki_spans *spans = &fold->registry->arena->spans;
    pki_slot *slot = pki_table_add(spans, &fold->streams, region, pki_name_kind(region));
    if (!slot)
        return;
    pki_bump(&slot->self, ns);
    pki_table_count(spans, &fold->streams, slot, ns);
}

bool pki_device_region_stats(const pki_fold *fold, uint32_t region, pk_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->streams, region);
    if (slot)
        pki_stats_add_slot(stats, slot);
    return slot != NULL;
}

pk_status pk_region_gpu_stats(const pk_region *region, pk_stats *stats)
{
    if (!region || !stats)
        return PK_EINVAL;
    int saved = errno;
    uint32_t id = pki_load(&region->id);
    id = id ? id : pki_region_id_of(region);
    if (!pki_go_inside())
        return pki_fail_inside();
    pki_stats_begin(stats);
    pki_fold_lock();
    const pki_fold *fold = pki_fold_now();
    bool any = fold && id && pki_device_region_stats(fold, id, stats);
    pki_stats_finish(stats, 1);
    pki_fold_unlock();
    pki_go_outside();
    errno = saved;
    return any ? PK_OK : fold ? PK_ENOENT : PK_EOFF;
}
