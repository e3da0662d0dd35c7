/* lib/measure/fold/plain.h - what nearly all records are: a call of which there is nothing to say
 * but its time, of a region that has its slots. As records.c would fold it, with all that is the
 * same for many in a row looked up once. */
#pragma once

#include "measure/fold/fold.h"

static inline pki_spans *pki_fold_memory(const pki_fold *fold)
{
    return &fold->registry->arena->spans;
}

static inline const pki_clock_map *pki_fold_clock(const pki_fold *fold)
{
    return &fold->registry->arena->header->clock;
}

/* Folds such records of a turn from `at` on. Returns where it has stopped: at the first that is
 * none, at the head, at the next lost call, or at the ring's end. Under the fold lock. */
uint32_t pki_fold_plain(pki_fold *fold, pki_thread_fold *alone, pki_thread *t,
                        const pki_record *records, uint32_t at, uint32_t head, uint32_t loss);
