/* tools/live/snapshot.c - where a process stands, read from its arena without its help */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "comm/model/communicator.h"
#include "live/live.h"
#include "out/salvage.h"
#include "stats/tally.h"

/* ---- an arena's bytes, read from its file and checked ---- */

bool arena_file_read(int fd, uint64_t offset, void *to, size_t bytes)
{
    char *at = to;
    if (offset > INT64_MAX - bytes)
        return false;
    while (bytes > 0) {
        ssize_t n = pread(fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* the end of the file has come nearer */
            return false;
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return true;
}

bool arena_file_recognise(int fd)
{
    char magic[sizeof PKI_ARENA_MAGIC];
    return arena_file_read(fd, 0, magic, sizeof magic) &&
           memcmp(magic, PKI_ARENA_MAGIC, sizeof magic) == 0;
}

/* What stands before its lists. */
#define FIXED offsetof(pki_arena_header, clock.segments)

static bool check(const pki_arena_header *h, uint64_t bytes, complaint *why)
{
    if (memcmp(h->magic, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC) != 0)
        return complaint_set(why, "not an arena of perfkit");
    if (h->version == 0 || h->layout == 0)
        return complaint_set(why, "its process has just begun, or ended within pk_start");
    if (h->version != PKI_ARENA_VERSION || h->layout != pki_arena_layout())
        return complaint_set(why, "an arena of another perfkit: use the pk of the version that "
                                  "wrote it");
    if (h->clock.count == 0)
        return complaint_set(why, "its process has just begun, or ended within pk_start");
    if (h->clock.count > PKI_CLOCK_SEGMENTS || h->block_count > PKI_BLOCKS_MAX ||
        h->names > bytes || h->comms > bytes)
        return complaint_set(why, "damaged: its header makes no sense");
    return true;
}

static void end_texts(pki_arena_header *h)
{
    h->host[sizeof h->host - 1] = 0;
    h->program[sizeof h->program - 1] = 0;
    h->trace_name[sizeof h->trace_name - 1] = 0;
}

static bool read_list(int fd, pki_arena_header *h, const void *list, size_t bytes)
{
    size_t offset = (size_t)((const char *)list - (const char *)h);
    return arena_file_read(fd, offset, (char *)h + offset, bytes);
}

/* As it was, should it turn out to make no sense. */
static bool read_fixed(int fd, uint64_t bytes, pki_arena_header *h, complaint *why)
{
    char before[FIXED];
    memcpy(before, h, FIXED);
    bool whole = bytes >= sizeof *h && arena_file_read(fd, 0, h, FIXED);
    if (!whole)
        complaint_set(why, "cut off: shorter than an arena's header");
    if (whole && check(h, bytes, why))
        return true;
    memcpy(h, before, FIXED);
    return false;
}

bool arena_file_header(int fd, uint64_t bytes, pki_arena_header *header, complaint *why)
{
    if (!arena_file_recognise(fd))
        return complaint_set(why, "not an arena of perfkit");
    if (!read_fixed(fd, bytes, header, why))
        return false;
    end_texts(header);
    const pki_clock_map *clock = &header->clock;
    if (!read_list(fd, header, &header->live, sizeof header->live) ||
        !read_list(fd, header, &header->hang, sizeof header->hang) ||
        !read_list(fd, header, &header->stragglers, sizeof header->stragglers) ||
        !read_list(fd, header, clock->segments, clock->count * sizeof *clock->segments) ||
        !read_list(fd, header, header->blocks, header->block_count * sizeof *header->blocks))
        return complaint_set(why, "cut off: shorter than an arena's header");
    header->hang.words[sizeof header->hang.words - 1] = 0;
    header->stragglers.words[sizeof header->stragglers.words - 1] = 0;
    return true;
}

/* ---- the names in an arena, read as they come ---- */

static char *copy(const char *text, size_t n)
{
    char *to = malloc(n + 1);
    if (to) {
        memcpy(to, text, n);
        to[n] = 0;
    }
    return to;
}

static void add_name(live_names *names, const pki_names_entry *e)
{
    if (!pki_array_fit(&names->all, &names->room, e->id + (size_t)1, sizeof *names->all))
        return;
    live_name *n = &names->all[e->id];
    if (n->text)
        return;
    *n = (live_name){e->kind, e->value, copy(e->text, e->length),
                     copy(e->text + e->length, e->key_length)};
}

/* So many bytes of entries. */
static void add_names(live_names *names, const char *entries, size_t bytes)
{
    while (bytes > 0) {
        const pki_names_entry *e = (const void *)entries;
        if (!pki_salvage_name_is_whole(e, bytes))
            return;
        add_name(names, e);
        entries += e->bytes;
        bytes -= e->bytes;
    }
}

#define ENTRIES (PKI_NAMES_SPAN_BYTES - sizeof(pki_names_span))

/* Of the span that is read now, what is new. False: there is no span. */
static bool read_span(live_names *names, const target *t, pki_names_span *head)
{
    if (!target_read(t, names->span, head, sizeof *head) || head->used > ENTRIES)
        return false;
    if (head->used <= names->used)
        return true;
    size_t bytes = (size_t)(head->used - names->used);
    _Alignas(pki_names_entry) char entries[ENTRIES];
    if (!target_read(t, names->span + sizeof *head + names->used, entries, bytes))
        return false;
    add_names(names, entries, bytes);
    names->used = head->used;
    return true;
}

/* What has been added since the last time. Names are whole: an entry is read once its writer has
 * counted it as written. */
static void live_names_read(live_names *names, const target *t)
{
    pki_names_span head;
    if (!names->span)
        names->span = t->header->names;
    /* a damaged list may go round in circles */
    for (unsigned i = 0; i < PKI_NAMES_MAX && names->span && read_span(names, t, &head); i++) {
        if (!head.next || head.next % 8 != 0)
            return;
        names->span = head.next;
        names->used = 0;
    }
}

static void live_names_finish(live_names *names)
{
    for (size_t i = 0; i < names->room; i++) {
        free(names->all[i].text);
        free(names->all[i].key);
    }
    free(names->all);
    *names = (live_names){0};
}

const live_name *live_name_of(const live_names *names, uint32_t id)
{
    static char unknown[] = "(unknown)", none[] = "";
    static const live_name nobody = {0, 0, unknown, none};
    bool known = id < names->room && names->all[id].text && names->all[id].key;
    return known ? &names->all[id] : &nobody;
}

/* ---- distributions in an arena (stats/slot.h), from outside ---- */

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

/* All that are linked from the slot at that offset, 0 for none. What cannot be read ends the list.
 * False without memory. */
static bool live_calls_read(const target *t, uint64_t first, live_calls **calls, size_t *room,
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

static bool live_calls_stats(const target *t, const live_calls *calls, pk_stats *stats)
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

/* ---- where a process stands, read without its help ---- */

#define TRIES 100

/* What the owner changes while it records; behind it stands what changes with the collector. */
#define HEAD offsetof(pki_thread, lost)

static unsigned depth_in(uint64_t state)
{
    return (uint32_t)state < PKI_FRAME_OFFSET(0) ? 0 : pki_depth_in(state);
}

/* How many regions, from the outermost on, are the same in both. */
static unsigned count_same(const pki_thread *a, const pki_thread *b)
{
    unsigned most = PKI_MIN(depth_in(a->state), depth_in(b->state)), n = 0;
    while (n < most && a->frames[n + 1].start == b->frames[n + 1].start &&
           a->frames[n + 1].id == b->frames[n + 1].id)
        n++;
    return n;
}

static bool is_same(const pki_thread *a, const pki_thread *b)
{
    return a->state == b->state && a->laps == b->laps && a->dropped == b->dropped &&
           count_same(a, b) == depth_in(a->state);
}

/* The block at that offset, with frames that belong together up to *depth. False: it cannot be
 * read. */
static bool read_block(const target *t, uint64_t offset, pki_thread *block, unsigned *depth)
{
    _Alignas(pki_thread) static char again[sizeof(pki_thread)];
    pki_thread *second = (void *)again;
    if (!target_read(t, offset, block, sizeof *block))
        return false;
    *depth = depth_in(block->state);
    for (int i = 0; i < TRIES; i++) {
        if (!target_read(t, offset, second, HEAD))
            return false;
        if (is_same(block, second))
            return true;
        *depth = PKI_MIN(*depth, count_same(block, second));
        if (i + 1 == TRIES)
            break;
        memcpy(block, second, HEAD);
    }
    return true;
}

static void describe_operation(live_region *r, const pki_thread *block, unsigned depth)
{
    const pki_work *work = &block->work[depth];
    bool special = block->frames[depth].id & PKI_SPECIAL;
    if (!special || !pki_is_operation(work->payload_type))
        return;
    pki_comm_fields f = pki_comm_unpack(work->payload_type, work->payload);
    r->operation = f.op + 1;
    r->comm = f.comm;
    r->sequence = f.sequence;
}

static void describe(live_thread *to, const target *t, const pki_thread *block, unsigned depth)
{
    *to = (live_thread){.tid = block->tid,
                        .index = block->index,
                        .depth = depth,
                        .moving = depth < depth_in(block->state),
                        .steps = block->steps,
                        .dropped = block->dropped};
    memcpy(to->name, block->name, sizeof to->name - 1);
    memcpy(to->kinds, block->kinds, sizeof to->kinds);
    for (unsigned d = 0; d < depth; d++) {
        const pki_frame *f = &block->frames[d + 1];
        to->open[d] = (live_region){.id = f->id & PKI_FRAME_ID,
                                    .since_ns = pki_clock_ns(&t->header->clock, f->start)};
        describe_operation(&to->open[d], block, d + 1);
    }
}

/* Blocks of threads that have ended are free, or wait to be. */
static bool read_thread(snapshot *s, const target *t, uint32_t i)
{
    _Alignas(pki_thread) static char room[sizeof(pki_thread)];
    pki_thread *block = (void *)room;
    unsigned depth;
    if (!read_block(t, (uint64_t)t->header->blocks[i] * PKI_PAGE, block, &depth) ||
        block->life != PKI_THREAD_LIVE)
        return true;
    if (!pki_array_fit(&s->threads, &s->thread_room, s->thread_count + 1, sizeof *s->threads))
        return false;
    describe(&s->threads[s->thread_count++], t, block, depth);
    return true;
}

/* A damaged list may name one block a thousand times: no more than fit the file. */
static bool read_threads(snapshot *s, const target *t)
{
    uint64_t most = t->bytes / sizeof(pki_thread);
    s->thread_count = 0;
    for (uint32_t i = 0; i < t->header->block_count && i < most; i++)
        if (!read_thread(s, t, i))
            return false;
    return true;
}

/* ---- communicators ---- */

static bool add_comm(snapshot *s, const pki_comms_entry *e)
{
    if (!e->name || !e->enqueued)
        return true;
    if (!pki_array_fit(&s->comms, &s->comm_room, s->comm_count + 1, sizeof *s->comms))
        return false;
    s->comms[s->comm_count++] =
        (live_comm){e->name, e->under_way, e->enqueued, e->started, e->completed, e->messages != 0};
    return true;
}

static bool read_comms(snapshot *s, const target *t)
{
    pki_comms_span span;
    uint64_t offset = t->header->comms;
    s->comm_count = 0;
    for (uint64_t i = 0; offset && i <= t->bytes / PKI_PAGE && i < PKI_NAMES_MAX; i++) {
        if (!target_read(t, offset, &span, sizeof span))
            break;
        for (size_t k = 0; k < PKI_COMMS_IN_SPAN; k++)
            if (!add_comm(s, &span.entries[k]))
                return false;
        offset = span.next;
    }
    return true;
}

static live_comm *comm_of(snapshot *s, uint32_t name)
{
    for (size_t i = 0; i < s->comm_count; i++)
        if (s->comms[i].name == name)
            return &s->comms[i];
    return NULL;
}

/* A thread stands in an operation that the collector has not seen yet. */
static bool note_operation(snapshot *s, const live_region *r)
{
    live_comm *c = comm_of(s, r->comm);
    if (!c && !add_comm(s, &(pki_comms_entry){.name = r->comm, .enqueued = r->sequence}))
        return false;
    c = comm_of(s, r->comm);
    if (!c)
        return true;
    uint64_t n = (c->enqueued & ~(uint64_t)UINT32_MAX) | r->sequence;
    if (n <= c->enqueued && c->under_way)
        return true;
    c->enqueued = PKI_MAX(c->enqueued, n);
    c->started = PKI_MAX(c->started, n);
    c->completed = n - 1;
    c->under_way = 1;
    return true;
}

static bool note_operations(snapshot *s)
{
    for (size_t i = 0; i < s->thread_count; i++)
        for (unsigned d = 0; d < s->threads[i].depth; d++)
            if (s->threads[i].open[d].operation && !note_operation(s, &s->threads[i].open[d]))
                return false;
    return true;
}

/* ---- all of it ---- */

bool snapshot_take(snapshot *s, target *t)
{
    if (!target_refresh(t))
        return false;
    const pki_arena_header *h = t->header;
    s->now_ns = target_now_ns(t);
    s->steps = h->steps;
    s->step_since_ns = h->live.step_ticks ? pki_clock_ns(&h->clock, h->live.step_ticks) : 0;
    bool all = read_threads(s, t) && read_comms(s, t) && note_operations(s) &&
               live_calls_read(t, h->live.totals, &s->calls, &s->call_room, &s->call_count) &&
               live_calls_read(t, h->live.streams, &s->streams, &s->stream_room, &s->stream_count);
    live_names_read(&s->names, t); /* last: what has been used above has its name by now */
    return all;
}

void snapshot_finish(snapshot *s)
{
    free(s->threads);
    free(s->comms);
    free(s->calls);
    free(s->streams);
    live_names_finish(&s->names);
    *s = (snapshot){0};
}

void snapshot_read_kernel(snapshot *s, const target *t)
{
    for (size_t i = 0; i < s->thread_count && t->process.pid; i++) {
        live_thread *thread = &s->threads[i];
        int tid = process_thread(&t->process, t->header->pid, thread->tid);
        thread->system_state =
            process_thread_state(&t->process, tid, thread->waits_in, sizeof thread->waits_in);
    }
}

bool snapshot_stats(const target *t, const live_calls *calls, pk_stats *stats)
{
    return live_calls_stats(t, calls, stats);
}

const live_thread *snapshot_main(const snapshot *s)
{
    const live_thread *best = s->thread_count ? &s->threads[0] : NULL;
    for (size_t i = 1; i < s->thread_count; i++) {
        const live_thread *t = &s->threads[i];
        if (t->steps > best->steps || (!best->steps && !best->depth && t->depth))
            best = t;
    }
    return best;
}

const live_calls *snapshot_calls(const snapshot *s, uint32_t id)
{
    for (size_t i = 0; i < s->call_count; i++)
        if (s->calls[i].id == id)
            return &s->calls[i];
    return NULL;
}
