/* lib/core/counter.h - a counter's sample from within perfkit, on a thread of the program. */
#pragma once

#include <pk/counter.h>

#include "core/thread.h"

/* As of that tick. Amid pki_enter and pki_leave; what finds no room counts as dropped. */
void pki_counter_record(pki_thread *t, pk_counter *counter, double value, uint64_t ticks);
