/* lib/stats/table.h - a table of distributions by name id.
 *
 * A table has one writer at a time. Readers of somebody else's table take the registry's lock,
 * under which slots are added and tables grow; buckets are added without it.
 */
#pragma once

#include "stats/kinds.h"
#include "stats/slot.h"

typedef struct pki_table {
    pki_slot **slots; /* by name id; NULL where there is none */
    pki_slot *first;  /* all of them, linked */
    pki_pool pool;
    uint32_t count; /* of the array */
    uint32_t used;  /* slots */
} pki_table;

static inline pki_slot *pki_table_slot(const pki_table *table, uint32_t id)
{
    return id < table->count ? table->slots[id] : NULL;
}

static inline pki_slot *pki_table_next(const pki_slot *slot)
{
    return slot->next ? pki_follow(slot, slot->next) : NULL;
}

/* The slot of name id, made if needed: of a counter a pki_values (stats/values.h). NULL without
 * room. */
pki_slot *pki_table_add(pki_spans *spans, pki_table *table, uint32_t id, uint32_t kind);

/* One call of so many ticks, in a slot of this table. */
static inline void pki_table_count(pki_spans *spans, pki_table *table, pki_slot *slot,
                                   uint64_t ticks)
{
    pki_slot_count(spans, &table->pool, slot, ticks);
}

/* Adds a whole table; what finds no room is left out. */
void pki_table_merge(pki_spans *spans, pki_table *to, const pki_table *from);

/* Forgets all slots; their memory is used again. */
void pki_table_reset(const pki_spans *spans, pki_table *table);
