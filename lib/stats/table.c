#include "stats/table.h"

#include <string.h>

#include "stats/values.h"

typedef struct span {
    uint64_t next; /* offset, 0 for none */
    uint64_t bytes;
    uint64_t pad[6];
} span;

static size_t lines_up(size_t bytes)
{
    return (bytes + PKI_LINE - 1) & ~(size_t)(PKI_LINE - 1);
}

static void enter_span(pki_arena *arena, pki_table *table, uint64_t offset)
{
    span *s = pki_arena_at(arena, offset);
    table->span_now = offset;
    table->spare = (char *)(s + 1);
    table->spare_end = (char *)s + s->bytes;
}

static bool append_span(pki_arena *arena, pki_table *table, size_t bytes)
{
    size_t whole = PKI_MAX(sizeof(span) + bytes, PKI_SPAN_BYTES);
    span *s = pki_arena_claim(arena, whole);
    if (!s)
        return false;
    s->bytes = whole;
    uint64_t offset = pki_arena_offset(arena, s);
    if (table->span_now)
        ((span *)pki_arena_at(arena, table->span_now))->next = offset;
    else
        table->spans = offset;
    enter_span(arena, table, offset);
    return true;
}

/* On to the next span: one left from before a reset, or a new one. */
static bool next_span(pki_arena *arena, pki_table *table, size_t bytes)
{
    uint64_t next = table->span_now ? ((span *)pki_arena_at(arena, table->span_now))->next : 0;
    if (!next)
        return append_span(arena, table, bytes);
    enter_span(arena, table, next);
    return true;
}

static void *take(pki_arena *arena, pki_table *table, size_t bytes)
{
    bytes = lines_up(bytes);
    while ((size_t)(table->spare_end - table->spare) < bytes)
        if (!next_span(arena, table, bytes))
            return NULL;
    void *at = table->spare;
    table->spare += bytes;
    return memset(at, 0, bytes);
}

static bool grow(pki_arena *arena, pki_table *table, uint32_t id)
{
    uint32_t count = PKI_MAX(table->count, 128u);
    while (count <= id)
        count *= 2;
    if (count == table->count)
        return true;
    pki_slot **slots = take(arena, table, count * sizeof *slots);
    if (!slots)
        return false;
    if (table->count)
        memcpy(slots, table->slots, table->count * sizeof *slots);
    table->slots = slots;
    table->count = count;
    return true;
}

static bool holds_values(uint32_t id)
{
    const pki_name *n = pki_name_at(id);
    return n && n->kind == PKI_KIND_COUNTER;
}

static void clear(pki_slot *slot, uint32_t id)
{
    if (holds_values(id))
        pki_values_clear((pki_values *)slot, id);
    else
        pki_slot_clear(slot, id);
    const pki_name *n = pki_name_at(id);
    slot->kind = n ? n->kind : PK_OTHER;
}

pki_slot *pki_table_add(pki_arena *arena, pki_table *table, uint32_t id)
{
    pki_slot *slot = pki_table_slot(table, id);
    if (slot)
        return slot;
    if (!grow(arena, table, id))
        return NULL;
    slot = take(arena, table, holds_values(id) ? sizeof(pki_values) : sizeof *slot);
    if (!slot)
        return NULL;
    clear(slot, id);
    slot->next = table->first ? pki_link_to(slot, table->first) : 0;
    table->first = slot;
    table->slots[id] = slot;
    table->used++;
    return slot;
}

/* The bucket's counter, made if needed; NULL without room. */
static uint32_t *bucket_of(pki_arena *arena, pki_table *table, pki_slot *slot, uint32_t bucket)
{
    pki_link *link = &slot->chunks[bucket / PKI_CHUNK_BUCKETS];
    if (PKI_UNLIKELY(!*link)) {
        void *chunk = take(arena, table, sizeof(pki_chunk));
        if (!chunk)
            return NULL;
        pki_store_release(link, pki_link_to(slot, chunk)); /* zeroed before readers see it */
    }
    return (uint32_t *)pki_follow(slot, *link) + bucket % PKI_CHUNK_BUCKETS;
}

/* The bucket has overflowed so many times. */
static PKI_COLD void carry(pki_arena *arena, pki_table *table, pki_slot *slot, uint32_t bucket,
                           uint32_t times)
{
    if (!slot->carry) {
        void *words = take(arena, table, PK_STATS_BUCKETS * sizeof(uint32_t));
        if (!words)
            return;
        pki_store_release(&slot->carry,
                          pki_link_to(slot, words)); /* zeroed before readers see it */
    }
    uint32_t *counter = (uint32_t *)pki_follow(slot, slot->carry) + bucket;
    pki_bump(counter, times);
}

static void add_to_bucket(pki_arena *arena, pki_table *table, pki_slot *slot, uint32_t bucket,
                          uint32_t n)
{
    uint32_t *counter = bucket_of(arena, table, slot, bucket);
    if (!counter)
        return;
    uint32_t sum = pki_load(counter) + n;
    if (PKI_UNLIKELY(sum < n))
        carry(arena, table, slot, bucket, 1);
    pki_store(counter, sum);
}

void pki_table_count_bucket(pki_arena *arena, pki_table *table, pki_slot *slot, uint32_t bucket)
{
    add_to_bucket(arena, table, slot, bucket, 1);
}

static void merge_buckets(pki_arena *arena, pki_table *table, pki_slot *to, const pki_slot *from)
{
    for (uint32_t c = 0; c < PKI_CHUNKS; c++) {
        const uint32_t *chunk = from->chunks[c] ? pki_follow(from, from->chunks[c]) : NULL;
        for (uint32_t i = 0; chunk && i < PKI_CHUNK_BUCKETS; i++)
            if (chunk[i])
                add_to_bucket(arena, table, to, c * PKI_CHUNK_BUCKETS + i, chunk[i]);
    }
    const uint32_t *carries = from->carry ? pki_follow(from, from->carry) : NULL;
    for (uint32_t i = 0; carries && i < PK_STATS_BUCKETS; i++)
        if (carries[i])
            carry(arena, table, to, i, carries[i]);
}

void pki_table_merge_slot(pki_arena *arena, pki_table *table, pki_slot *to, const pki_slot *from)
{
    uint64_t low = to->squares_low + from->squares_low;
    to->squares_high += from->squares_high + (low < from->squares_low);
    to->squares_low = low;
    to->count += from->count;
    to->sum += from->sum;
    to->min = PKI_MIN(to->min, from->min);
    to->max = PKI_MAX(to->max, from->max);
    to->self += from->self;
    to->bytes += from->bytes;
    to->flops += from->flops;
    merge_buckets(arena, table, to, from);
}

void pki_table_merge(pki_arena *arena, pki_table *to, const pki_table *from)
{
    for (const pki_slot *s = from->first; s; s = pki_table_next(s)) {
        pki_slot *slot = pki_table_add(arena, to, s->id);
        if (slot && holds_values(s->id))
            pki_values_merge(arena, to, (pki_values *)slot, (const pki_values *)s);
        else if (slot)
            pki_table_merge_slot(arena, to, slot, s);
    }
}

void pki_table_reset(pki_arena *arena, pki_table *table)
{
    table->slots = NULL;
    table->first = NULL;
    table->count = table->used = 0;
    if (table->spans)
        enter_span(arena, table, table->spans);
}
