/* lib/session/collector/drain.h - from the rings to the file */
#pragma once

#include "session/session.h"

/* ---- from the rings to the file. All of it under the drain lock ---- */

/* Makes the output span and the trace file. */
pk_status pki_drain_open(pki_session *s);

/* The trace's first line anew, with what is known by now. */
void pki_drain_rewrite_head(pki_session *s, bool complete);

/* One round: fold, format, release, recycle; writes when the buffer is half full, flush_ms have
 * passed, or now. */
void pki_drain_round(pki_session *s, bool write_now);

/* Takes what ended threads have left where that is soon done, so that others can have their blocks.
 * False if there is reason for a round. */
bool pki_drain_ended(pki_session *s);

/* Ends the session for its threads: what they do from here on is left alone. */
void pki_drain_seal(pki_session *s);

/* Counts what was in the rings, not what their owners thought (lib/measure/fold/walk.h). Sealed
 * and drained before. */
void pki_drain_settle(pki_session *s);

/* Closes on their threads' behalf what is open when the session ends; sealed and drained before. */
void pki_drain_open_regions(pki_session *s, uint64_t now_ticks);

/* In the trace an end of each span that has none, marked; in figures it stays open. */
void pki_drain_open_spans(pki_session *s, uint64_t now_ticks);

/* Closes the document with this last part and the file; NULL for none. */
void pki_drain_close(pki_session *s, const char *report, size_t report_bytes);

/* Gives back what pki_drain_open took, without writing. */
void pki_drain_abandon(pki_session *s);
