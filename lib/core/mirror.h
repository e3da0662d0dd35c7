/* lib/core/mirror.h - those who hear of every region as it begins and ends, on its own thread.
 *
 * While there is a mirror no block has a limit, so each begin takes its slow path, and a frame that
 * mirrors have been notified of is marked (PKI_MIRRORED), so each end does. Without one nothing is
 * added to either path but these two tests, which are there anyway. Mirrors are notified of the
 * ends of the begins that they know, in reverse order, while the session lasts: a region open at
 * pk_stop has no end, and the next session finds the thread's depth at 0.
 */
#pragma once

#include <stdint.h>

#include "core/thread.h"

#define PKI_MIRRORS_MAX 4

typedef struct pki_mirror {
    void (*begin)(uint32_t id, unsigned depth); /* depth: how many regions are open around it */
    void (*end)(uint32_t id, const pki_work *work);
    void (*mark)(uint32_t id);
} pki_mirror;

/* From here to the close, for all threads of the running session. Not more than PKI_MIRRORS_MAX. */
void pki_mirrors_open(const pki_mirror *const *mirrors, unsigned count);
void pki_mirrors_close(void);

/* Under the registry's lock: does a thread that joins now have to take the slow path? */
unsigned pki_mirrors_count(void);
