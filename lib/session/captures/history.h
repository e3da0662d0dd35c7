/* lib/session/captures/history.h - the session's history: what of its last steps is kept,
 * unformatted.
 *
 * All of it under the drain lock. Without history_steps there is none.
 */
#pragma once

#include "session/session.h"

/* Without room for it there is none, which is said. */
void pki_session_history_open(pki_session *session);
void pki_session_history_close(pki_session *session);

/* What has been taken out of a ring. */
void pki_session_history_record(pki_session *session, uint32_t tid, const pki_record *record,
                                const pki_record *more);
