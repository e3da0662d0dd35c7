/* tools/merge/head.h - what stands before the events of a merged trace. */
#pragma once

#include "job/clocks/clocks.h"
#include "merge/source.h"

/* The caller's to free. */
char *merged_head(const merge_sources *s, const pki_clocks *c, size_t *length);

/* "bounds", "real time", ...: how a clock was put on the axis. */
const char *clock_method_name(const pki_clock *c);
