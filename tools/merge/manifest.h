/* tools/merge/manifest.h - what Perfetto needs to open several traces together, as they are: which
 * machine each is of, and what its 0 is on the axis of all.
 * https://perfetto.dev/docs/reference/perfetto-manifest, version 1. */
#pragma once

#include "job/clocks/clocks.h"
#include "merge/source.h"

/* A name that ends in .tar: an archive with the files in it, which Perfetto opens. */
bool manifest_write(const char *out, const merge_sources *s, const pki_clocks *c, complaint *why);
