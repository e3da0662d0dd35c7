#include "live/calls.h"

#include <string.h>

#include "base/array.h"
#include "stats/values.h"

/* In units of a line from the slot; may lead anywhere, which whoever reads there finds out. */
static uint64_t follow(uint64_t slot, pki_link link)
{
    return slot + (uint64_t)((int64_t)link * PKI_LINE);
}

/* Windows of the run set aside what was before them (pki_slot_seal, pki_stats_add_slot). */
static uint64_t min_of(const pki_slot *slot)
{
    return slot->count ? PKI_MIN(slot->min, slot->min_before) : 0;
}

static uint64_t max_of(const pki_slot *slot)
{
    return PKI_MAX(slot->max, slot->max_before);
}

static live_calls row_of(const pki_slot *slot, uint64_t offset)
{
    return (live_calls){.id = slot->id,
                        .kind = slot->kind,
                        .slot = offset,
                        .count = slot->count,
                        .sum = slot->sum,
                        .self = slot->self >> 63 ? 0 : slot->self,
                        .min = min_of(slot),
                        .max = max_of(slot),
                        .bytes = slot->bytes,
                        .flops = slot->flops};
}

/* A counter has its count and last value behind its buckets. */
static void read_counter(const target *t, live_calls *row)
{
    pki_moments moments;
    if (!target_read(t, row->slot + offsetof(pki_values, last), &row->last, sizeof row->last) ||
        !target_read(t, row->slot + offsetof(pki_values, moments), &moments, sizeof moments))
        return;
    row->count = moments.count;
}

bool live_calls_read(const target *t, uint64_t first, live_calls **calls, size_t *room,
                     size_t *count)
{
    pki_slot slot;
    uint64_t offset = first;
    *count = 0;
    for (uint32_t i = 0; offset && i < 2 * PKI_NAMES_MAX; i++) {
        if (!target_read(t, offset, &slot, sizeof slot) || slot.id >= PKI_NAMES_MAX)
            return true;
        if (!pki_array_fit(calls, room, *count + 1, sizeof **calls))
            return false;
        live_calls *row = &(*calls)[(*count)++];
        *row = row_of(&slot, offset);
        if (slot.kind == PKI_KIND_COUNTER)
            read_counter(t, row);
        offset = slot.next ? follow(offset, slot.next) : 0;
    }
    return true;
}

static bool read_chunk(const target *t, const live_calls *calls, const pki_slot *slot, size_t c,
                       pk_stats *stats)
{
    pki_chunk chunk;
    uint32_t carries[PKI_CHUNK_BUCKETS] = {0};
    if (!target_read(t, follow(calls->slot, slot->chunks[c]), chunk, sizeof chunk))
        return false;
    if (slot->carry && !target_read(t, follow(calls->slot, slot->carry) + c * sizeof carries,
                                    carries, sizeof carries))
        return false;
    for (size_t i = 0; i < PKI_CHUNK_BUCKETS; i++)
        stats->buckets[c * PKI_CHUNK_BUCKETS + i] += chunk[i] + ((uint64_t)carries[i] << 32);
    return true;
}

bool live_calls_stats(const target *t, const live_calls *calls, pk_stats *stats)
{
    pki_slot slot;
    if (calls->kind == PKI_KIND_COUNTER || !target_read(t, calls->slot, &slot, sizeof slot))
        return false;
    *stats = (pk_stats){.size = sizeof *stats,
                        .count = slot.count,
                        .sum = slot.sum,
                        .min = min_of(&slot),
                        .max = max_of(&slot),
                        .self = slot.self};
    for (size_t c = 0; c < PKI_CHUNKS; c++)
        if (slot.chunks[c] && !read_chunk(t, calls, &slot, c, stats))
            return false;
    stats->unit_ns = 1.0;
    stats->mean = stats->count ? (double)stats->sum / (double)stats->count : 0;
    return true;
}
