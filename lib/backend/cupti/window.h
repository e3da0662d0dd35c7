/* lib/backend/cupti/window.h - when CUPTI is to record, if for a range of steps only, or for what
 * captures want (session/captures/arming.h).
 *
 * The collector switches it on somewhat ahead of the range, going by how long steps have taken, and
 * off behind it; what began outside the range is dropped. Kernels that are still running then have
 * a second to end before CUPTI is given back.
 *
 * Threads: one at a time; takes the fold lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/options/config.h"

typedef enum pki_cupti_phase {
    PKI_CUPTI_AHEAD,  /* nothing to do yet */
    PKI_CUPTI_WITHIN, /* to be on */
    PKI_CUPTI_BEHIND, /* to be off, but kernels may still run */
    PKI_CUPTI_PAST    /* to be given back */
} pki_cupti_phase;

typedef struct pki_cupti_window {
    pki_cupti_phase phase;
    uint64_t begin, end; /* ns since the session started; UINT64_MAX: not known yet */
} pki_cupti_window;

/* The whole session, without a range. */
void pki_cupti_window_start(const pki_config *config);

pki_cupti_window pki_cupti_window_at(uint64_t now_ns);

/* As captures want it: any number of times, and of whatever steps. */
pki_cupti_phase pki_cupti_armed_at(uint64_t now_ns);
