/* lib/session/captures/stacks.h - samples of where threads are; within the room */
#pragma once

#include "session/session.h"

/* ---- a thousand times a second, while a step is late ---- */

/* Of this thread from now on; 0: of none. By the collector, without a lock. */
void pki_stacks_late(uint32_t tid);
