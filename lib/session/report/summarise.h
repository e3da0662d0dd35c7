/* lib/session/report/summarise.h - from the session's memory to a summary */
#pragma once

#include <stdbool.h>

#include "measure/rows.h"

/* ---- what of the processors the process may have, and what it has ---- */

/* The collector reads the kernel's files about once a second while steps are made, less often where
 * there are many threads; threads pay nothing. Memory's nodes, which the kernel may take a while to
 * tell, are read once, at the end. */

/* Under the drain lock. root: of the files, "" but in tests. */
void pki_cpu_side_begin(const char *root);

/* Looks, if it is time to or `now`. stepper: the thread that makes steps; 0: none is known. */
void pki_cpu_side_poll(uint32_t stepper, bool now);

/* Of the thread that makes steps, so far: it was taken off its processor; it gave it up. */
void pki_cpu_side_switches(uint64_t *forced, uint64_t *own);

/* And what is read at the end alone. */
pki_cpu_side pki_cpu_side_end(void);
