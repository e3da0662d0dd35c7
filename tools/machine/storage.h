/* tools/machine/storage.h - how fast a folder's file system takes and gives large blocks.
 *
 * One thread, a file of its own, blocks of 1 MiB one after the other, past the page cache
 * (O_DIRECT). Where the file system has no O_DIRECT, writing counts with the fdatasync behind it,
 * and reading is not measured: the blocks would come from memory.
 */
#pragma once

#include "complaint.h"
#include "measure/machine/machine.h"

typedef struct storage_figures {
    const char *folder; /* NULL: nothing was measured */
    bool direct;
    uint64_t bytes;        /* of a round */
    pki_limit write, read; /* rounds 0: not measured */
} storage_figures;

/* False, and why. Nothing is left in the folder. */
bool storage_measure(const char *folder, uint32_t mib, storage_figures *figures, complaint *why);
