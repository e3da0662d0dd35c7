#include "core/overhead.h"

#include <stdlib.h>
#include <string.h>

#include "core/join.h"
#include "core/thin.h"

enum { PAIRS = 64, BATCHES = 64 };

/* One batch through the real calls, on a block that nobody reads. */
static uint64_t batch(pki_thread *t, pk_region *region)
{
    t->state = PKI_FRAME_OFFSET(0);
    uint64_t before = pki_monotonic_ns();
    for (int i = 0; i < PAIRS; i++) {
        pk_region_begin_on_(region);
        pk_region_end_on_(region);
    }
    return pki_monotonic_ns() - before;
}

static double measure(pk_region *region, pki_counted *counted, uint32_t monotonic)
{
    size_t ring_bytes = 2 * PAIRS * sizeof(pki_record);
    pki_thread *t = aligned_alloc(PKI_LINE, sizeof *t + ring_bytes);
    if (!t)
        return 0;
    memset(t, 0, sizeof *t + ring_bytes);
    pki_block_init(t, (pki_record *)(t + 1), (uint32_t)ring_bytes, monotonic);
    t->counted = counted;
    t->counted_size = counted ? 1 : 0;
    pki_thread *mine = pki_own;
    uint64_t least = UINT64_MAX;
    pki_thread_be(t);
    for (int i = 0; i < BATCHES; i++)
        least = PKI_MIN(least, batch(t, region));
    pki_thread_be(mine);
    free(t);
    return (double)least / PAIRS;
}

double pki_measure_region_ns(uint32_t monotonic)
{
    pk_region region = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    return measure(&region, NULL, monotonic);
}

/* With the id that no name has, whose pki_thin is 0; a slow clock has nothing to do with it. */
double pki_measure_counted_ns(void)
{
    pk_region region = {.name = "", .file = ""};
    pki_counted counted = {.left = UINT32_MAX};
    return measure(&region, &counted, 0);
}
