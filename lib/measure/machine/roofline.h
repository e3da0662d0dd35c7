/* lib/measure/machine/roofline.h - regions with bytes and operations beside what the machine can
 * do.
 *
 * The roofline model (S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual
 * Performance Model for Multicore Architectures", CACM 52(4), 2009):
 *
 *     intensity  = operations / bytes
 *     attainable = min(peak, intensity x bandwidth)
 *
 * for as many threads as ran the region at once:
 *
 *     threads       = time of all its calls / time of the calls of the thread with most of it,
 *                     at most the machine's processors
 *     peak(threads) = min(threads x peak of one, peak of all); bandwidth(threads) likewise
 *     achieved      = threads x operations / time of all its calls
 *
 * Bandwidth is the triad's. Nobody says of operations whether they are of double or single
 * precision, so there is a roof of each. A region without bytes is held against the peak, one
 * without operations against the bandwidth. What achieves more than 1.2 x the peak of its threads
 * in single precision has others at work for it (a library's threads, inside one region): it is
 * held against the roof of all processors.
 *
 * Held against it are regions with operations, and those of kind PK_COMPUTE with bytes (of others,
 * bytes are of files, messages, samples), but for those that devices worked for.
 */
#pragma once

#include "measure/machine/machine.h"
#include "measure/summary.h"

/* Is there any region to be held against it? */
bool pki_roofline_wanted(const pki_summary *summary);

/* Fills summary->roofline, if so. False without memory. */
bool pki_roofline_fill(const pki_machine *machine, pki_summary *summary);
