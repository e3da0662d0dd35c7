/* lib/session/control.h - the locks of the control calls, for the child of a fork. */
#ifndef PKI_SESSION_CONTROL_H
#define PKI_SESSION_CONTROL_H

#include "session/session.h"

/* False if one of them was held: what it guards may be half of something. */
bool pki_control_after_fork(void);

#endif
