/* lib/measure/costs/events.h - what sampled calls have counted, as figures of a region.
 *
 * Of calls with values x, each of which stands for w calls:
 *
 *     mean      m = sum(w x) / sum(w)
 *     quotient  R = sum(w a) / sum(w b)                         instructions per cycle, say; or
 *                                                               slots that retired, of all slots
 *     error     2 x sqrt(n / (n - 1) x sum(w^2 (x - m)^2) / sum(w)^2 x (1 - n / calls))
 *               2 x sqrt(n / (n - 1) x sum(w^2 (a - R b)^2) / sum(w b)^2 x (1 - n / calls))
 *
 * by linearisation (Cochran, Sampling Techniques, 3rd edition, chapters 6 and 11), with the
 * correction for finite populations: where all calls were sampled there is no error. Below
 * PKI_EVENTS_FEW samples, not of all calls, it is not known. No clock, no kernel.
 */
#pragma once

#include "core/sampler.h"
#include "measure/costs/rows.h"

#define PKI_EVENTS_FEW 10

/* Adds what another thread has counted of the same region. */
void pki_event_sums_add(pki_event_sums *sum, const pki_event_sums *more);

/* The figures of that region, which had so many calls; mask: which events there are. All but the
 * name. */
void pki_event_sums_fill(const pki_event_sums *row, uint64_t calls, uint32_t mask,
                         pki_events_row *out);
