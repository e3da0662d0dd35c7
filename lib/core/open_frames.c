#include "core/open_frames.h"

#define TRIES 100

static unsigned depth_in(uint64_t state)
{
    return (uint32_t)state < PKI_FRAME_OFFSET(0) ? 0 : pki_depth_in(state);
}

static void copy(const pki_thread *t, unsigned depth, pki_open_frames *look)
{
    look->depth = depth;
    for (unsigned d = 0; d < depth; d++) {
        look->open[d].start = pki_load(&t->frames[d + 1].start);
        look->open[d].id = pki_load(&t->frames[d + 1].id) & PKI_FRAME_ID;
    }
}

/* Twice the same, with the same state around: a ring that is full pops frames and leaves the place
 * of the next record, so the state alone would not tell that one has come and gone. */
static bool is_same(const pki_open_frames *a, const pki_open_frames *b)
{
    if (a->depth != b->depth)
        return false;
    for (unsigned d = 0; d < a->depth; d++)
        if (a->open[d].start != b->open[d].start || a->open[d].id != b->open[d].id)
            return false;
    return true;
}

bool pki_open_frames_of(const pki_thread *t, pki_open_frames *look)
{
    pki_open_frames again;
    for (int i = 0; i < TRIES; i++) {
        uint64_t state = pki_thread_seen(t); /* acquires what the owner released with it */
        copy(t, depth_in(state), look);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        bool stayed = pki_thread_seen(t) == state;
        copy(t, depth_in(state), &again);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (stayed && pki_thread_seen(t) == state && is_same(look, &again))
            return true;
    }
    look->depth = 0;
    return false;
}
