/* lib/session/captures/arming.h - captures and a backend that records devices only on request.
 *
 * CUPTI cannot look back at what it has not recorded. Where it does not record all the time, this
 * is where captures say when it is to:
 *
 *     a slow step              from then on, for so many steps, and for a second
 *     steps known beforehand   ahead of them by half a second, or a step, which taking CUPTI takes;
 *                              a cycle's from its warm-up on
 *
 * and up to which moment they wait for what is still on its way.
 *
 * Threads: what a backend asks for, any; all else under the drain lock.
 */
#pragma once

#include "capture/capture.h"
#include "session/options/config.h"

/* With captures: they arm it if the configuration says so, and somebody listens. */
void pki_arming_open(const pki_config *config);
void pki_arming_close(void);

/* A step has ended, and so many wishes came of it: those for a slow one get the steps behind it. */
void pki_arming_step(uint64_t number, uint64_t ns, pki_wish *wishes, unsigned count);

/* The last of the steps from `next` on for which it may be time to prepare. */
uint64_t pki_arming_horizon(uint64_t next);

/* In each round: is any of the steps up to there wanted? next: the step that runs. */
void pki_arming_round(uint64_t next, bool foreseen);

/* Captures want all up to there, ns of the session; 0: nothing. */
void pki_arming_await(uint64_t ns);

/* ---- for the backend ---- */

/* It follows requests, or could not the last time: then slow steps are captured without those
 * behind them. */
void pki_arming_listen(bool yes);

bool pki_arming_now(void);
uint64_t pki_arming_awaited(void);

void pki_arming_after_fork(void);
