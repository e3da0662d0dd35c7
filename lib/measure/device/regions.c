#include "measure/device/regions.h"

#include <pk/gpu.h>

#undef pk_region_gpu_stats /* a macro, for callers that leave the size to it */

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

static bool pki_device_region_stats(const pki_fold *fold, uint32_t region, pk_stats *stats)
{
    const pki_slot *slot = pki_table_slot(&fold->streams, region);
    if (slot)
        pki_stats_add_slot(stats, slot);
    return slot != NULL;
}

static bool find(pki_fold *fold, uint32_t id, pk_stats *stats)
{
    return id && pki_device_region_stats(fold, id, stats);
}

pk_status pk_region_gpu_stats(const pk_region *region, pk_stats *stats)
{
    if (!region || !stats)
        return PK_EINVAL;
    uint32_t id = pki_load(&region->id);
    return pki_stats_answer(find, id ? id : pki_region_id_of(region), stats);
}
