/* lib/alloc/shards.h - the shards, for who adds them up. */
#pragma once

#include "alloc/counts.h"

/* All that were ever taken, newest first. */
shard *pki_shards(void);

/* NULL: nothing has been counted there. */
cell *pki_cell_of(shard *s, uint32_t region);
