#include "measure/fold/timelines.h"

#include "base/memory.h"

#include <stdlib.h>

void pki_timelines_finish(pki_timelines *timelines)
{
    for (size_t i = 0; i < timelines->room; i++) {
        if (timelines->by_id[i])
            pki_series_finish(&timelines->by_id[i]->parts);
        free(timelines->by_id[i]);
    }
    free(timelines->by_id);
    *timelines = (pki_timelines){0};
}

static pki_timeline *timeline_of(pki_timelines *timelines, uint32_t id)
{
    if (!pki_array_fit(&timelines->by_id, &timelines->room, id + (size_t)1, sizeof(pki_timeline *)))
        return NULL;
    if (!timelines->by_id[id])
        timelines->by_id[id] = calloc(1, sizeof(pki_timeline));
    return timelines->by_id[id];
}

void pki_timelines_add(pki_timelines *timelines, uint32_t id, uint64_t ns, double value)
{
    pki_timeline *timeline = timeline_of(timelines, id);
    if (timeline)
        pki_timeline_add(timeline, ns, value);
}

bool pki_timelines_fill(const pki_timelines *timelines, uint32_t id, pki_counter_row *row)
{
    if (id >= timelines->room || !timelines->by_id[id])
        return true;
    return pki_timeline_fill(timelines->by_id[id], row);
}
