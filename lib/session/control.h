/* lib/session/control.h - the locks of the control calls, for the child of a fork, and exit(). */
#ifndef PKI_SESSION_CONTROL_H
#define PKI_SESSION_CONTROL_H

#include "session/session.h"

/* False if one of them was held: what it guards may be half of something. */
bool pki_control_after_fork(void);

/* Stops an open session at exit(); what cannot be stopped, since somebody holds a lock for long or this
 * is a handler amid a call of ours, is left as by a kill. */
void pki_control_exit(void);

#endif
