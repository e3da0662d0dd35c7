/* lib/measure/fold/stats.c - pk/stats.h: what has been folded, to the caller. */
#include <pk/stats.h>

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "core/inside.h"
#include "measure/fold/fold.h"

/* Macros, for callers that leave the size to them. */
#undef pk_region_stats
#undef pk_step_stats

static pk_stats whole; /* for callers that want the first members alone; under the fold lock */

static pk_status answer(pki_stats_find *find, uint32_t id, pk_stats *stats)
{
    uint32_t size = stats->size;
    pk_stats *all = size == sizeof *stats ? stats : &whole;
    pki_fold *fold = pki_fold_now();
    pki_stats_begin(all);
    bool any = fold && find(fold, id, all);
    pki_stats_finish(all, 1);
    pki_stats_hand_out(all);
    if (all != stats)
        memcpy(stats, all, size);
    stats->size = size;
    return any ? PK_OK : fold ? PK_ENOENT : PK_EOFF;
}

pk_status pki_stats_answer(pki_stats_find *find, uint32_t id, pk_stats *stats)
{
    if (stats->size < 8 || stats->size > sizeof *stats)
        return pki_fail(PK_EINVAL, "pk_stats.size has to be sizeof(pk_stats)");
    int saved = errno;
    if (!pki_inside_enter())
        return pki_fail_inside();
    pki_fold_lock();
    pk_status status = answer(find, id, stats);
    pki_fold_unlock();
    pki_inside_leave();
    errno = saved;
    return status;
}

static bool fold_and_find(pki_fold *fold, uint32_t id, pk_stats *stats)
{
    pki_fold_all(fold);
    return id && pki_fold_stats(fold, id, stats);
}

pk_status pk_region_stats(const pk_region *region, pk_stats *stats)
{
    if (!region || !stats)
        return PK_EINVAL;
    uint32_t id = pki_load(&region->id);
    return pki_stats_answer(fold_and_find, id ? id : pki_region_id_of(region), stats);
}

pk_status pk_step_stats(pk_stats *stats)
{
    return stats ? pki_stats_answer(fold_and_find, PKI_NAME_STEP, stats) : PK_EINVAL;
}
