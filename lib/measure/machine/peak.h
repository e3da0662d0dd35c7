/* lib/measure/machine/peak.h - the peak that a step's operations are held against, with its source.
 *
 * Of a process that devices work for: what the data sheet in the table says of them (devices.h), in
 * the precision that the user has named. Else what `pk machine` has measured of the processors that
 * the process may use: min(processors x one, all), in single precision unless the user names
 * double. A number of the user's goes before both. What is not known is not guessed: there is a
 * sentence then, and no MFU.
 */
#pragma once

#include "measure/machine/machine.h"
#include "measure/summary.h"

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
