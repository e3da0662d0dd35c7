/* tools/beside/files.h - what the process read and wrote in a step, beside usual ones: of counters
 * that costs=io leaves at ends of steps (lib/session/costs/io.h). */
#pragma once

#include "beside/slices.h"
#include "measure/summary.h"

/* An event of a counter, which may be one of them. Those of one reading come behind each other. */
void files_add(slices *s, const event *e);

/* Once all have been added: the rows of out->io, if the step has a reading, and usual ones. */
void files_fill(const slices *s, pki_beside *out);
