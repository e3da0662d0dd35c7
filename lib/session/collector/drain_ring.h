/* lib/session/collector/drain_ring.h - what has been folded, out of a thread's ring: into the
 * trace's buffer, and into the history. Under the drain lock.
 */
#pragma once

#include "session/session.h"

/* Takes what has been folded; pieces: and writes each piece of events when it is there. */
void pki_drain_ring(pki_session *session, pki_thread *t, bool pieces);

/* A record's event; more is its second slot. */
void pki_emit_event(pki_session *session, uint32_t tid, const pki_record *record,
                    const pki_record *more);

/* If it has another name than what has been written. */
void pki_emit_thread_name(pki_session *session, pki_thread *t);
