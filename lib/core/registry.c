#include "core/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "core/arena.h"
#include "core/events.h"
#include "core/frames.h"
#include "core/join.h"
#include "core/mirror.h"
#include "core/record.h"
#include "core/ring.h"
#include "core/thread.h"

/* ---- the one mapping that holds all that is recorded, readable by another process ---- */

uint32_t pki_arena_layout(void)
{
    uint32_t h = 17;
    const size_t sizes[] = {
        sizeof(pki_arena_header),     sizeof(pki_thread), sizeof(pki_slot),       sizeof(pki_frame),
        sizeof(pki_record),           sizeof(void *),     sizeof(pki_comms_span), sizeof(pki_toll),
        offsetof(pki_thread, frames), sizeof(pki_commit), sizeof(pki_answer)};
    for (size_t i = 0; i < PKI_COUNT_OF(sizes); i++)
        h = h * 31 + (uint32_t)sizes[i];
    return h;
}

pki_arena *pki_arena_create(const pki_owned *file, size_t bytes)
{
    pki_arena *arena = pki_mem_private(sizeof *arena);
    if (!arena)
        return NULL;
    if (!pki_spans_map(&arena->spans, file, bytes, sizeof(pki_arena_header),
                       offsetof(pki_arena_header, used))) {
        pki_mem_unmap(arena, sizeof *arena);
        return NULL;
    }
    pki_arena_header *h = arena->header = (pki_arena_header *)(void *)arena->spans.start;
    pki_mem_populate(h, offsetof(pki_arena_header, blocks));
    memcpy(h->magic, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC);
    h->version = PKI_ARENA_VERSION;
    h->layout = pki_arena_layout();
    h->bytes = arena->spans.bytes;
    h->base = (uint64_t)(uintptr_t)h;
    return arena;
}

uint32_t pki_arena_pid(const char *path)
{
    struct stat file;
    char head[offsetof(pki_arena_header, pid) + sizeof(uint32_t)];
    uint32_t pid = 0;
    int fd = lstat(path, &file) == 0 && S_ISREG(file.st_mode) ? pki_fd_open(path, O_RDONLY, 0) : -1;
    if (fd < 0)
        return 0;
    if (pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
        memcmp(head, PKI_ARENA_MAGIC, sizeof PKI_ARENA_MAGIC) == 0)
        memcpy(&pid, head + offsetof(pki_arena_header, pid), sizeof pid);
    close(fd);
    return pid;
}

void pki_arena_destroy(pki_arena *arena)
{
    if (!arena)
        return;
    pki_spans_unmap(&arena->spans);
    pki_mem_unmap(arena, sizeof *arena);
}

static bool add_names_span(pki_arena *arena)
{
    pki_names_span *span = pki_arena_claim(arena, PKI_NAMES_SPAN_BYTES);
    if (!span)
        return false;
    uint64_t offset = pki_arena_offset(arena, span);
    if (arena->last_names)
        pki_store_release(&arena->last_names->next, offset);
    else
        pki_store_release(&arena->header->names, offset);
    arena->last_names = span;
    return true;
}

static bool room_for(const pki_names_span *span, size_t bytes)
{
    return span && sizeof *span + span->used + bytes <= PKI_NAMES_SPAN_BYTES;
}

bool pki_arena_mirror_name(pki_arena *arena, uint32_t id)
{
    uint64_t *word = &arena->mirrored[id / 64], bit = (uint64_t)1 << (id % 64);
    const pki_name *n = pki_name_at(id);
    if (*word & bit)
        return true;
    size_t bytes = (sizeof(pki_names_entry) + n->length + n->key_length + 7u) & ~(size_t)7;
    if (!room_for(arena->last_names, bytes) && !add_names_span(arena))
        return false;
    pki_names_span *span = arena->last_names;
    pki_names_entry *e = (pki_names_entry *)((char *)(span + 1) + span->used);
    *e = (pki_names_entry){.id = n->id,
                           .kind = n->kind,
                           .bytes = (uint16_t)bytes,
                           .length = n->length,
                           .key_length = n->key_length,
                           .value = n->value};
    memcpy(e->text, n->name, n->length);
    if (n->key_length)
        memcpy(e->text + n->length, n->key, n->key_length);
    pki_store_release(&span->used, span->used + bytes);
    *word |= bit;
    return true;
}

/* ---- all threads of a session, and its arena ---- */

static PKI_COLD pki_registry *pki_registry_drop(pki_registry *r);
static PKI_COLD void pki_registry_destroy(pki_registry *r);

#define PATIENCE_NS 1000000000u

uint32_t pk_gate_;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool entered; /* by who holds it, with pki_enter: it was in no slow path before */
static pki_registry *now;
static uint32_t opened;   /* so many, ever */
static pki_registry *all; /* that anybody holds on to */
/* What threads without a block could not record in this session. */
static uint64_t refused_regions, refused_points;

void pki_registry_lock(void)
{
    bool outermost = pki_enter(); /* a handler that interrupts us must not want it, too */
    pthread_mutex_lock(&lock);
    entered = outermost;
}

static PKI_COLD bool pki_registry_is_responsive(void)
{
    bool outermost = pki_enter(), locked = pki_lock_within(&lock, PATIENCE_NS);
    if (locked)
        pthread_mutex_unlock(&lock);
    if (outermost)
        pki_leave();
    return locked;
}

void pki_registry_unlock(void)
{
    bool outermost = entered;
    pthread_mutex_unlock(&lock);
    if (outermost)
        pki_leave();
}

pki_registry *pki_registry_now(void)
{
    return now;
}

uint32_t pki_registry_serial(void)
{
    return pki_load(&opened);
}

void pki_registry_refuse_region(void)
{
    if (pki_load(&pk_gate_))
        pki_fetch_add(&refused_regions, 1);
}

void pki_registry_refuse_point(void)
{
    if (pki_load(&pk_gate_))
        pki_fetch_add(&refused_points, 1);
}

/* Names that earlier sessions have used will be used again without passing through here. */
static bool mirror_all_names(pki_arena *arena)
{
    for (uint32_t id = PKI_NAME_TOO_MANY; id < pki_name_count(); id++)
        if (!pki_arena_mirror_name(arena, id))
            return false;
    return true;
}

/* Makes a new name known in the arena of the running session. */
static void mirror_name(uint32_t id)
{
    pki_registry_lock();
    if (now && !now->over)
        pki_arena_mirror_name(now->arena,
                              id); /* without room: "(unknown)" after a kill, and only then */
    pki_registry_unlock();
}

void pki_registry_on_drain(pki_registry *r, void (*drain)(void))
{
    r->drain = drain;
}

void pki_registry_on_step(pki_registry *r, unsigned which, pki_at_step *at_step)
{
    pki_store_release(&r->at_step[which], at_step);
}

static pki_registry *make(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    pki_registry *r = mirror_all_names(arena) ? pki_mem_private(sizeof *r) : NULL;
    if (!r)
        return NULL;
    r->arena = arena;
    r->ring_records = ring_records;
    r->monotonic = monotonic;
    r->references = 1;
    r->step_start = pki_ticks(monotonic);
    return r;
}

pki_registry *pki_registry_open(pki_arena *arena, uint32_t ring_records, uint32_t monotonic)
{
    pki_registry *before = NULL;
    pki_names_on_new(mirror_name);
    pki_registry_lock();
    pki_registry *r = make(arena, ring_records, monotonic);
    if (r) {
        before = now;
        r->next = all;
        all = now = r;
        r->serial = opened + 1;
        pki_store(&opened, opened + 1);
        before = before ? pki_registry_drop(before) : NULL;
        pki_store(&refused_regions, (uint64_t)0);
        pki_store(&refused_points, (uint64_t)0);
    }
    pki_registry_unlock();
    pki_registry_destroy(before);
    return r;
}

void pki_registry_admit(void)
{
    pki_registry_lock();
    pki_store_release(&pk_gate_, 1u);
    pki_registry_unlock();
}

/* Gives up one reference. Returns the registry if that was the last: pki_registry_destroy is left
 * to do then, without the lock, since giving memory back takes its time. */
static PKI_COLD pki_registry *pki_registry_drop(pki_registry *r)
{
    if (--r->references > 0)
        return NULL;
    pki_registry **link = &all;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    return r;
}

/* With its arena; NULL is fine. Without the lock. */
static PKI_COLD void pki_registry_destroy(pki_registry *r)
{
    if (!r)
        return;
    pki_arena_destroy(r->arena);
    pki_mem_unmap(r, sizeof *r);
}

void pki_registry_close(pki_registry *r)
{
    pki_registry_lock();
    pki_store(&pk_gate_, 0u);
    r->over = true;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++) {
        pki_thread *t = pki_registry_block(r, i);
        pki_store(&t->ended, 1u);
        pki_store(&t->limit, 0u);
    }
    pki_registry_unlock();
}

void pki_registry_discard(pki_registry *r)
{
    pki_registry_close(r);
    pki_registry_lock();
    now = NULL;
    pki_registry *last = pki_registry_drop(r);
    pki_registry_unlock();
    pki_registry_destroy(last);
}

uint32_t pki_registry_blocks(const pki_registry *r)
{
    return pki_load_acquire(
        &r->arena->header->block_count); /* pairs with the release in new_block */
}

pki_thread *pki_registry_block(const pki_registry *r, uint32_t i)
{
    return pki_arena_at(r->arena, (uint64_t)r->arena->header->blocks[i] * PKI_PAGE);
}

/* The owner stores laps, turn, state, laps_behind and turn_behind in this order when its ring wraps
 * or a turn begins (the turn only then). If the outer ones have not changed meanwhile, state was
 * read before that, behind it, or, if they differ, within: then it is near the end of the old round
 * or near the start of the new one, and they are as far apart as the round was long. */
pki_position pki_thread_position(const pki_thread *t)
{
    uint64_t behind, laps, state, offset, others;
    uint32_t turn_behind, turn;
    if (pki_load(&t->sealed))
        return (pki_position){t->sealed, t->sealed_bytes, t->sealed_others, t->sealed_turn};
    do {
        others =
            pki_load_acquire(&t->others); /* some may have been pushed that are not in it yet */
        turn_behind = pki_load_acquire(&t->turn_behind); /* pairs with the release in ring.c */
        behind = pki_load_acquire(&t->laps_behind);      /* pairs with the releases in ring.c */
        laps = pki_load_acquire(&t->laps);
        turn = pki_load_acquire(&t->turn);
        state = pki_load_acquire(&t->state);
    } while (pki_load(&t->laps) != laps || pki_load(&t->laps_behind) != behind ||
             pki_load(&t->turn) != turn || pki_load(&t->turn_behind) != turn_behind ||
             pki_load(&t->others) != others);
    offset = state >> 32;
    return (pki_position){state, (offset > (laps - behind) / 2 ? behind : laps) + offset, others,
                          turn == turn_behind ? turn : pki_turn_of(state, turn, turn_behind)};
}

void pki_thread_seal(pki_thread *t)
{
    pki_position at = pki_thread_position(t);
    t->sealed_bytes = at.bytes;
    t->sealed_others = at.others;
    t->sealed_turn = at.turn;
    pki_store(&t->sealed, at.state);
}

void pki_thread_counts(const pki_thread *t, pk_counts *c)
{
    uint64_t recorded = pki_load_acquire(&t->recorded), dropped = pki_load_acquire(&t->dropped);
    uint64_t untimed = pki_load(&t->untimed_counted);
    pki_position at = pki_thread_position(t); /* behind them: more may have been begun since */
    c->begun +=
        at.bytes / sizeof(pki_record) - at.others + pki_depth_in(at.state) + dropped + untimed;
    c->recorded += recorded;
    c->dropped += dropped;
    c->untimed += untimed;
    c->unbalanced += pki_load(&t->unbalanced);
    c->too_deep += pki_load(&t->too_deep);
    c->stray_ends += pki_load(&t->stray_ends);
    c->points += pki_load(&t->points);
    c->points_dropped += pki_load(&t->points_dropped);
    c->not_finite += pki_load(&t->not_finite);
}

void pki_registry_counts(const pki_registry *r, pk_counts *c)
{
    *c = r->arena->header->ended;
    uint64_t none = pki_load(&refused_regions);
    c->begun += none;
    c->dropped += none;
    c->points_dropped += pki_load(&r->steps_missed) + pki_load(&refused_points);
    c->threads = (uint32_t)r->arena->header->joined;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        pki_thread_counts(pki_registry_block(r, i), c);
    c->steps = pki_load(&r->arena->header->steps) - pki_load(&r->first_step);
    c->memory_bytes = pki_load(&r->arena->header->used);
}

static void add_span_tally(pki_span_tally *sum, const pki_span_tally *t)
{
    sum->begins_dropped += pki_load(&t->begins_dropped);
    sum->marks_dropped += pki_load(&t->marks_dropped);
    sum->ends_dropped += pki_load(&t->ends_dropped);
    sum->ends_lost += pki_load(&t->ends_lost);
    sum->ended_twice += pki_load(&t->ended_twice);
    sum->of_earlier += pki_load(&t->of_earlier);
    sum->requests_dropped += pki_load(&t->requests_dropped);
}

void pki_registry_span_tally(const pki_registry *r, pki_span_tally *tally)
{
    *tally = r->arena->header->ended_spans;
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        add_span_tally(tally, &pki_registry_block(r, i)->spans);
}

/* The ring goes on where it is, so that what the collector knows of it stays true. */
static void forget_counters(pki_thread *t)
{
    t->others = t->sealed_others = t->folded_others =
        pki_thread_position(t).bytes / sizeof(pki_record);
    t->points_pushed = t->recorded = t->untimed_counted = t->dropped = t->unbalanced = t->too_deep =
        t->stray_ends = t->points = t->points_dropped = t->not_finite = 0;
    t->spans = (pki_span_tally){0};
}

void pki_registry_recycle(pki_registry *r, pki_thread *t)
{
    pki_thread_counts(t, &r->arena->header->ended);
    add_span_tally(&r->arena->header->ended_spans, &t->spans);
    forget_counters(t);
    pki_table_reset(&r->arena->spans, &t->lost);
    t->counted = NULL; /* that was in the same pool */
    t->counted_size = t->pending_counted = 0;
    pki_slot_clear(&t->last_resort, PKI_NAME_TOO_MANY);
    pki_thread *gone = t; /* another thread may be making a step meanwhile: its word stands */
    __atomic_compare_exchange_n(&r->stepper, &gone, NULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    const pki_thread *ready = t;
    __atomic_compare_exchange_n(&r->ready.of, &ready, NULL, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
    pki_store_release(&t->life, (uint32_t)PKI_THREAD_FREE);
    t->next_free = r->free;
    r->free = t;
    r->waiting--;
}

void pki_registry_after_fork(pki_arena *unlisted)
{
    pthread_mutex_init(&lock, NULL);
    entered = false;
    pk_gate_ = 0;
    now = NULL;
    while (all) { /* the parent's memory, shared: out of reach from here on */
        pki_registry *r = all;
        all = r->next;
        unlisted = r->arena == unlisted ? NULL : unlisted;
        pki_registry_destroy(r);
    }
    pki_arena_destroy(unlisted);
}

/* ---- how a thread gets its block, and gives it back ---- */

#define POPULATED_AT_JOIN 65536u
#define REJOINS_AT_EXIT                                                                            \
    3 /* thread-exit destructors that still record make a thread join again; not for ever */
#define MANY_WAITING 8 /* blocks that ended threads have left: a reason not to wait for a round */
#define RETRY_REFUSED 1024 /* a thread that found no memory asks again after so many regions */

static _Thread_local unsigned releases;
static _Thread_local unsigned refusals; /* in the session of this serial number */
static _Thread_local uint32_t refused_in;

static pthread_key_t key;
static bool key_made;
static pthread_key_t
    name_key; /* by pk_thread_set_name: it outlives the thread's blocks and sessions */
static bool name_key_made;

static void at_thread_exit(void *block);

bool pki_join_prepare(void)
{
    if (!key_made)
        key_made = pthread_key_create(&key, at_thread_exit) == 0;
    return key_made;
}

void pki_join_after_fork(void)
{
    pki_own = pki_self = &pki_sentinel;
    releases = refusals = 0;
    if (key_made)
        pthread_setspecific(key, NULL);
}

static size_t block_bytes(const pki_registry *r)
{
    return sizeof(pki_thread) + (size_t)r->ring_records * sizeof(pki_record);
}

static pki_thread *make_block(pki_registry *r)
{
    pki_thread *t = pki_arena_claim(r->arena, block_bytes(r));
    if (t) {
        pki_block_init(t, (pki_record *)(t + 1), r->ring_records * (uint32_t)sizeof(pki_record),
                       r->monotonic);
        t->registry = r;
        t->session = r->serial;
    }
    return t;
}

/* Memory takes its time: the lock, under which it is called, is given up meanwhile. */
static pki_thread *new_block(pki_registry *r)
{
    pki_arena_header *h = r->arena->header;
    if (h->block_count >= PKI_BLOCKS_MAX)
        return NULL;
    pki_registry_unlock();
    pki_thread *t = make_block(r);
    pki_registry_lock();
    if (!t || r->over || h->block_count >= PKI_BLOCKS_MAX)
        return NULL;
    t->index = h->block_count;
    h->blocks[h->block_count] = (uint32_t)(pki_arena_offset(r->arena, t) / PKI_PAGE);
    pki_store_release(&h->block_count,
                      h->block_count + 1); /* pairs with the acquire in pki_registry_blocks */
    return t;
}

static pki_thread *pop_free_block(pki_registry *r)
{
    pki_thread *t = r->free;
    if (t)
        r->free = t->next_free;
    return t;
}

static void copy_system_name(pki_thread *t)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name, 0, 0, 0);
    if (strcmp(t->name, name) != 0) {
        memcpy(t->name, name, sizeof name);
        pki_bump(&t->name_version, 1);
    }
}

static void set_name(pki_thread *t, const char *name)
{
    strncpy(t->name, name, sizeof t->name - 1);
    t->name[sizeof t->name - 1] = 0;
    t->named = 1;
    pki_bump(&t->name_version, 1);
}

/* The one that the thread has given itself, maybe before pk_start; else the system's. */
static void find_name(pki_thread *t)
{
    const char *own = name_key_made ? pthread_getspecific(name_key) : NULL;
    t->named = 0;
    t->name[0] = 0;
    pki_bump(&t->name_version, 1);
    if (own)
        set_name(t, own);
    else
        copy_system_name(t);
}

static void adopt(pki_registry *r, pki_thread *t)
{
    pki_store(&t->tid,
              (uint32_t)syscall(SYS_gettid)); /* session/collector/collect.c may be reading */
    find_name(t);
    t->starved = t->over = t->untimed_open = 0;
    t->steps = t->lost_since_step = 0;
    pki_store(&t->state, (pki_load(&t->state) & ~(uint64_t)UINT32_MAX) | PKI_FRAME_OFFSET(0));
    bool slow = t->monotonic || pki_mirrors_count() || pki_events_on();
    pki_store(&t->limit, slow ? 0 : PKI_FRAME_OFFSET(PKI_DEPTH_MAX));
    pki_store_release(
        &t->life, (uint32_t)PKI_THREAD_LIVE); /* pairs with the acquire in the collector's round */
    r->references++;
    r->arena->header->joined++;
}

/* Gives the calling thread's block back. Its registry may end with it: see pki_registry_drop. */
static pki_registry *detach(pki_thread *t)
{
    pki_registry *r = t->registry;
    pki_own = &pki_sentinel;
    pthread_setspecific(key, NULL);
    if (!pki_load(&t->ended)) {
        if (!t->named)
            copy_system_name(t);
        pki_store(&t->limit, 0u);
        pki_store_release(
            &t->life,
            (uint32_t)PKI_THREAD_LEFT); /* pairs with the acquire in the collector's round */
        r->waiting++;
    }
    return pki_registry_drop(r);
}

static void release_block(pki_thread *t)
{
    releases++;
    pki_bump(&t->unbalanced, t->untimed_open);
    if (!pki_load(&t->ended))
        pki_close_above(t, t->frames, pki_ticks(t->monotonic)); /* may take the lock itself */
    pki_sampler_release();
    pki_registry_lock();
    pki_registry *r = t->registry, *over = detach(t);
    void (*drain)(void) = r->waiting >= MANY_WAITING ? r->drain : NULL;
    pki_registry_unlock();
    pki_registry_destroy(over);
    if (drain)
        drain(); /* threads that follow each other fast would each take new memory */
}

static void at_thread_exit(void *block)
{
    int saved = errno;
    if (!pki_enter()) /* pthread_exit in a handler, amid something of ours: it stays as it is */
        return;
    if (pki_registry_is_responsive())
        release_block(block);
    pki_leave();
    errno = saved;
}

static pki_thread *join(pki_registry *r)
{
    pki_thread *t = pop_free_block(r);
    if (!t)
        t = new_block(r);
    if (!t)
        return NULL;
    if (pthread_setspecific(key, t) != 0) {
        t->next_free = r->free;
        r->free = t;
        return NULL;
    }
    adopt(r, t);
    pki_own = t;
    refusals = 0;
    return t;
}

/* The first page faults are taken here and not by the regions that follow. */
static void warm(pki_thread *t)
{
    uint64_t wanted = PKI_MIN(t->ring_bytes, POPULATED_AT_JOIN);
    pki_mem_populate(t, sizeof *t + wanted);
    pki_store(&t->populated, PKI_MAX(pki_load(&t->populated), wanted));
}

/* What the thread was in, and what it is to be in, may both end meanwhile. */
static pki_thread *join_now(void)
{
    pki_registry *over[2] = {NULL, NULL};
    pki_thread *t = NULL;
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    bool open = r && !r->over;
    if (open) {
        r->references++;
        over[0] = pki_own != &pki_sentinel ? detach(pki_own) : NULL;
        t = join(r);
        over[1] = pki_registry_drop(r);
    }
    pki_registry_unlock();
    pki_registry_destroy(over[0]);
    pki_registry_destroy(over[1]);
    if (t)
        warm(t);
    refusals += open && !t;
    return t;
}

/* Has this thread just been told that there is no memory? */
static bool is_refused(void)
{
    uint32_t serial = pki_registry_serial();
    if (refused_in != serial) {
        refused_in = serial;
        refusals = 0;
    }
    return refusals % RETRY_REFUSED != 0;
}

pki_thread *pki_thread_join(void)
{
    pki_thread *t = pki_own;
    if (t != &pki_sentinel && !pki_load(&t->ended))
        return t;
    if (releases >= REJOINS_AT_EXIT)
        return NULL;
    if (t == &pki_sentinel && is_refused()) {
        refusals++;
        return NULL;
    }
    int saved = errno;
    t = join_now();
    errno = saved;
    return t;
}

/* For the sessions to come: a thread may name itself before pk_start. Without memory it has the
 * system's name there. */
static void keep_name(const char *name)
{
    char *copy = strndup(name, PKI_THREAD_NAME - 1);
    if (!copy)
        return;
    pki_registry_lock();
    if (!name_key_made)
        name_key_made = pthread_key_create(&name_key, free) == 0;
    bool made = name_key_made;
    pki_registry_unlock();
    char *before = made ? pthread_getspecific(name_key) : NULL;
    free(made && pthread_setspecific(name_key, copy) == 0 ? before : copy);
}

/* Gives the name to what the calling thread records in now. */
static void name_block(const char *name)
{
    pki_thread *t = pki_thread_join();
    if (!t)
        return;
    pki_registry_lock();
    set_name(t, name);
    pki_registry_unlock();
}

void pk_thread_set_name(const char *name)
{
    if (!name || !pki_enter())
        return;
    int saved = errno;
    keep_name(name);
    if (pki_load(&pk_gate_))
        name_block(name);
    errno = saved;
    pki_leave();
}

pki_thread *pki_registry_thread_of(const pki_registry *r, uint32_t tid)
{
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++) {
        pki_thread *t = pki_registry_block(r, i);
        if (pki_load_acquire(&t->life) == PKI_THREAD_LIVE && pki_load(&t->tid) == tid)
            return t;
    }
    return NULL;
}

bool pki_thread_name_of(uint32_t tid, const char *name)
{
    pki_registry_lock();
    pki_registry *r = pki_registry_now();
    pki_thread *t = r && !r->over ? pki_registry_thread_of(r, tid) : NULL;
    if (t)
        set_name(t, name);
    pki_registry_unlock();
    return t != NULL;
}
