/* lib/core/work.c - what is added to an open region besides its beginning and end: work, notes; and
 * marks. */
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

/* ---- notes ---- */

/* The depth at which that region is open; 0: it is not, or this call of it is counted alone. */
static PKI_NOINLINE unsigned find_depth(pki_thread *t, pk_region *region)
{
    uint32_t id = pki_region_id(region);
    pki_frame *f = pki_untimed_call(t, id) ? NULL : pki_find_frame(t, id);
    return f ? (unsigned)(f - t->frames) : 0;
}

/* A region that is thinned has no id in itself (core/thin.h). */
static inline unsigned open_depth(pki_thread *t, pk_region *region)
{
    pki_frame *f = pki_top_frame(t, pki_load(&t->state));
    uint32_t id = pki_load(&region->id);
    if (PKI_LIKELY(id && (pki_load(&f->id) & PKI_FRAME_ID) == id))
        return (unsigned)(f - t->frames);
    return find_depth(t, region);
}

/* Who formats it gives it to the next region of this depth that began before it. */
static inline void note(pk_region *region, pk_region *key, pki_record_type type, unsigned n,
                        pki_record *record)
{
    if (!pki_enter())
        return;
    pki_thread *t = pki_thread_joined();
    unsigned depth = t ? open_depth(t, region) : 0;
    if (depth) {
        uint32_t id = pki_load(&key->id);
        record->start = pki_ticks(t->monotonic);
        record->what = PKI_WHAT(id ? id : pki_region_id(key), type, depth);
        pki_push_point(t, record, n);
    }
    pki_leave();
}

void pk_region_note_on_(pk_region *region, pk_region *key, int64_t value)
{
    pki_record record = {.value = (uint64_t)value};
    note(region, key, PKI_RECORD_NOTE, 1, &record);
}

void pk_region_note_text_on_(pk_region *region, pk_region *key, const char *text)
{
    pki_record record[2] = {{0}};
    pki_note_pack(record, text ? text : "");
    note(region, key, PKI_RECORD_NOTE_TEXT, 2, record);
}

/* ---- marks ---- */

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
