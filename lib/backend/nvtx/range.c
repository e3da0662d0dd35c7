/* lib/backend/nvtx/range.c - ranges with an id, which may begin on one thread and end on another,
 * and overlap as they like.
 *
 * So they are no regions of a thread: they stand on tracks of their own, as many as are needed to
 * keep those that overlap apart, and count in the distribution of their name, but in no thread's
 * self times. An open range is a cell; its id is the cell's number and how often that has been
 * used, so an id that is ended twice, or never was one, finds nothing. Taking and giving back cells
 * is lock-free; memory for more is taken under a lock.
 */
#include "backend/nvtx/nvtx.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/free_list.h"
#include "core/registry.h"
#include "measure/fold/fold.h"
#include "out/emit.h"
#include "session/activity.h"
#include "session/session.h"

#define CELLS 1024u /* in a block */
#define BLOCKS 64u
#define NOWHERE UINT32_MAX
#define LANES 64u
#define LANE_TID (1u << 29) /* no thread's: Linux ends at 2^22 */

enum { FREE, OPEN, ENDED };

typedef struct cell {
    uint64_t state; /* how often used << 2 | one of the above */
    uint32_t next;  /* free, or ended and to be handed over */
    uint32_t session;
    uint32_t region, begun_by, ended_by;
    uint32_t monotonic;
    uint64_t start, end;
    pki_work work;
} cell;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for growing */
static cell *blocks[BLOCKS];
static uint32_t block_count;
static pki_free_list free_cells; /* by cell + 1 */
static uint32_t ended_head = NOWHERE;
static uint64_t lane_end[LANES];

static cell *cell_at(uint32_t i)
{
    return &pki_load(&blocks[i / CELLS])[i % CELLS];
}

/* ---- cells ---- */

static uint32_t *link_of(void *none, uint32_t number)
{
    (void)none;
    return &cell_at(number - 1)->next;
}

static void release(uint32_t i)
{
    pki_free_list_push(&free_cells, link_of, NULL, i + 1);
}

/* NOWHERE: none is free. */
static uint32_t pop_free(void)
{
    return pki_free_list_pop(&free_cells, link_of, NULL) - 1;
}

static PKI_COLD bool grow(void)
{
    int saved = errno;
    pthread_mutex_lock(&lock);
    bool more = (uint32_t)pki_load(&free_cells) != 0; /* somebody else has */
    cell *cells = !more && block_count < BLOCKS ? calloc(CELLS, sizeof *cells) : NULL;
    if (cells) {
        uint32_t first = block_count * CELLS;
        pki_store(&blocks[block_count], cells);
        pki_store_release(&block_count, block_count + 1); /* pairs with the acquire in range_end */
        for (uint32_t i = CELLS; i-- > 0;)
            release(first + i);
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return more || cells;
}

static uint32_t claim(void)
{
    uint32_t i = pop_free();
    while (i == NOWHERE && grow())
        i = pop_free();
    return i;
}

/* ---- start and end ---- */

static uint32_t thread_id(void)
{
    return pki_thread_is_joined(pki_self) ? pki_self->tid : (uint32_t)syscall(SYS_gettid);
}

uint64_t pki_nvtx_range_start(const pki_nvtx_event *event)
{
    uint32_t i = claim();
    if (i == NOWHERE) {
        pki_registry_refuse_point();
        return 0;
    }
    cell *c = cell_at(i);
    uint64_t uses = (pki_load(&c->state) >> 2) + 1;
    c->session = pki_registry_serial();
    c->region = pki_region_id(event->region);
    c->begun_by = thread_id();
    pki_store(&c->monotonic, pki_the_session.config.monotonic);
    c->work = event->work;
    c->start = pki_ticks(c->monotonic);
    pki_store_release(&c->state, uses << 2 | OPEN); /* pairs with the acquire in close_cell */
    return (uint64_t)(i + 1) << 40 | (uses & (((uint64_t)1 << 40) - 1));
}

/* One of those who want to close it does. */
static bool close_cell(cell *c, uint64_t uses)
{
    uint64_t state = pki_load_acquire(&c->state);
    return (state & 3) == OPEN && state >> 2 == uses &&
           __atomic_compare_exchange_n(&c->state, &state, uses << 2 | ENDED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void hand_over(uint32_t i)
{
    uint32_t head = pki_load(&ended_head);
    do {
        pki_store(&cell_at(i)->next, head);
    } while (
        !__atomic_compare_exchange_n(&ended_head, &head, i, false, __ATOMIC_RELEASE,
                                     __ATOMIC_RELAXED)); /* pairs with the acquire in collect */
}

void pki_nvtx_range_end(uint64_t id, const pki_work *more)
{
    uint32_t i = (uint32_t)(id >> 40) - 1;
    uint64_t uses = id & (((uint64_t)1 << 40) - 1);
    if (id >> 40 == 0 || i / CELLS >= pki_load_acquire(&block_count))
        return;
    cell *c = cell_at(i);
    uint64_t now = pki_ticks(pki_load(&c->monotonic));
    if (!close_cell(c, uses))
        return;
    c->end = now;
    c->ended_by = thread_id();
    if (more && more->payload_type) {
        c->work.payload = more->payload;
        c->work.payload_type = more->payload_type;
    }
    c->work.bytes += more ? more->bytes : 0;
    c->work.flops += more ? more->flops : 0;
    hand_over(i);
}

/* ---- into the trace: under the drain lock ---- */

/* The first track that has nothing at that time or later; nor at the same, since viewers that add
 * up in floating point would see those overlap. */
static uint32_t lane_for(uint64_t start, uint64_t end)
{
    uint32_t lane = 0;
    while (lane < LANES && lane_end[lane] && lane_end[lane] >= start)
        lane++;
    if (lane == LANES)
        return 0;
    lane_end[lane] = end;
    char name[32];
    snprintf(name, sizeof name, lane ? "NVTX ranges %u" : "NVTX ranges", lane + 1);
    return pki_track_add(&(pki_track){.pid = pki_the_session.config.world.pid,
                                      .tid = LANE_TID + lane,
                                      .thread = name,
                                      .sort = PKI_BLOCKS_MAX + lane});
}

static size_t put_payload(const pki_work *work, pki_activity_arg *arg, char text[32])
{
    double real;
    if (!work->payload_type)
        return 0;
    *arg = (pki_activity_arg){"payload", NULL, (int64_t)work->payload};
    memcpy(&real, &work->payload, sizeof real);
    if (work->payload_type == PKI_PAYLOAD_REAL) {
        *pki_put_double(text, real) = '\0';
        arg->text = text;
    }
    return 1;
}

static void add_activity(const cell *c, bool unbalanced)
{
    char real[32];
    pki_activity_arg args[6];
    size_t n = put_payload(&c->work, args, real);
    const pki_name *name = pki_name_at(c->region);
    uint64_t start = pki_activity_ns_of_ticks(c->start), end = pki_activity_ns_of_ticks(c->end);
    if (name->key_length)
        args[n++] = (pki_activity_arg){name->key, NULL, name->value};
    if (c->work.flops)
        args[n++] = (pki_activity_arg){"flops", NULL, (int64_t)c->work.flops};
    args[n++] = (pki_activity_arg){"thread", NULL, c->begun_by};
    if (unbalanced)
        args[n++] = (pki_activity_arg){"unbalanced", NULL, 1};
    else if (c->ended_by != c->begun_by)
        args[n++] = (pki_activity_arg){"ended by", NULL, c->ended_by};
    pki_activity_add(&(pki_activity){.kind = PKI_ACTIVITY_RANGE,
                                     .track = lane_for(start, end),
                                     .name = name->name,
                                     .name_length = name->length,
                                     .start = start,
                                     .end = end,
                                     .device = PKI_NO_DEVICE,
                                     .bytes = c->work.bytes,
                                     .args = args,
                                     .arg_count = n});
}

static void record(const cell *c, bool unbalanced)
{
    if (c->session != pki_registry_serial())
        return; /* its session is over */
    uint64_t start = pki_activity_ns_of_ticks(c->start), end = pki_activity_ns_of_ticks(c->end);
    pki_fold_lock();
    pki_fold_range(pki_fold_now(), c->region, end > start ? end - start : 0, c->work.bytes,
                   c->work.flops);
    pki_fold_unlock();
    add_activity(c, unbalanced);
}

static void free_cell(uint32_t i)
{
    cell *c = cell_at(i);
    pki_store_release(&c->state, pki_load(&c->state) >> 2 << 2 | FREE);
    release(i);
}

/* The last that ended come first: turned round, so that each finds the tracks as they were. */
static uint32_t in_order(uint32_t list)
{
    uint32_t turned = NOWHERE;
    while (list != NOWHERE) {
        uint32_t next = pki_load(&cell_at(list)->next);
        pki_store(&cell_at(list)->next, turned);
        turned = list;
        list = next;
    }
    return turned;
}

void pki_nvtx_ranges_collect(void)
{
    uint32_t i = in_order(__atomic_exchange_n(&ended_head, NOWHERE, __ATOMIC_ACQUIRE));
    while (i != NOWHERE) {
        uint32_t next = pki_load(&cell_at(i)->next);
        record(cell_at(i), false);
        free_cell(i);
        i = next;
    }
}

void pki_nvtx_ranges_stop(void)
{
    pki_nvtx_ranges_collect();
    for (uint32_t i = 0; i < pki_load_acquire(&block_count) * CELLS; i++) {
        cell *c = cell_at(i);
        if (!close_cell(c, pki_load(&c->state) >> 2))
            continue;
        c->end = pki_ticks(c->monotonic);
        record(c, true);
        free_cell(i);
    }
    memset(lane_end, 0, sizeof lane_end);
}

/* Nobody is at a cell any more; what was open is the parent's. */
void pki_nvtx_ranges_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    free_cells = 0;
    ended_head = NOWHERE;
    for (uint32_t i = block_count * CELLS; i-- > 0;)
        free_cell(i);
    memset(lane_end, 0, sizeof lane_end);
}
