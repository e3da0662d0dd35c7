#include "core/slots.h"

#include <string.h>

typedef struct span {
    uint64_t next; /* offset, 0 for none */
    uint64_t bytes;
    uint64_t pad[6];
} span;

static size_t lines_up(size_t bytes)
{
    return (bytes + PKI_LINE - 1) & ~(size_t)(PKI_LINE - 1);
}

static void enter_span(pki_arena *arena, pki_thread *t, uint64_t offset)
{
    span *s = pki_arena_at(arena, offset);
    t->span_now = offset;
    t->spare = (char *)(s + 1);
    t->spare_end = (char *)s + s->bytes;
}

static bool append_span(pki_arena *arena, pki_thread *t, size_t bytes)
{
    size_t whole = PKI_MAX(sizeof(span) + bytes, PKI_SPAN_BYTES);
    span *s = pki_arena_claim(arena, whole);
    if (!s)
        return false;
    s->bytes = whole;
    uint64_t offset = pki_arena_offset(arena, s);
    if (t->span_now)
        ((span *)pki_arena_at(arena, t->span_now))->next = offset;
    else
        t->spans = offset;
    enter_span(arena, t, offset);
    return true;
}

/* On to the next span: one left by an earlier owner of the block, or a new one. */
static bool next_span(pki_arena *arena, pki_thread *t, size_t bytes)
{
    uint64_t next = t->span_now ? ((span *)pki_arena_at(arena, t->span_now))->next : 0;
    if (!next)
        return append_span(arena, t, bytes);
    enter_span(arena, t, next);
    return true;
}

void *pki_slots_take(pki_arena *arena, pki_thread *t, size_t bytes)
{
    bytes = lines_up(bytes);
    while ((size_t)(t->spare_end - t->spare) < bytes)
        if (!next_span(arena, t, bytes))
            return NULL;
    void *at = t->spare;
    t->spare += bytes;
    return memset(at, 0, bytes);
}

/* The table grows by doubling; the old one stays where it is until the block is recycled, since a reader
 * may be in it. */
static bool grow_table(pki_arena *arena, pki_thread *t, uint32_t id)
{
    uint32_t count = PKI_MAX(t->slot_count, 128u);
    while (count <= id)
        count *= 2;
    if (count == t->slot_count)
        return true;
    pki_slot **table = pki_slots_take(arena, t, count * sizeof *table);
    if (!table)
        return false;
    if (t->slot_count)
        memcpy(table, t->slots, t->slot_count * sizeof *table);
    t->slots = table;
    t->slot_count = count;
    return true;
}

pki_slot *pki_slots_add(pki_arena *arena, pki_thread *t, uint32_t id, size_t bytes)
{
    if (!pki_arena_mirror_name(arena, id) || !grow_table(arena, t, id))
        return NULL;
    if (t->slots[id])
        return t->slots[id];
    pki_slot *slot = pki_slots_take(arena, t, bytes);
    if (!slot)
        return NULL;
    pki_slot_clear(slot, id);
    slot->next = t->first_slot ? pki_link_to(slot, t->first_slot) : 0;
    t->first_slot = slot;
    t->slots[id] = slot;
    t->slots_used++;
    return slot;
}

uint32_t *pki_slots_bucket(pki_arena *arena, pki_thread *t, pki_slot *slot, uint32_t bucket)
{
    pki_link *link = &slot->chunks[bucket / PKI_CHUNK_BUCKETS];
    if (!*link) {
        void *chunk = pki_slots_take(arena, t, sizeof(pki_chunk));
        if (!chunk)
            return NULL;
        pki_store_release(link, pki_link_to(slot, chunk)); /* zeroed before readers see it */
    }
    return (uint32_t *)pki_follow(slot, *link) + bucket % PKI_CHUNK_BUCKETS;
}

void pki_slots_carry(pki_arena *arena, pki_thread *t, pki_slot *slot, uint32_t bucket, uint32_t times)
{
    if (!slot->carry) {
        void *carry = pki_slots_take(arena, t, PK_STATS_BUCKETS * sizeof(uint32_t));
        if (!carry)
            return;
        pki_store_release(&slot->carry, pki_link_to(slot, carry)); /* zeroed before readers see it */
    }
    uint32_t *counter = (uint32_t *)pki_follow(slot, slot->carry) + bucket;
    pki_store(counter, pki_load(counter) + times);
}

static void merge_bucket(pki_arena *arena, pki_thread *t, pki_slot *to, uint32_t bucket, uint32_t n)
{
    uint32_t *counter = n ? pki_slots_bucket(arena, t, to, bucket) : NULL;
    if (!counter)
        return;
    uint32_t sum = *counter + n;
    if (sum < n)
        pki_slots_carry(arena, t, to, bucket, 1);
    pki_store(counter, sum);
}

static void merge_buckets(pki_arena *arena, pki_thread *t, pki_slot *to, const pki_slot *from)
{
    for (uint32_t c = 0; c < PKI_CHUNKS; c++) {
        const uint32_t *chunk = from->chunks[c] ? pki_follow(from, from->chunks[c]) : NULL;
        for (uint32_t i = 0; chunk && i < PKI_CHUNK_BUCKETS; i++)
            merge_bucket(arena, t, to, c * PKI_CHUNK_BUCKETS + i, chunk[i]);
    }
    const uint32_t *carry = from->carry ? pki_follow(from, from->carry) : NULL;
    for (uint32_t i = 0; carry && i < PK_STATS_BUCKETS; i++)
        if (carry[i])
            pki_slots_carry(arena, t, to, i, carry[i]);
}

void pki_slots_merge(pki_arena *arena, pki_thread *t, pki_slot *to, const pki_slot *from)
{
    uint64_t low = to->squares_low + from->squares_low;
    to->squares_high += from->squares_high + (low < from->squares_low);
    to->squares_low = low;
    to->sum += from->sum;
    to->min = PKI_MIN(to->min, from->min);
    to->max = PKI_MAX(to->max, from->max);
    to->self += from->self;
    to->bytes += from->bytes;
    to->flops += from->flops;
    to->count += from->count;
    merge_buckets(arena, t, to, from);
}

void pki_slots_reset(pki_arena *arena, pki_thread *t)
{
    t->slots = NULL;
    t->slot_count = 0;
    t->slots_used = 0;
    t->first_slot = NULL;
    t->pending = NULL;
    if (t->spans)
        enter_span(arena, t, t->spans);
}
