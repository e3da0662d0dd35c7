/* lib/session/live/hang.h - what is open in a session that may hang, and what to say of it. */
#pragma once

#include "session/session.h"
#include "session/live/watch.h"

/* From the arena, without a lock. */
void pki_hang_observe(const pki_session *s, pki_watch_input *input);

/* The p99 of what is open; takes longer, and is needed only when it has been quiet for a while. */
uint64_t pki_hang_usual(const pki_session *s);

/* Through the log function and into the arena: for how long nothing has ended, which threads stand
 * where, and how far each communicator has come. */
void pki_hang_log(const pki_session *s, uint64_t quiet, uint64_t limit);

/* Something has ended after so long. */
void pki_hang_log_end(const pki_session *s, uint64_t quiet);
