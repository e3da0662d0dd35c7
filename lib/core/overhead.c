#include "core/overhead.h"

#include <stdlib.h>
#include <string.h>

#include "core/thin.h"

enum { PAIRS = 64, BATCHES = 64, LINKS = 40, TURNS = 7, TURN_BATCHES = 4 };

/* Each waits for the one before. */
static uint64_t work(uint64_t x, unsigned links)
{
    for (unsigned i = 0; i < links; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ __volatile__("" : "+r"(x));
    }
    return x;
}

/* One batch through the real calls, on a block that nobody reads; NULL: of the work alone. */
static uint64_t batch(pki_thread *t, pk_region *region, unsigned links)
{
    uint64_t x = 1, before;
    t->state = PKI_FRAME_OFFSET(0);
    before = pki_monotonic_ns();
    for (int i = 0; i < PAIRS; i++) {
        if (region) {
            pk_region_begin_on_(region);
            pk_region_end_on_(region);
        }
        x = work(x, links);
    }
    return pki_monotonic_ns() - before;
}

static double least_of(pki_thread *t, pk_region *region, unsigned links, int batches)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < batches; i++)
        least = PKI_MIN(least, batch(t, region, links));
    return (double)least / PAIRS;
}

/* Beyond the work alone: in turns, since the processor's speed changes; their median. */
static double more_than_work(pki_thread *t, pk_region *region)
{
    double more[TURNS];
    for (int i = 0; i < TURNS; i++) {
        double alone = least_of(t, NULL, LINKS, TURN_BATCHES);
        double now = least_of(t, region, LINKS, TURN_BATCHES) - alone;
        int at = i;
        for (; at > 0 && more[at - 1] > now; at--)
            more[at] = more[at - 1];
        more[at] = now;
    }
    return PKI_MAX(more[TURNS / 2], 0.0);
}

static double measure(pk_region *region, pki_counted *counted, uint32_t monotonic, bool beside)
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
    pki_thread_be(t);
    double ns = beside ? more_than_work(t, region) : least_of(t, region, 0, BATCHES);
    pki_thread_be(mine);
    free(t);
    return ns;
}

double pki_measure_region_ns(uint32_t monotonic)
{
    pk_region region = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    return measure(&region, NULL, monotonic, false);
}

/* With the id that no name has, whose pki_thin is 0; a slow clock has nothing to do with it. */
double pki_measure_counted_ns(void)
{
    pk_region region = {.name = "", .file = ""};
    pki_counted counted = {.left = UINT32_MAX};
    return measure(&region, &counted, 0, false);
}

pki_hidden_ns pki_measure_hidden_ns(uint32_t monotonic)
{
    pk_region timed = {.name = "", .id = PKI_NAME_TOO_MANY, .file = ""};
    pk_region untimed = {.name = "", .file = ""};
    pki_counted counted = {.left = UINT32_MAX};
    return (pki_hidden_ns){measure(&timed, NULL, monotonic, true),
                           measure(&untimed, &counted, 0, true)};
}
