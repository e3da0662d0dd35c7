/* lib/measure/fold/pending.c - counted calls that come before no timed one: the last of a thread.
 */
#include "core/thin.h"
#include "measure/fold/fold.h"

/* What is known of them is that they are calls: of about the last timed one's length, and with as
 * much of it their own as with the others. */
typedef struct last_calls {
    uint32_t id;
    uint32_t calls;
    uint64_t ns, own, bytes, flops;
} last_calls;

static void add_to(pki_fold *fold, pki_table *table, const last_calls *c)
{
    pki_slot *slot = pki_table_slot(table, c->id);
    if (!slot)
        return;
    pki_bump(&slot->self, c->own);
    pki_bump(&slot->bytes, c->bytes);
    pki_bump(&slot->flops, c->flops);
    if (!c->calls || (table != &fold->totals && !fold->per_thread))
        return;
    pki_slot_count_times(&fold->registry->arena->spans, &table->pool, slot, c->ns, c->calls);
    pki_bump(&slot->untimed, 1);
    pki_bump(&slot->spread, c->calls);
}

/* Of all calls so far. */
static uint64_t own_of(const pki_fold *fold, uint32_t id, uint64_t calls)
{
    const pki_slot *slot = pki_table_slot(&fold->totals, id);
    uint64_t self = slot ? pki_not_negative(slot->self) : 0;
    return slot && slot->count ? (uint64_t)((double)self / (double)slot->count * (double)calls) : 0;
}

static last_calls pending_of(const pki_fold *fold, const pki_thread *t, uint32_t id,
                             const pki_counted *e)
{
    uint64_t calls = PKI_MIN(pki_counted_pending(e), PKI_THINNED_MOST);
    uint64_t last = pki_not_negative(pki_load(&e->last));
    return (last_calls){.id = id,
                        .calls = (uint32_t)calls,
                        .ns = pki_thread_ns(t, t->folded_ticks - last, last),
                        .own = own_of(fold, id, calls),
                        .bytes = pki_load(&e->bytes),
                        .flops = pki_load(&e->flops)};
}

static void add(pki_fold *fold, pki_thread *t, const last_calls *c)
{
    pki_thread_fold *alone = pki_fold_thread(fold, t);
    uint32_t kind = pki_name_kind(c->id);
    add_to(fold, &fold->totals, c);
    if (alone->tracked)
        add_to(fold, &alone->calls, c);
    if (kind < PKI_KINDS)
        alone->kinds[kind] += c->own;
    pki_bump(&t->untimed_counted, c->calls);
    pki_bump(&t->recorded, c->calls);
}

void pki_fold_pending(pki_fold *fold, pki_thread *t)
{
    if (t->pending_counted)
        return;
    t->pending_counted = 1;
    pki_registry_lock();
    const pki_counted *counted = pki_load(&t->counted);
    uint32_t size = pki_load(&t->counted_size);
    pki_registry_unlock();
    for (uint32_t id = 0; id < size; id++) {
        last_calls c = pending_of(fold, t, id, &counted[id]);
        if ((c.calls || c.bytes || c.flops) && pki_table_slot(&fold->totals, id))
            add(fold, t, &c);
    }
}
