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

/* Adds its verdict if there is reason to. False without memory. */
typedef bool pki_rule(pki_summary *summary, pki_sentence *words);

/* Is the device busy for most of the step, so that the loop's waits are for it? By stream spans
 * too, unless it has to be measured. */
bool pki_gpu_is_busy(const pki_summary *summary, bool measured);

/* " GPU 0 is busy for 62.0 % of the step.", if there is one. */
void pki_sentence_add_gpu(pki_sentence *words, const pki_summary *summary);

pki_rule pki_verdict_comm_exposed, pki_verdict_launch_bound, pki_verdict_copy_bound,
    pki_verdict_sync_bound;

/* When the loop has been looked at. */
pki_rule pki_verdict_gpu_idle, pki_verdict_gpu_bound;

pki_rule pki_verdict_gpu_error, pki_verdict_gpu_throttled, pki_verdict_gpu_leak,
    pki_verdict_gpu_near_limit, pki_verdict_gpu_allocates;
