/* lib/session/start.h - from options to an open session. Under the control lock. */
#pragma once

#include "session/session.h"

/* PK_OK, or nothing has been left open. */
pk_status pki_session_start(pki_session *s, const pk_options *options);
