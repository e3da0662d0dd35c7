#include "live/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "comm/model/operation.h"
#include "live/calls.h"

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
