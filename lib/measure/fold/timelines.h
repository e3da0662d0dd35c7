/* lib/measure/fold/timelines.h - the counters' timelines, by the id of their name. */
#pragma once

#include "measure/timeline.h"

typedef struct pki_timelines {
    size_t room;
    pki_timeline **by_id; /* NULL: no sample of it */
} pki_timelines;

/* All zero is empty, too. */
void pki_timelines_finish(pki_timelines *timelines);

/* Without memory the sample is in its counter's distribution only. */
void pki_timelines_add(pki_timelines *timelines, uint32_t id, uint64_t ns, double value);

/* The counter's timeline into its row. False without memory. */
bool pki_timelines_fill(const pki_timelines *timelines, uint32_t id, pki_counter_row *row);
