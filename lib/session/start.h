/* lib/session/start.h - from options to an open session. Under the control lock. */
#pragma once

#include "session/session.h"

/* pk_start, but that nobody is told of a failure (session/operator.h). */
pk_status pki_start_untold(const pk_options *options);

/* PK_OK, or nothing has been left open. */
pk_status pki_session_start(pki_session *s, const pk_options *options);
