/* lib/measure/verdict/gpu.h - what the figures of devices mean. Only verdict*.c include it.
 *
 * The device that is judged is the one that was busy longest in the steady steps, of those that
 * CUPTI has measured if there are any. Shares are of those steps' time. What only CUPTI can tell (gaps between kernels, copies, waits) is only said
 * of steps that it has measured.
 */
#ifndef PKI_MEASURE_VERDICT_GPU_H
#define PKI_MEASURE_VERDICT_GPU_H

#include "measure/verdict/words.h"

/* Is the device busy for most of the step, so that the loop's waits are for it? By stream spans
 * too, unless it has to be measured. */
bool pki_gpu_is_busy(const pki_summary *summary, bool measured);

/* " GPU 0 is busy for 62.0 % of the step.", if there is one. */
void pki_words_add_gpu(pki_words *words, const pki_summary *summary);

/* Rules: false without memory. The last two come when the loop has been looked at: `explained` if
 * something else has been found in it. */
bool pki_verdict_comm_exposed(pki_summary *summary, pki_words *words);
bool pki_verdict_launch_bound(pki_summary *summary, pki_words *words);
bool pki_verdict_copy_bound(pki_summary *summary, pki_words *words);
bool pki_verdict_sync_bound(pki_summary *summary, pki_words *words);
bool pki_verdict_gpu_idle(pki_summary *summary, pki_words *words, bool explained);
bool pki_verdict_gpu_bound(pki_summary *summary, pki_words *words);

#endif
