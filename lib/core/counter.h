/* lib/core/counter.h - a counter's sample from within perfkit, on a thread of the program. */
#pragma once

#include <pk/counter.h>

#include "core/thread.h"

/* As of that tick. Amid pki_enter and pki_leave; what finds no room counts as dropped. */
void pki_counter_record(pki_thread *t, pk_counter *counter, double value, uint64_t ticks);

#define PKI_COUNTERS_MOST 8

/* The same of several in one piece, whose ids are given: all of them, or none and nothing is
 * counted as dropped. extra: of the last one's record. */
bool pki_counters_record(pki_thread *t, const uint32_t *ids, const double *values, unsigned n,
                         uint64_t ticks, uint64_t extra);
