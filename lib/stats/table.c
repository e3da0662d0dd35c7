#include "stats/table.h"

#include <string.h>

#include "stats/values.h"

static bool grow(pki_spans *spans, pki_table *table, uint32_t id)
{
    uint32_t count = PKI_MAX(table->count, 128u);
    while (count <= id)
        count *= 2;
    if (count == table->count)
        return true;
    pki_slot **slots = pki_pool_claim(spans, &table->pool, count * sizeof *slots);
    if (!slots)
        return false;
    if (table->count)
        memcpy(slots, table->slots, table->count * sizeof *slots);
    table->slots = slots;
    table->count = count;
    return true;
}

static void clear(pki_slot *slot, uint32_t id, uint32_t kind)
{
    if (kind == PKI_KIND_COUNTER)
        pki_values_clear((pki_values *)slot, id);
    else
        pki_slot_clear(slot, id);
    slot->kind = kind;
}

pki_slot *pki_table_add(pki_spans *spans, pki_table *table, uint32_t id, uint32_t kind)
{
    pki_slot *slot = pki_table_slot(table, id);
    if (slot)
        return slot;
    if (!grow(spans, table, id))
        return NULL;
    size_t bytes = kind == PKI_KIND_COUNTER ? sizeof(pki_values) : sizeof *slot;
    slot = pki_pool_claim(spans, &table->pool, bytes);
    if (!slot)
        return NULL;
    clear(slot, id, kind);
    slot->next = table->first ? pki_link_to(slot, table->first) : 0;
    table->first = slot;
    table->slots[id] = slot;
    table->used++;
    return slot;
}

void pki_table_merge(pki_spans *spans, pki_table *to, const pki_table *from)
{
    for (const pki_slot *s = from->first; s; s = pki_table_next(s)) {
        pki_slot *slot = pki_table_add(spans, to, s->id, s->kind);
        if (slot && s->kind == PKI_KIND_COUNTER)
            pki_values_merge(spans, &to->pool, (pki_values *)slot, (const pki_values *)s);
        else if (slot)
            pki_slot_merge(spans, &to->pool, slot, s);
    }
}

void pki_table_reset(const pki_spans *spans, pki_table *table)
{
    table->slots = NULL;
    table->first = NULL;
    table->count = table->used = 0;
    pki_pool_reset(spans, &table->pool);
}
