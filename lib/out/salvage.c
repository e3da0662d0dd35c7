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

#include "comm/model/communicator.h"
#include "core/arena.h"
#include "core/ring.h"
#include "core/registry.h"
#include "core/thread.h"
#include "measure/fold/walk.h"
#include "out/chrome/chrome.h"
#include "out/chrome/events.h"
#include "out/file.h"

/* ---- a killed run's arena, read from its file ---- */

/* So many bytes at that offset of the file, or NULL if it does not have them. */
static inline const void *pki_salvage_at(const pki_salvage *s, uint64_t offset, uint64_t bytes)
{
    return offset <= s->bytes && bytes <= s->bytes - offset ? s->base + offset : NULL;
}

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

/* ---- opening ---- */

/* The bytes from there on; what is no longer in the file stays zero. */
static void read_extent(int fd, char *base, off_t at, off_t end)
{
    while (at < end) {
        ssize_t n = pread(fd, base + at, (size_t)(end - at), at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        at += n;
    }
}

/* Holes of the file stay holes. Where the file system does not tell them, all is read. */
static void read_extents(int fd, char *base, off_t bytes)
{
    for (off_t at = 0, end; at < bytes; at = end) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return;
        end = data < 0 ? bytes : lseek(fd, data, SEEK_HOLE);
        end = end > at && end < bytes ? end : bytes;
        read_extent(fd, base, data < 0 ? at : data, end);
    }
}

/* A copy: others may change the file meanwhile, or cut it off, which in a mapping of it would be a
 * value that is another one when it is read again, or a signal. */
static bool copy(pki_salvage *s, int fd)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return fail(s, "%s", strerror(errno));
    if (!S_ISREG(file.st_mode) || (size_t)file.st_size < sizeof(pki_arena_header))
        return fail(s, "not an arena of perfkit: too short");
    char *base = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return fail(s, "no memory");
    read_extents(fd, base, file.st_size);
    s->base = base;
    s->bytes = (size_t)file.st_size;
    s->header = (const pki_arena_header *)(const void *)base;
    return true;
}

static bool read_file(pki_salvage *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(s, "%s", strerror(errno));
    bool done = copy(s, fd);
    close(fd);
    return done;
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

bool pki_salvage_name_is_whole(const pki_names_entry *e, uint64_t left)
{
    return left >= sizeof *e && e->bytes >= sizeof *e && e->bytes <= left && e->bytes % 8 == 0 &&
           e->id < PKI_NAMES_MAX && sizeof *e + e->length + e->key_length <= e->bytes &&
           e->length <= PKI_NAME_BYTES && e->key_length <= PKI_NAME_BYTES &&
           !memchr(e->text, 0, e->length + (size_t)e->key_length); /* names have none */
}

static void read_names_span(pki_salvage *s, const pki_names_span *span)
{
    const char *p = (const char *)(span + 1);
    uint64_t left = PKI_MIN(span->used, PKI_NAMES_SPAN_BYTES - sizeof *span);
    while (left > 0) {
        const pki_names_entry *e = (const pki_names_entry *)p;
        if (!pki_salvage_name_is_whole(e, left))
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
        const pki_names_span *span =
            offset % 8 == 0 ? pki_salvage_at(s, offset, PKI_NAMES_SPAN_BYTES) : NULL;
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
    if (!read_file(s, path) || !check_header(s) || !read_names(s))
        return false;
    s->generation = s->header->generation & 1;
    s->commit = s->header->commit[s->generation];
    s->counts = s->header->ended;
    s->counts.steps = s->header->steps;
    pki_chrome_init(&s->chrome, &s->header->clock, s->header->pid, name_of, s);
    pki_chrome_set_rank(&s->chrome, s->header->rank, s->header->world_size);
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
    const char *buffer = sound ? pki_salvage_at(s, s->header->output, s->commit.buffered) : NULL;
    *bytes = buffer ? (size_t)s->commit.buffered : 0;
    return buffer;
}

/* ---- what a file is, by its first bytes ---- */

/* How many bytes of the magic are there; -1 if it cannot be read. */
static ssize_t read_magic(const char *path, char magic[sizeof PKI_ARENA_MAGIC])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, magic, sizeof PKI_ARENA_MAGIC);
    close(fd);
    return n;
}

bool pki_salvage_recognise(const char *path)
{
    char magic[sizeof PKI_ARENA_MAGIC];
    return read_magic(path, magic) == (ssize_t)sizeof magic &&
           memcmp(magic, PKI_ARENA_MAGIC, sizeof magic) == 0;
}

bool pki_salvage_is_blank(const char *path)
{
    char magic[sizeof PKI_ARENA_MAGIC] = "";
    static const char none[sizeof magic];
    return read_magic(path, magic) >= 0 && memcmp(magic, none, sizeof magic) == 0;
}

/* ---- what a killed run's trace says of the run ---- */

static void settle_counts(const pki_salvage *s, pk_counts *c)
{
    *c = s->counts;
    c->recorded = c->begun - PKI_MIN(c->dropped, c->begun); /* the rest is in the trace now */
    c->threads = (uint32_t)PKI_MIN(s->header->joined, UINT32_MAX);
    c->written = s->commit.events;
    c->unwritten = s->commit.unwritten;
    for (uint32_t id = PKI_NAME_FIRST; id < PKI_NAMES_MAX; id++)
        c->regions += s->names[id] && s->names[id]->kind <= PK_WAIT;
}

size_t pki_salvage_head(const pki_salvage *s, char out[PKI_HEAD_BYTES])
{
    const pki_arena_header *h = s->header;
    const pki_clock_map *clock = &h->clock;
    char host[sizeof h->host + 1], program[sizeof h->program + 1], id[sizeof h->clock_id + 1];
    char job[sizeof h->job + 1];
    snprintf(host, sizeof host, "%.*s", (int)sizeof h->host, h->host);
    snprintf(program, sizeof program, "%.*s", (int)sizeof h->program, h->program);
    snprintf(id, sizeof id, "%.*s", (int)sizeof h->clock_id, h->clock_id);
    snprintf(job, sizeof job, "%.*s", (int)sizeof h->job, h->job);
    pki_chrome_run run = {.host = host,
                          .program = program,
                          .rank = h->rank,
                          .world_size = h->world_size,
                          .local_rank = h->local_rank,
                          .local_size = h->local_size,
                          .node = h->node,
                          .job = job,
                          .start_unix = h->start_unix,
                          .base_ns = clock->origin_ns,
                          .clock_id = id,
                          .clock_name = clock->monotonic ? "monotonic" : PKI_CYCLE_COUNTER_NAME,
                          .clock_hz = pki_clock_hz(clock),
                          .clock_step_ns = (double)clock->step_ticks * pki_clock_unit_ns(clock),
                          .clock_uncertainty_ns = (double)clock->uncertainty_ns,
                          .clock_ppm = pki_clock_ppm(clock),
                          .toll = h->toll};
    settle_counts(s, &run.counts);
    return pki_chrome_head(&s->chrome, out, &run);
}

/* ---- what was in a killed run's rings, and open on its threads' stacks ---- */

/* What a pointer of the process meant. */
static const void *translate(const pki_salvage *s, const void *pointer, uint64_t bytes)
{
    return pki_salvage_at(s, (uint64_t)(uintptr_t)pointer - s->header->base, bytes);
}

typedef struct block {
    const pki_thread *t;
    uint64_t taken, head; /* places */
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

/* The memory of a turn; NULL if the file does not have it. */
static const pki_record *records_of(const pki_salvage *s, const pki_thread *t, uint32_t turn)
{
    uint32_t pages = pki_turn_at(t, turn)->segment;
    const void *at = pages ? pki_salvage_at(s, (uint64_t)pages * PKI_PAGE, t->ring_bytes)
                           : translate(s, t->home, t->ring_bytes);
    return (uintptr_t)at % 8 == 0 ? at : NULL;
}

static uint64_t cursor_of(const pki_thread *t, uint64_t turn, uint64_t state)
{
    uint32_t offset = pki_cursor_offset_in(t, (uint32_t)turn, (uint32_t)(state >> 32));
    return pki_cursor_of((uint32_t)turn, offset);
}

static bool is_sound(const pki_salvage *s, const block *b)
{
    uint32_t from = pki_cursor_turn(b->taken), to = pki_cursor_turn(b->head);
    if (to - from >= PKI_TURNS || !is_offset(b->t, pki_cursor_offset(b->taken)) ||
        !is_offset(b->t, pki_cursor_offset(b->head)))
        return false;
    for (uint32_t turn = from; turn != to; turn++)
        if (!records_of(s, b->t, turn) || !is_offset(b->t, pki_turn_at(b->t, turn)->end))
            return false;
    return records_of(s, b->t, to) != NULL;
}

/* False if there is nothing in block i, or nothing that makes sense. */
static bool read_block(const pki_salvage *s, uint32_t i, block *b)
{
    const pki_thread *t = pki_salvage_at(s, (uint64_t)s->header->blocks[i] * PKI_PAGE, sizeof *t);
    if (!t || t->life == PKI_THREAD_FREE || t->ring_bytes == 0 ||
        t->ring_bytes % sizeof(pki_record) != 0)
        return false;
    b->t = t;
    b->taken = t->taken[s->generation];
    bool closed = i < s->commit.closed; /* by a pk_stop that was killed then */
    uint64_t state = closed ? t->sealed : t->state;
    b->depth = closed || t->life != PKI_THREAD_LIVE ? 0 : depth_in(state);
    b->head =
        cursor_of(t, closed ? t->sealed_turn : pki_turn_of(state, t->turn, t->turn_behind), state);
    return is_sound(s, b);
}

/* Blocks do not overlap. In a damaged list one could stand a thousand times, and be read as often.
 */
static void count_blocks(pki_salvage *s)
{
    block b;
    uint64_t together = 0;
    for (uint32_t i = 0; i < s->header->block_count; i++) {
        if (read_block(s, i, &b))
            together += sizeof *b.t + (uint64_t)b.t->ring_bytes *
                                          (1 + pki_cursor_turn(b.head) - pki_cursor_turn(b.taken));
        if (together > s->bytes)
            break;
        s->block_count = i + 1;
    }
}

/* Of each record in a block that has not been taken; false: no more of them. more: its second slot.
 */
typedef bool visitor(void *user, uint64_t place, const pki_record *record, const pki_record *more);

static bool visit_turn(const block *b, const pki_record *records, uint64_t from, uint32_t until,
                       visitor *visit, void *user)
{
    for (uint32_t at = pki_cursor_offset(from); at != until;) {
        const pki_record *r = pki_record_in(records, at);
        uint64_t place = pki_cursor_of(pki_cursor_turn(from), at);
        at = pki_ring_next(b->t, at);
        const pki_record *more = pki_record_in(records, at);
        if (pki_record_slots(r->what) == 2 && at != until)
            at = pki_ring_next(b->t, at);
        if (!visit(user, place, r, more))
            return false;
    }
    return true;
}

/* Where a turn's records end, of which those up to `at` have been taken. A handler may have been
 * undone in it, as in measure/fold/walk.h: what was folded stands there for certain, and of a turn
 * that folding has left the end is noted (pki_fold_end). */
static uint32_t end_of_turn(const block *b, const pki_record *records, uint32_t turn, uint32_t at)
{
    const pki_thread *t = b->t;
    uint64_t folded = t->folded;
    uint32_t until = pki_turn_until(t, turn, at, b->head);
    bool here = pki_cursor_turn(folded) == turn && is_offset(t, pki_cursor_offset(folded));
    if ((int32_t)(pki_cursor_turn(folded) - turn) > 0)
        return until;
    return pki_fold_bound(t, records, turn, here ? pki_cursor_offset(folded) : at, until);
}

static bool visit_records(const pki_salvage *s, const block *b, visitor *visit, void *user)
{
    uint64_t from = b->taken;
    for (uint32_t turn = pki_cursor_turn(from);; from = pki_cursor_of(++turn, 0)) {
        const pki_record *records = records_of(s, b->t, turn);
        uint32_t until = end_of_turn(b, records, turn, pki_cursor_offset(from));
        if (!visit_turn(b, records, from, until, visit, user))
            return false;
        if (turn == pki_cursor_turn(b->head))
            return true;
    }
}

static void note_time(pki_salvage *s, uint64_t ticks)
{
    s->last_ticks = PKI_MAX(s->last_ticks, ticks);
}

static bool note_record(void *user, uint64_t place, const pki_record *r, const pki_record *more)
{
    unsigned type = pki_what_type(r->what);
    bool lasts = type == PKI_RECORD_REGION || type == PKI_RECORD_REGION_WORK;
    (void)place;
    (void)more;
    note_time(user, r->start + (lasts ? pki_not_negative(r->value) : 0));
    return true;
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
        visit_records(s, &b, note_record, s);
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
        s->counts.steps =
            PKI_MAX(s->counts.steps, more->start + !(pki_what_flags(r->what) & PKI_FLAG_BETWEEN));
}

static bool put_record(output *o, const block *b, const pki_record *r, const pki_record *more)
{
    char event[PKI_EVENT_BYTES];
    size_t n = pki_chrome_event(&o->from->chrome, event, b->t->tid, r, more);
    o->from->commit.events += n > 0;
    return n == 0 || o->sink(o->user, event, n);
}

typedef struct putting {
    output *o;
    const block *b;
    bool folded; /* what comes next has been */
} putting;

static bool put_next(void *user, uint64_t place, const pki_record *r, const pki_record *more)
{
    putting *p = user;
    uint64_t folded = p->b->t->folded;
    p->folded &= place != folded && pki_cursor_turn(place) <= pki_cursor_turn(folded);
    if (!p->folded)
        count_point(p->o->from, r, more);
    return put_record(p->o, p->b, r, more);
}

static bool put_ring(output *o, const block *b)
{
    putting p = {o, b, true};
    return visit_records(o->from, b, put_next, &p);
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
            offset % PKI_PAGE == 0 ? pki_salvage_at(o->from, offset, sizeof *span) : NULL;
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
