/* lib/core/span.h - what pk/request.h needs of pk/span.h's. */
#pragma once

#include <pk/span.h>

#include "core/thread.h"

/* All below: between pki_enter and pki_leave. */

/* The thread, if it has to record something of the span; NULL: nothing, and that is counted. What
 * is none is nobody's. */
pki_thread *pki_span_thread(const pk_span *span);

/* A mark of the span at `now`, of so many ticks. */
void pki_span_sample(pki_thread *t, const pk_span *span, uint32_t name, uint64_t now,
                     uint64_t ticks);
