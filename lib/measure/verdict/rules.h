/* lib/measure/verdict/rules.h - one function for each thing that may be said of a run, and what
 * they share. Only verdict/ includes it.
 *
 * Of devices, the one that is judged is the one that was busy longest in the steady steps, of those
 * that CUPTI has measured if there are any. Shares are of those steps' time. What only CUPTI can
 * tell (gaps between kernels, copies, waits) is only said of steps that it has measured.
 */
#pragma once

#include "measure/verdict/verdict.h"

#define KIND(kind) (1u << (kind))

/* The share of the step that these kinds (a bit each) take together. Added up as integers, so that
 * thresholds are met exactly. */
static inline double pki_verdict_share(const pki_summary *s, unsigned kinds)
{
    const uint64_t *times = s->whole_run.time ? s->whole_run.kinds : s->steps.kinds;
    uint64_t all = 0, some = 0;
    for (unsigned k = 0; k < PKI_SHARES; k++) {
        all += times[k];
        some += kinds & KIND(k) ? times[k] : 0;
    }
    return all > 0 ? (double)some / (double)all : 0;
}

/* Adds its verdict if there is reason to. False without memory. */
typedef bool pki_rule(pki_summary *summary, pki_sentence *words);

/* Is the device busy for most of the step, so that the loop's waits are for it? By stream spans
 * too, unless it has to be measured. */
bool pki_gpu_is_busy(const pki_summary *summary, bool measured);

/* " GPU 0 is busy for 62.0 % of the step.", if there is one. */
void pki_sentence_add_gpu(pki_sentence *words, const pki_summary *summary);

/* A rule, or the rules of a group in its place. A table of them ends with a row of zeroes. */
typedef struct pki_rule_row {
    pki_rule *say;
    pki_yielding yielding;
    const struct pki_rule_row *group;
} pki_rule_row;

/* What devices do in steps, and their memory. */
extern const pki_rule_row pki_gpu_step_rules[], pki_gpu_memory_rules[];

/* Whether the figures are whole, and what perfkit took: the last. */
extern const pki_rule_row pki_trust_rules[];

/* When the loop has been looked at. */
pki_rule pki_verdict_gpu_bound;
