/* lib/backend/cupti/memory.h - records of what is allocated and freed, and of memory pools, in the
 * order of their times, to the session (session/costs/gpu_memory.h).
 *
 * CUPTI makes a record of each allocation and each free (MEMORY2), with its kind and,
 * if a pool served it, how large that is and how much of it is in use. Threads fill buffers of
 * their own, so records are held until all that came before them has been read.
 *
 * Threads: one at a time (the drain lock).
 */
#pragma once

#include "backend/cupti/records.h"

/* Holds it. A record of another kind, or of what nobody can place, is left alone. */
void pki_cupti_memory_add(const CUpti_Activity *record, const pki_cupti_span *span,
                          pki_cupti_counts *counts);

/* Hands over what is of before that, ns of the session. */
void pki_cupti_memory_emit(uint64_t complete);

void pki_cupti_memory_forget(void);
void pki_cupti_memory_after_fork(void);
