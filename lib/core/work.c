/* lib/core/work.c - what is added to an open region besides its beginning and end, and marks. */
#include <pk/region.h>

#include "core/frames.h"
#include "core/join.h"
#include "core/mirror.h"
#include "core/thin.h"

static PKI_NOINLINE pki_frame *find_own_frame(pk_region *region)
{
    if (!pki_enter())
        return NULL;
    pki_thread *t = pki_thread_joined();
    uint32_t id = pki_region_id(region);
    pki_frame *f = t && !pki_untimed_call(t, id) ? pki_find_frame(t, id) : NULL;
    pki_leave();
    return f;
}

/* Of a call that is not timed; the next one that is has it in its record. */
static PKI_COLD void add_to_untimed(pk_region *region, uint64_t bytes, uint64_t flops)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_joined();
    pki_counted *e = t ? pki_untimed_call(t, pki_region_id(region)) : NULL;
    if (e) {
        pki_bump(&e->bytes, bytes);
        pki_bump(&e->flops, flops);
    }
    pki_leave();
}

/* It is the innermost one, nearly always: the same test as an end's. */
pki_work *pki_region_work(pk_region *region, uint32_t *parent)
{
    pki_thread *t = pki_self;
    pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    if (PKI_UNLIKELY(pki_load(&f->id) != pki_load(&region->id) || pki_load(&t->ended)))
        f = find_own_frame(region);
    if (!f)
        return NULL;
    pki_store(&f->id, pki_load(&f->id) | PKI_SPECIAL);
    *parent = f - t->frames > 1 ? pki_load(&f[-1].id) & PKI_FRAME_ID : 0;
    return &t->work[f - t->frames];
}

void pk_region_add_on_(pk_region *region, uint64_t bytes, uint64_t flops)
{
    uint32_t parent;
    pki_work *work = pki_region_work(region, &parent);
    if (!work) {
        add_to_untimed(region, bytes, flops);
        return;
    }
    pki_bump(&work->bytes, bytes);
    pki_bump(&work->flops, flops);
}

void pki_region_payload(pk_region *region, pki_payload_type type, uint64_t bits)
{
    uint32_t parent;
    pki_work *work = pki_region_work(region, &parent);
    if (!work)
        return;
    pki_store(&work->payload, bits);
    pki_store(&work->payload_type, (uint64_t)type);
}

void pk_region_mark_on_(pk_region *region)
{
    pki_mark_payload(region, PKI_PAYLOAD_NONE, 0);
}

/* False: there is nowhere to put it. */
static bool mark(uint32_t id, pki_payload_type type, uint64_t bits)
{
    pki_thread *t = pki_thread_join();
    if (!t)
        return false;
    pki_record record = {pki_ticks(t->monotonic), bits, PKI_WHAT(id, PKI_RECORD_MARK, 0), type};
    pki_push_point(t, &record, 1);
    return true;
}

void pki_mark_payload(pk_region *region, pki_payload_type type, uint64_t bits)
{
    bool entered = pki_enter(), marked = false;
    uint32_t id = 0;
    if (entered) {
        id = pki_region_id(region);
        marked = mark(id, type, bits);
        pki_leave();
    }
    if (marked)
        pki_mirrors_mark(id);
    else
        pki_registry_refuse_point();
}
