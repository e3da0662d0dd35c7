/* lib/measure/fold/stats.c - pk/stats.h: what has been folded, to the caller. */
#include <pk/stats.h>

#include <errno.h>

#include "core/inside.h"
#include "measure/fold/fold.h"

static pk_status stats_of(uint32_t id, pk_stats *stats)
{
    pk_status status = PK_EOFF;
    int saved = errno;
    if (!pki_go_inside())
        return pki_fail_inside();
    pki_stats_begin(stats);
    pki_fold_lock();
    pki_fold *fold = pki_fold_now();
    if (fold) {
        pki_fold_all(fold);
        status = id && pki_fold_stats(fold, id, stats) ? PK_OK : PK_ENOENT;
    }
    pki_stats_finish(stats, 1);
    pki_fold_unlock();
    pki_go_outside();
    errno = saved;
    return status;
}

pk_status pk_region_stats(const pk_region *region, pk_stats *stats)
{
    if (!region || !stats)
        return PK_EINVAL;
    uint32_t id = pki_load(&region->id);
    return stats_of(id ? id : pki_region_id_of(region), stats);
}

pk_status pk_step_stats(pk_stats *stats)
{
    return stats ? stats_of(PKI_NAME_STEP, stats) : PK_EINVAL;
}
