#include "out/salvage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/comms.h"
#include "core/registry.h"
#include "out/chrome/collective.h"
#include "out/file.h"

static bool fail(pki_salvage *s, const char *format, ...) PKI_PRINTF(2, 3);

static bool fail(pki_salvage *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->why, sizeof s->why, format, args);
    va_end(args);
    pki_salvage_close(s);
    return false;
}

/* ---- places in the file ---- */

/* So many bytes at that offset, or NULL if the file does not have them. */
static const void *at(const pki_salvage *s, uint64_t offset, uint64_t bytes)
{
    return offset <= s->bytes && bytes <= s->bytes - offset ? s->base + offset : NULL;
}

/* What a pointer of the process meant. */
static const void *translate(const pki_salvage *s, const void *pointer, uint64_t bytes)
{
    return at(s, (uint64_t)(uintptr_t)pointer - s->header->base, bytes);
}

/* ---- opening ---- */

static bool map(pki_salvage *s, const char *path)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0) {
        if (fd >= 0)
            close(fd);
        return fail(s, "%s", strerror(errno));
    }
    void *base = MAP_FAILED;
    if (S_ISREG(file.st_mode) && (size_t)file.st_size >= sizeof(pki_arena_header))
        base = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (base == MAP_FAILED)
        return fail(s, "not an arena of perfkit: too short");
    s->base = base;
    s->bytes = (size_t)file.st_size;
    s->header = base;
    return true;
}

/* In the order in which pk_start fills it in. */
static bool is_unfinished(const pki_arena_header *h)
{
    if (h->version == 0 || h->layout == 0)
        return true;
    bool ours = h->version == PKI_ARENA_VERSION && h->layout == pki_arena_layout();
    bool headless = h->trace_name[0] && h->commit[h->generation & 1].file_bytes == 0;
    return ours && (h->clock.count == 0 || headless);
}

static bool check_header(pki_salvage *s)
{
    const pki_arena_header *h = s->header;
    if (memcmp(h->magic, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC) != 0)
        return fail(s, "not an arena of perfkit");
    if (is_unfinished(h))
        return fail(s, "%s", PKI_SALVAGE_UNFINISHED);
    if (h->version != PKI_ARENA_VERSION || h->layout != pki_arena_layout())
        return fail(s, "an arena of another perfkit: use the pk of the version that wrote it");
    if (h->block_count > PKI_BLOCKS_MAX || h->clock.count == 0 ||
        h->clock.count > PKI_CLOCK_SEGMENTS)
        return fail(s, "damaged: its header makes no sense");
    return true;
}

static bool entry_is_whole(const pki_names_entry *e, uint64_t left)
{
    return left >= sizeof *e && e->bytes >= sizeof *e && e->bytes <= left && e->bytes % 8 == 0 &&
           e->id < PKI_NAMES_MAX && sizeof *e + e->length + e->key_length <= e->bytes &&
           e->length <= PKI_NAME_BYTES && e->key_length <= PKI_NAME_BYTES &&
           !memchr(e->text, 0, e->length + (size_t)e->key_length); /* names have none */
}

static void read_names_span(pki_salvage *s, const pki_names_span *span)
{
    const char *p = (const char *)(span + 1);
    uint64_t left = PKI_MIN(span->used, PKI_SPAN_BYTES - sizeof *span);
    while (left > 0) {
        const pki_names_entry *e = (const pki_names_entry *)p;
        if (!entry_is_whole(e, left))
            return;
        s->names[e->id] = e;
        p += e->bytes;
        left -= e->bytes;
    }
}

static bool read_names(pki_salvage *s)
{
    s->names = calloc(PKI_NAMES_MAX, sizeof *s->names);
    if (!s->names)
        return fail(s, "no memory");
    uint64_t offset = s->header->names;
    for (unsigned i = 0; offset && i < PKI_NAMES_MAX;
         i++) { /* a damaged list may go round in circles */
        const pki_names_span *span = offset % 8 == 0 ? at(s, offset, PKI_SPAN_BYTES) : NULL;
        if (!span)
            break;
        read_names_span(s, span);
        offset = span->next;
    }
    return true;
}

static pki_chrome_name name_of(void *user, uint32_t id)
{
    const pki_salvage *s = user;
    const pki_names_entry *e = id < PKI_NAMES_MAX ? s->names[id] : NULL;
    if (!e)
        return (pki_chrome_name){.name = "(unknown)", .key = "", .length = 9, .kind = UINT32_MAX};
    return (pki_chrome_name){e->text, e->text + e->length, e->length, e->key_length, e->kind,
                             e->value};
}

bool pki_salvage_open(pki_salvage *s, const char *path)
{
    memset(s, 0, sizeof *s);
    if (!map(s, path) || !check_header(s) || !read_names(s))
        return false;
    s->generation = s->header->generation & 1;
    s->commit = s->header->commit[s->generation];
    s->counts = s->header->ended;
    s->counts.steps = s->header->steps;
    pki_chrome_init(&s->chrome, &s->header->clock, s->header->pid, name_of, s);
    s->chrome.id_base = (uint64_t)PKI_MAX(s->header->rank, 0) << 32;
    return true;
}

void pki_salvage_close(pki_salvage *s)
{
    pki_chrome_finish(&s->chrome);
    free(s->names);
    if (s->base)
        munmap((void *)(uintptr_t)s->base, s->bytes);
    s->names = NULL;
    s->base = NULL;
}

int pki_salvage_writer(const char *path)
{
    if (!pki_file_is_locked(path))
        return 0;
    uint32_t pid = pki_arena_pid(path);
    return pid ? (int)pid : -1;
}

const char *pki_salvage_buffer(const pki_salvage *s, size_t *bytes)
{
    bool sound = s->commit.buffered <= s->header->output_bytes;
    const char *buffer = sound ? at(s, s->header->output, s->commit.buffered) : NULL;
    *bytes = buffer ? (size_t)s->commit.buffered : 0;
    return buffer;
}

/* ---- blocks ---- */

typedef struct block {
    const pki_thread *t;
    const pki_record *ring;
    uint32_t taken, head; /* offsets in the ring */
    unsigned depth;       /* regions that are open, still to be closed */
} block;

static bool is_offset(const pki_thread *t, uint32_t offset)
{
    return offset % sizeof(pki_record) == 0 && offset < t->ring_bytes;
}

static unsigned depth_in(uint64_t state)
{
    return (uint32_t)state < PKI_FRAME_OFFSET(0) ? 0 : pki_depth_in(state);
}

/* False if there is nothing in block i, or nothing that makes sense. */
static bool read_block(const pki_salvage *s, uint32_t i, block *b)
{
    const pki_thread *t = at(s, (uint64_t)s->header->blocks[i] * PKI_PAGE, sizeof *t);
    if (!t || t->life == PKI_THREAD_FREE || t->ring_bytes == 0 ||
        t->ring_bytes % sizeof(pki_record) != 0)
        return false;
    b->t = t;
    b->ring = translate(s, t->ring, t->ring_bytes);
    b->taken = t->taken[s->generation];
    bool closed = i < s->commit.closed; /* by a pk_stop that was killed then */
    uint64_t state = closed ? t->sealed : t->state;
    b->depth = closed || t->life != PKI_THREAD_LIVE ? 0 : depth_in(state);
    b->head = (uint32_t)(state >> 32) == t->ring_bytes ? 0 : (uint32_t)(state >> 32);
    return b->ring && (uintptr_t)b->ring % 8 == 0 && is_offset(t, b->taken) &&
           is_offset(t, b->head);
}

/* Blocks do not overlap. In a damaged list one could stand a thousand times, and be read as often. */
static void count_blocks(pki_salvage *s)
{
    block b;
    uint64_t together = 0;
    for (uint32_t i = 0; i < s->header->block_count; i++) {
        if (read_block(s, i, &b))
            together += sizeof *b.t + b.t->ring_bytes;
        if (together > s->bytes)
            break;
        s->block_count = i + 1;
    }
}

static const pki_record *record_at(const block *b, uint32_t offset)
{
    return (const pki_record *)((const char *)b->ring + offset);
}

static void note_time(pki_salvage *s, uint64_t ticks)
{
    s->last_ticks = PKI_MAX(s->last_ticks, ticks);
}

static void note_ring(pki_salvage *s, const block *b)
{
    for (uint32_t at_offset = b->taken; at_offset != b->head;) {
        const pki_record *r = record_at(b, at_offset);
        unsigned type = pki_what_type(r->what);
        bool lasts = type == PKI_RECORD_REGION || type == PKI_RECORD_REGION_WORK;
        note_time(s, r->start + (lasts ? pki_not_negative(r->value) : 0));
        at_offset = pki_ring_next(b->t, at_offset);
        if (pki_record_slots(r->what) == 2 && at_offset != b->head)
            at_offset = pki_ring_next(b->t, at_offset);
    }
}

/* Regions that were open when the process ended are closed at the last moment that anything is
 * known of, and a microsecond later, so that one that had just begun is seen inside the others. */
static void find_last_moment(pki_salvage *s)
{
    block b;
    double unit_ns = pki_clock_unit_ns(&s->header->clock);
    note_time(s, s->header->clock.last.ticks);
    note_time(s, s->commit.ticks);
    for (uint32_t i = 0; i < s->block_count; i++) {
        if (!read_block(s, i, &b))
            continue;
        note_ring(s, &b);
        for (unsigned d = b.depth; d > 0; d--)
            note_time(s, b.t->frames[d].start);
    }
    s->last_ticks += unit_ns > 0.001 ? (uint64_t)(1000 / unit_ns) : 0;
}

typedef struct output {
    pki_salvage *from;
    pki_salvage_sink *sink;
    void *user;
} output;

/* Who folded the rings had not counted it yet. */
static void count_point(pki_salvage *s, const pki_record *r, const pki_record *more)
{
    unsigned type = pki_what_type(r->what);
    s->counts.points += type >= PKI_RECORD_STEP;
    if (type == PKI_RECORD_STEP)
        s->counts.steps = PKI_MAX(s->counts.steps, more->start + 1);
}

static bool put_record(output *o, const block *b, const pki_record *r, const pki_record *more)
{
    char event[PKI_EVENT_BYTES];
    size_t n = pki_chrome_event(&o->from->chrome, event, b->t->tid, r, more);
    o->from->commit.events += n > 0;
    return n == 0 || o->sink(o->user, event, n);
}

static bool put_ring(output *o, const block *b)
{
    bool folded = true;
    for (uint32_t at_offset = b->taken; at_offset != b->head;) {
        const pki_record *r = record_at(b, at_offset);
        folded = folded && at_offset != b->t->folded;
        at_offset = pki_ring_next(b->t, at_offset);
        const pki_record *more = record_at(b, at_offset);
        if (pki_record_slots(r->what) == 2 && at_offset != b->head)
            at_offset = pki_ring_next(b->t, at_offset);
        if (!folded)
            count_point(o->from, r, more);
        if (!put_record(o, b, r, more))
            return false;
    }
    return true;
}

static bool put_open_regions(output *o, const block *b)
{
    for (unsigned d = b->depth; d > 0; d--) {
        const pki_frame *f = &b->t->frames[d];
        uint64_t ticks = pki_not_negative(o->from->last_ticks - f->start);
        pki_record r = {f->start, ticks,
                        (f->id & PKI_FRAME_ID) | PKI_WHAT(0, PKI_RECORD_REGION, d) |
                            PKI_FLAGS(PKI_FLAG_UNBALANCED | PKI_FLAG_CUT_OFF),
                        0};
        if (!put_record(o, b, &r, &r))
            return false;
    }
    return true;
}

/* Even if it has been written: perhaps into a part of the buffer that was not in force. */
static bool put_name(output *o, const block *b)
{
    char event[PKI_EVENT_BYTES], name[sizeof b->t->name + 1];
    snprintf(name, sizeof name, "%.*s", (int)sizeof b->t->name, b->t->name);
    return o->sink(o->user, event,
                   pki_chrome_thread(&o->from->chrome, event, b->t->tid, name, b->t->index));
}

/* ---- communicators ---- */

static bool put_entry(output *o, const pki_comms_entry *e)
{
    char event[PKI_EVENT_BYTES];
    uint64_t now = pki_clock_ns(o->from->chrome.clock, o->from->last_ticks);
    return !e->name || !e->enqueued ||
           o->sink(o->user, event, pki_chrome_progress(&o->from->chrome, event, now, e));
}

static bool put_comms(output *o)
{
    uint64_t offset = o->from->header->comms;
    for (unsigned i = 0; offset && i <= PKI_COMMS_MAX / PKI_COMMS_IN_SPAN; i++) {
        const pki_comms_span *span =
            offset % PKI_PAGE == 0 ? at(o->from, offset, sizeof *span) : NULL;
        if (!span)
            break;
        for (size_t k = 0; k < PKI_COMMS_IN_SPAN; k++)
            if (!put_entry(o, &span->entries[k]))
                return false;
        offset = span->next;
    }
    return true;
}

bool pki_salvage_events(pki_salvage *s, pki_salvage_sink *sink, void *user)
{
    output o = {s, sink, user};
    block b;
    count_blocks(s);
    find_last_moment(s);
    for (uint32_t i = 0; i < s->block_count; i++) {
        if (!read_block(s, i, &b))
            continue;
        pki_thread_counts(b.t, &s->counts);
        if (!put_name(&o, &b) || !put_ring(&o, &b) || !put_open_regions(&o, &b))
            return false;
    }
    return put_comms(&o);
}
