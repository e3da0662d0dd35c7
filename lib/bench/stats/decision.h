/* lib/bench/stats/decision.h - slower, faster, same, or cannot tell: for all benchmarks of a file
 */
#pragma once

#include "bench/stats/evidence.h"

/* ---- slower, faster, same, or cannot tell: for all benchmarks of a file at once ---- */

/* With the margin m, a benchmark is *slower* if its ratio is above 1 + m beyond chance, *faster* if
 * it is below 1 / (1 + m), *the same* if its whole interval lies between them, and otherwise it
 * *cannot be told*. A margin of 0 asks whether there is any difference at all; a build's code and
 * pages lie elsewhere than its twin's, which alone moves some kernels by 1 %
 * (docs/internals/bench.md).
 *
 * Holm's procedure (bench/stats/evidence.h) over all benchmarks keeps the probability of even one
 * wrong "slower" or "faster" in the whole file at alpha. The interval that is shown is the one at
 * the level at which the benchmark was tested, so that the verdict can be read from it. */

typedef enum pki_change { PKI_UNSURE, PKI_SAME, PKI_FASTER, PKI_SLOWER } pki_change;

typedef struct pki_decision {
    pki_change change;
    double ratio;          /* new time over old time; NAN if there is nothing to compare */
    pki_interval interval; /* of the ratio; 0 and infinity where nothing bounds it */
    double p;              /* two-sided, against the margin, this benchmark alone */
    double level;          /* the alpha at which it was tested */
    size_t more;           /* PKI_UNSURE: how many replications more it would take to tell with
                              probability 0.9; PKI_TOO_MANY: that many or more; 0: unknown */
} pki_decision;

/* margin 0.01: 1 %. False without memory. */
bool pki_decide(const pki_evidence *evidence, size_t count, double margin, double alpha,
                pki_decision *decisions);

/* "cannot tell", "same", "faster", "slower" */
const char *pki_change_name(pki_change change);
