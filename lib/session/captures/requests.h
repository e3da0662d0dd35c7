/* lib/session/captures/requests.h - captures that are asked for: by the program (pk_capture), and
 * from outside, through words in the arena's header (pk capture). */
#pragma once

#include "capture/capture.h"
#include "session/session.h"

/* From here on somebody listens; NULL: nobody. */
void pki_requests_listen(const pki_arena_header *header);

/* For the program or the watchdog. Any thread; a lock that is held for some instructions. PK_EOFF,
 * PK_EBUSY or PK_OK. */
pk_status pki_requests_call(pki_capture_reason reason, const char *text, uint32_t steps);

#define PKI_REQUESTS_MOST 5

/* What has been asked for since the last time, how many. wanted: from outside, too; else that is
 * the answer. Under the drain lock, as is all below. */
unsigned pki_requests_drain(pki_session *session, bool wanted, pki_wish wishes[PKI_REQUESTS_MOST]);

/* What has become of a wish; does nothing for one that did not come from outside. */
void pki_requests_answer(pki_session *session, const pki_wish *wish, pki_answer_state state,
                         const char *path);

void pki_requests_after_fork(void);
