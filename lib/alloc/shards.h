/* lib/alloc/shards.h - the shards, for who adds them up. */
#pragma once

#include "alloc/counts.h"

/* All that were ever taken, newest first. */
shard *pki_shards(void);

/* Of threads for which there was no room, and of what threads do on their last way out. Several
 * write it at once. */
extern shard pki_shard_of_others;
