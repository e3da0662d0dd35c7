/* lib/session/windows/window_costs.h - what a window cost beside time: what the session has found
 * out since the window before.
 *
 * As of the collector's last look, as counts and toll of a window are; the last window has all. All
 * under the drain lock.
 */
#pragma once

#include "measure/window/costs.h"
#include "session/session.h"

/* Once its threads are in it. False without memory: the next one has it. */
bool pki_window_add_costs(const pki_session *session, pki_window *window);

void pki_window_costs_forget(void);
void pki_window_costs_after_fork(void);
