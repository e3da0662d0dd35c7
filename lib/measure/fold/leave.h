/* lib/measure/fold/leave.h - part of fold.c: takes over what is known of a thread that has ended. */
#ifndef PKI_MEASURE_FOLD_LEAVE_H
#define PKI_MEASURE_FOLD_LEAVE_H

#include "measure/fold/fold.h"

void pki_fold_leave(pki_fold *fold, pki_thread_fold *alone, const pki_thread *t);

#endif
