/* lib/session/live/live.h - what goes on, put into the arena for who looks from outside
 * (tools/live). */
#pragma once

#include "session/session.h"

/* In each round, behind folding; under the drain lock. */
void pki_live_round(pki_session *s);
