/* lib/session/collector/stepper.h - whether the thread that makes steps has a processor.
 *
 * The kernel counts for each thread how long it has run and how long it was ready to run while
 * others had the processors (/proc/self/task/TID/schedstat). The collector reads that now and then:
 * the thread itself pays nothing. Where the kernel has no such figures, nothing is known.
 */
#pragma once

#include "session/session.h"

/* The two figures in the text of such a file. False if it has none. */
bool pki_stepper_parse(const char *text, uint64_t *running, uint64_t *ready);

/* What was seen since the look before. The kernel enters a wait when it is over and running at its
 * next tick, so that a look may find what was before it, up to the first one: nobody has had more
 * than there was since then, and what is beyond that is left out. No figure gets smaller. */
void pki_stepper_add(pki_processor *sum, const pki_processor *more);
