/* tools/beside/timeline.h - two steps slice by slice, for the page: the one that is looked at, and
 * a usual one.
 *
 * Bounded whatever they hold: what is shorter than a few thousandths of the longer step becomes one
 * block with its neighbours, which says how many it stands for; how short is raised until all fit.
 */
#pragma once

#include "beside/slices.h"
#include "measure/paths.h"
#include "out/json_write.h"

#define TIMELINE_SLICES_MOST 20000 /* of both steps */
#define TIMELINE_ROWS_MOST 64      /* of a lane: what is deeper is left out, and counted */

/* An object: "steps" [{index, took}], "names" [[kind, name]], "lanes" [{name, sort}], "slices"
 * [[step, lane, row, start in the step, length, name or -1, how many]], "shortest", "merged",
 * "left_out". */
void timeline_put(const slices *s, const pki_beside *beside, pki_json *json);
