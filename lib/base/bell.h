/* lib/base/bell.h - a thread that sleeps until it is time, or until somebody rings.
 *
 * Whoever rings takes no lock and allocates nothing, so it may be a recording thread, in a signal
 * handler too; it makes a system call only if the other one sleeps. Ringing while nobody sleeps is
 * remembered: the next sleep ends at once. One sleeper at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct pki_bell {
    uint32_t state; /* all zero is a bell at rest */
} pki_bell;

/* errno stays as it was. */
void pki_bell_ring(pki_bell *bell);

/* Until that moment of CLOCK_MONOTONIC, in ns. True: it was rung. What the ringing thread wrote
 * before is seen. */
bool pki_bell_sleep(pki_bell *bell, uint64_t until_ns);
