/* lib/measure/fold/walk.h - what a walk through a thread's records (walk.c) has done with each. */
#pragma once

#include "measure/fold/fold.h"

/* `what` is the record's, read once: what is undone may change meanwhile. more: its second slot. */
void pki_fold_record(pki_fold *fold, pki_thread_fold *alone, pki_thread *t, uint64_t what,
                     const pki_record *record, const pki_record *more);

/* Ends of spans that the thread's ring had no room for. */
void pki_fold_ends(pki_fold *fold, pki_thread *t);

/* A lost call, where it ended. */
void pki_fold_loss(pki_fold *fold, pki_thread_fold *alone, pki_thread *t, const pki_loss *loss);
