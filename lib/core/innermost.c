#include "core/innermost.h"

#include "core/thin.h"
#include "core/thread.h"

/* A call that is counted and not timed has no frame; it lies in the one that is innermost. */
static uint32_t untimed_in(const pki_thread *t, uint64_t state, const pki_frame *top)
{
    uint32_t open = pki_load(&t->untimed_open);
    const pki_untimed *u = &t->untimed[open ? open - 1 : 0];
    bool inside = open && u->place == (uint32_t)state && u->start == pki_load(&top->start);
    return inside ? u->id : 0;
}

uint32_t pki_innermost_region(void)
{
    const pki_thread *t = pki_own;
    uint64_t state = pki_load(&t->state);
    if ((uint32_t)state < PKI_FRAME_OFFSET(0) || pki_load(&t->ended))
        return 0;
    const pki_frame *top = &t->frames[pki_depth_in(state)];
    uint32_t id = (uint32_t)state < PKI_FRAME_OFFSET(1) ? 0 : pki_load(&top->id) & PKI_FRAME_ID;
    if (PKI_UNLIKELY(pki_load(&t->untimed_open))) {
        uint32_t untimed = untimed_in(t, state, top);
        id = untimed ? untimed : id;
    }
    return id;
}
