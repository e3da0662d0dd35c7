/* lib/measure/machine/roofline.h - regions beside what the machine can do, and the peak of a step
 */
#pragma once

#include "measure/machine/machine.h"
#include "measure/summary.h"

/* ---- the peak that a step's operations are held against, with its source ---- */

/* Of a process that devices work for: what the data sheet in the table says of them (devices.h), in
 * the precision that the user has named. Else what `pk machine` has measured of the processors that
 * the process may use: min(processors x one, all), in single precision unless the user names
 * double. A number of the user's goes before both. What is not known is not guessed: there is a
 * sentence then, and no MFU. */

/* The option `peak`: "bf16", "989.5e12", or "bf16:989.5e12". */
typedef struct pki_peak_wish {
    char precision[8]; /* "": none was named */
    double flops;      /* per second; 0: none was given */
} pki_peak_wish;

/* False: it is none of these. */
bool pki_peak_parse(const char *text, pki_peak_wish *wish);

typedef struct pki_peak_place {
    const pki_machine *machine; /* NULL: there is no file, and... */
    const char *no_machine;     /* ...why */
    const char *gpu;            /* the model's name; "": none is known */
    size_t gpus;                /* that worked for the process */
    uint64_t processors;        /* that the process may use */
} pki_peak_place;

typedef struct pki_peak {
    double flops;      /* per second; 0: not known */
    char precision[8]; /* "": that of a number of the user's */
    char source[300];  /* or why it is not known */
} pki_peak;

void pki_peak_find(const pki_peak_wish *wish, const pki_peak_place *place, pki_peak *peak);

/* Peak, MFU and HFU; without the words. */
void pki_utilisation_rate(pki_utilisation *u, const pki_peak *peak);

/* MFU and HFU of steps that are summed up already. False without memory. */
bool pki_utilisation_fill(pki_utilisation *u, const pki_peak *peak);

/* ---- regions with bytes and operations beside what the machine can do ---- */

/* The roofline model (S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual
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
 * bytes are of files, messages, samples), but for those that devices worked for. */

/* Is there any region to be held against it? */
bool pki_roofline_wanted(const pki_summary *summary);

/* Fills summary->roofline, if so. False without memory. */
bool pki_roofline_fill(const pki_machine *machine, pki_summary *summary);
