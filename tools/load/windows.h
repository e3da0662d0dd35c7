/* tools/load/windows.h - the summary of a run from its windows: PATH, and what has become PATH.1 to
 * PATH.3 of the same run. */
#pragma once

#include "complaint.h"
#include "measure/window/window.h"
#include "read/lines.h"

/* `in` is PATH, opened and not yet read; "-" has no other parts. steps: NULL, "A" or "A-B". A line
 * that is cut off at the end, of a run that was killed or still goes on, counts as not there.
 * False, and why. */
bool load_windows(lines *in, const char *path, const char *steps, pki_summary *out, complaint *why);

/* One window from the text of a line. False, and why: it is finished then. */
bool load_window(line l, pki_window *window, complaint *why);
