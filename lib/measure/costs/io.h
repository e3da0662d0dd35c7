/* lib/measure/costs/io.h - the kernel's counts of a process's I/O, sample by sample.
 *
 * Counts only grow; what a run did is the last sample less the first. The best that a device gave
 * is that of the samples a tenth of a second apart or more. No clock, no file.
 */
#pragma once

#include "measure/costs/rows.h"

#define PKI_IO_WINDOW 100000000u /* ns */

/* The text of /proc/PID/io. False if it is none. */
bool pki_io_parse(const char *text, pki_io_counts *counts);

/* What one has more than the other; 0 where it has less. */
pki_io_counts pki_io_more(const pki_io_counts *now, const pki_io_counts *before);

/* All zero is an empty one. */
typedef struct pki_io_account {
    bool begun;
    uint64_t since, at, window_at; /* ns */
    pki_io_counts first, last, window;
    double best_read, best_write;
} pki_io_account;

void pki_io_add(pki_io_account *account, const pki_io_counts *counts, uint64_t now);

/* Sets what is counted; the other members are left as they are. */
void pki_io_fill(const pki_io_account *account, pki_io_summary *out);
