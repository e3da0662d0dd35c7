/* tools/beside/beside.h - a step of a trace beside usual ones like it: where the difference is.
 *
 * The step is the one that a capture was kept for, else the longest. Usual are steps of the same
 * kind (pk_step_kind) that are nearer to their median than to it, the 32 next to it at most. Of
 * each path its self time in the step stands beside the median of that over the usual ones; on the
 * thread that makes the steps these times, with what is outside every region, are the step's
 * duration to the nanosecond. Slices that reach beyond a step count as far as they are in it.
 */
#pragma once

#include "beside/slices.h"
#include "measure/summary.h"

#define BESIDE_USUAL_MOST 32

/* Makes out->beside of it, and reads the slices of those steps. What is in `out` already is used:
 * the capture, the warm-up. False, and why: the trace cannot be read. Without steps nothing. */
bool beside_fill(slices *s, trace *t, pki_summary *out);

/* choose.c: the step, or NULL; and which others are usual, marked as wanted. */
step_seen *beside_choose(slices *s, const pki_summary *in, pki_beside *out);

/* The same of a file. s: NULL, or what has been read, to be freed by slices_free. */
bool beside_of_file(const char *path, slices *s, pki_summary *out, complaint *why);
