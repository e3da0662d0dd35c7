/* lib/measure/steps/warmup.h - where a training loop's warm-up ends.
 *
 * The first step is warm-up wherever there is a second one: it holds the program's set-up. The
 * steps that follow it are, as long as each of them is slower than any usual step *soon after*: the
 * threshold is the largest of
 *
 *     1.25 x the median,
 *     the median + 5 standard deviations (estimated from the median absolute deviation),
 *     1.05 x the 90th percentile (loops whose steps come in a fast and a slow sort)
 *
 * of the steps between the last possible warm-up step and the PKI_WARMUP_KNOWN-th. At most
 * PKI_WARMUP_MOST steps, and at most a tenth of all of them, are warm-up. Comparing with the steps
 * soon after, and not with the whole run, keeps a slow drift from being taken for one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PKI_WARMUP_MOST 32
#define PKI_WARMUP_KNOWN 256

/* durations: of the first `known` of `count` steps; those beyond PKI_WARMUP_KNOWN are not looked
 * at. */
uint64_t pki_warmup_find(const uint64_t *durations, size_t known, uint64_t count);
