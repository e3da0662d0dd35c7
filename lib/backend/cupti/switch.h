/* lib/backend/cupti/switch.h - when CUPTI is on */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "session/backend.h"
#include "session/options/config.h"

/* ---- window ---- */

/* When CUPTI is to record, if for a range of steps only, or for what
 * captures want (session/captures/captures.h).
 *
 * The collector switches it on somewhat ahead of the range, going by how long steps have taken, and
 * off behind it; what began outside the range is dropped. Kernels that are still running then have
 * a second to end before CUPTI is given back.
 *
 * Threads: one at a time; takes the fold lock. */

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

pki_cupti_window pki_cupti_window_at(uint64_t now_ns);

/* ---- marks ---- */

/* From when till when CUPTI has recorded, on its way from who switches
 * it to who emits.
 *
 * Threads: one at a time puts, one at a time takes; nothing else is locked. */

typedef struct pki_cupti_mark {
    uint64_t ns; /* of the session */
    bool on;
} pki_cupti_mark;

/* False: there is none. */
bool pki_cupti_marks_pop(pki_cupti_mark *mark);

/* ---- when CUPTI is on ---- */

/* All the time, for a range of steps, or as captures want it, any number of times. What is
 * allocated (costs=memory) is recorded all the time, whether or not the rest is asked for.
 *
 * Threads: start, then flushes of any thread, one of which acts at a time; they may wait for
 * CUPTI's threads, so no lock is held that a callback or a recording thread takes. What is asked:
 * any. */

/* listed: by name among the backends; else it is here for what else is asked for. False: it is not
 * there; pki_cupti_switch_status has the reason. */
bool pki_cupti_switch_start(const pki_config *config, bool listed);
void pki_cupti_switch_flush(pki_flush why);

uint64_t pki_cupti_opened(void); /* when it first began to record, ns of the session; 0: not yet */
uint64_t pki_cupti_complete(void); /* what began before it and has ended has been given back */
bool pki_cupti_is_closed(void);    /* not yet, or between two times that captures want it */
uint64_t pki_cupti_taken_at(void); /* since when another tool has its buffers; UINT64_MAX: none */

/* The same of what is allocated: since when, and up to when all of it has been given back. */
uint64_t pki_cupti_memory_opened(void);
uint64_t pki_cupti_memory_complete(void);

/* The session's last word of it. */
void pki_cupti_switch_over(const char *why);

/* How it stands, in words. False: it is off. */
bool pki_cupti_switch_status(char *why, size_t size);

void pki_cupti_switch_after_fork(void);
