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

/* ---- loop.c ---- */

/* The share of the step that these kinds (a bit each) take together. */
double pki_verdict_share(const pki_summary *summary, unsigned kinds);

pki_rule pki_verdict_input_bound, pki_verdict_communication, pki_verdict_waiting,
    pki_verdict_io_bound, pki_verdict_unsteady, pki_verdict_drifting;

/* Comes right after the rules about the loop and the devices. */
pki_rule pki_verdict_nothing_found;

/* ---- gpu.c ---- */

/* Is the device busy for most of the step, so that the loop's waits are for it? By stream spans
 * too, unless it has to be measured. */
bool pki_gpu_is_busy(const pki_summary *summary, bool measured);

/* " GPU 0 is busy for 62.0 % of the step.", if there is one. */
void pki_sentence_add_gpu(pki_sentence *words, const pki_summary *summary);

pki_rule pki_verdict_comm_exposed, pki_verdict_launch_bound, pki_verdict_copy_bound,
    pki_verdict_sync_bound;

/* When the loop has been looked at. */
pki_rule pki_verdict_gpu_idle, pki_verdict_gpu_bound;

/* ---- the processor ---- */

/* The share of the time in which the stepping thread was ready to run and had no processor, if it
 * is worth a verdict; else 0. */
double pki_starved_share(const pki_summary *summary);
pki_rule pki_verdict_cpu_starved;

/* ---- the CPU side: why it has none, or slow ones ---- */

pki_rule pki_verdict_oversubscribed, pki_verdict_throttled, pki_verdict_memory_far,
    pki_verdict_clock_low;

/* ---- energy.c ---- */

pki_rule pki_verdict_gpu_throttled;

/* ---- roofline.c: the largest region does what the machine allows ---- */

pki_rule pki_verdict_at_the_roof;

/* ---- gpu_memory.c ---- */

pki_rule pki_verdict_gpu_leak, pki_verdict_gpu_near_limit, pki_verdict_gpu_allocates;

/* ---- trust.c ---- */

pki_rule pki_verdict_incomplete, pki_verdict_dropped, pki_verdict_late, pki_verdict_unwritten,
    pki_verdict_two_perfkits, pki_verdict_not_finite, pki_verdict_clock_coarse,
    pki_verdict_untracked, pki_verdict_unbalanced;
pki_rule pki_verdict_warm_up, pki_verdict_few_steps, pki_verdict_no_breakdown, pki_verdict_no_steps;

/* ---- overhead.c: perfkit itself takes much ---- */

pki_rule pki_verdict_overhead;
