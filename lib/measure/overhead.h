/* lib/measure/overhead.h - what perfkit takes of a process, as one figure. */
#pragma once

#include "core/overhead.h"
#include "measure/summary.h"

/* Of a thread that was watched for less nothing is known: the kernel counts what runs at its ticks,
 * and what waits when it has waited, from before it was watched, too. */
#define PKI_PROCESSOR_LEAST_NS 50000000u

/* Fills out->overhead, out->run.cpu and out->steps.processor; out->run.wall, out->counts and the
 * steps have to be there. */
void pki_overhead_fill(const pki_toll *toll, pki_summary *out);

typedef struct pki_overhead_text {
    char text[480];
} pki_overhead_text;

/* "12.3 ms recording (22.8 ns per region), 101 ms in its collector thread, ...": its parts. */
pki_overhead_text pki_overhead_parts(const pki_overhead *overhead);
