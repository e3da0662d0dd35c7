/* lib/session/stop.h - from an open session to its reports. */
#pragma once

#include "session/session.h"

/* Of an open session, under the control lock. */
pk_status pki_session_stop(pki_session *s);

/* At exit() nobody is waited for any longer who does nothing: the arena then stays for pk recover.
 */
#define PKI_EXIT_PATIENCE_NS 10000000000u

/* Stops an open session at exit(); what cannot be stopped, since somebody holds a lock for long or
 * this is a handler amid a call of ours, is left as by a kill. Takes the control lock. */
void pki_session_exit(void);
