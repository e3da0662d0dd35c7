/* lib/session/windows/windows.h - the figures of a run that goes on for weeks, window by window,
 * into a file (windows_path).
 *
 * Windows are cut where steps are folded (measure/window/seal.h). Here they get what the session
 * knows of the process, their verdicts, and become lines of a file of bounded size (out/rolling.h):
 * in pieces of about a millisecond, a piece in a round of the collector, since rings have to be
 * emptied meanwhile. What a full disk refuses is tried again every second; until then windows wait,
 * and when there are many the one that runs grows, so nothing is lost unless the run ends.
 *
 * All of it under the drain lock.
 */
#pragma once

#include "session/session.h"

/* Makes the file, if one is asked for. After the fold has been opened. */
pk_status pki_windows_open(pki_session *session);

/* The start has failed: the file goes. */
void pki_windows_abandon(void);

/* A piece of what there is to do. */
void pki_windows_round(pki_session *session);

/* All windows that have ended, now. */
void pki_windows_flush(pki_session *session);

/* The last window, which ends with the session, and the file. After the last counts. */
void pki_windows_end(pki_session *session);

/* PK_OK unless windows are missing in the file. After pki_windows_end. */
pk_status pki_windows_status(void);

void pki_windows_after_fork(void);
