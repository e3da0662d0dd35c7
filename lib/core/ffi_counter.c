/* lib/core/ffi_counter.c - see ffi.c: counters. */
#include <pk/pk.h>

extern inline void pk_counter_set(pk_counter *counter, double value);
