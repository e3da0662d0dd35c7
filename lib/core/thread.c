#include "core/thread.h"

#include "core/names.h"

#define UPPER_GUARD (PKI_DEPTH_MAX + 1) /* its index among the frames */

/* No room for a frame, and a top frame that is nobody's: every fast path's test fails here. */
#define NO_ROOM                                                                                    \
    {                                                                                              \
        .state = PKI_FRAME_OFFSET(UPPER_GUARD),                                                    \
        .frames = {[0] = {.id = PKI_NOBODY, .start = UINT64_MAX},                                  \
                   [UPPER_GUARD] = {.id = PKI_NOBODY, .start = UINT64_MAX}},                       \
    }
pki_thread pki_sentinel = NO_ROOM;
pki_thread pki_amid = NO_ROOM;

_Thread_local pki_thread *pki_self = &pki_sentinel;
_Thread_local pki_thread *pki_own = &pki_sentinel;

bool pki_thread_is_joined(const pki_thread *t)
{
    return t != &pki_sentinel && t != &pki_amid;
}

pki_thread *pki_thread_joined(void)
{
    pki_thread *t = pki_own;
    return t != &pki_sentinel && !pki_load(&t->ended) ? t : NULL;
}

void pki_block_init(pki_thread *t, pki_record *ring, uint32_t ring_bytes, uint32_t monotonic)
{
    t->ring = t->home = ring;
    t->ring_bytes = ring_bytes;
    t->stop = 0; /* the first record's way finds out */
    t->monotonic = monotonic;
    t->state = PKI_FRAME_OFFSET(0);
    t->limit = monotonic ? 0 : PKI_FRAME_OFFSET(PKI_DEPTH_MAX);
    t->mixed = PKI_DEPTH_MAX;
    t->frames[0].id = t->frames[UPPER_GUARD].id = PKI_NOBODY;
    t->frames[0].start = t->frames[UPPER_GUARD].start = UINT64_MAX;
    pki_slot_clear(&t->last_resort, PKI_NAME_TOO_MANY);
}
