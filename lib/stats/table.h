/* lib/stats/table.h - a table of distributions by name id, in 64 KiB spans of the arena.
 *
 * A table has one writer at a time. Readers of somebody else's table take the registry's lock,
 * under which slots are added and tables grow; buckets are added without it.
 */
#ifndef PKI_STATS_TABLE_H
#define PKI_STATS_TABLE_H

#include "core/arena.h"
#include "stats/slot.h"

typedef struct pki_table {
    pki_slot **slots; /* by name id; NULL where there is none */
    pki_slot *first;  /* all of them, linked */
    char *spare;      /* memory left in the current span, up to spare_end */
    char *spare_end;
    uint64_t spans;    /* offset of the first span; each starts with the next one's offset */
    uint64_t span_now; /* the one in use */
    uint32_t count;    /* of the array */
    uint32_t used;     /* slots */
} pki_table;

static inline pki_slot *pki_table_slot(const pki_table *table, uint32_t id)
{
    return id < table->count ? table->slots[id] : NULL;
}

static inline pki_slot *pki_table_next(const pki_slot *slot)
{
    return slot->next ? pki_follow(slot, slot->next) : NULL;
}

/* The slot of name id, made if needed: a pki_slot for a region, a pki_values for a counter. NULL
 * without room. */
pki_slot *pki_table_add(pki_arena *arena, pki_table *table, uint32_t id);

/* One more in that bucket of the slot. */
void pki_table_count_bucket(pki_arena *arena, pki_table *table, pki_slot *slot, uint32_t bucket);

/* One call of so many ticks. */
static inline void pki_table_count(pki_arena *arena, pki_table *table, pki_slot *slot,
                                   uint64_t ticks)
{
    uint32_t bucket = pki_bucket(ticks), calls = 0;
    pki_link chunk = slot->chunks[bucket / PKI_CHUNK_BUCKETS];
    uint32_t *counter = (uint32_t *)pki_follow(slot, chunk) + bucket % PKI_CHUNK_BUCKETS;
    pki_bump(&slot->count, 1);
    pki_slot_add_moments(slot, ticks);
    if (PKI_LIKELY(chunk))
        calls = pki_load(counter) + 1;
    if (PKI_LIKELY(calls))
        pki_store(counter, calls);
    else /* there is none yet, or it overflows */
        pki_table_count_bucket(arena, table, slot, bucket);
}

/* Adds slot `from` (of any table) to slot `to` of this one. */
void pki_table_merge_slot(pki_arena *arena, pki_table *table, pki_slot *to, const pki_slot *from);

/* Adds a whole table; what finds no room is left out. */
void pki_table_merge(pki_arena *arena, pki_table *to, const pki_table *from);

/* Forgets all slots; their memory is used again. */
void pki_table_reset(pki_arena *arena, pki_table *table);

#endif
