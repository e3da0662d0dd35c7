#include "core/sampler.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/processors.h"
#include "core/registry.h"

/* The owner's thread id above it; 0: nobody's. */
enum { IDLE, FREE, BUSY, OVER, TAKEN };
#define PHASE(state) ((unsigned)((state)&7u))
#define STATE(tid, phase) ((uint64_t)(tid) << 3 | (phase))

#define TRIES 1000 /* to find a sampler's owner out of it, as the session ends */
#define TARE_TRIES 8

pki_sampling pki_sampling_now;
uint32_t pki_sampling_on;

static pki_sampler *all[PKI_SAMPLERS];
static uint32_t fds_open;
static uint32_t threads, without, lost, beyond;
static int last_error;
static uint32_t longest_pair; /* ns */
static uint64_t opening_ns;
static uint32_t session; /* a number of its own */

static _Thread_local pki_sampler *mine;
static _Thread_local uint64_t my_tag;
static _Thread_local uint32_t refused_in; /* the session that had none for this thread */

/* What is done in it is seen by who is in it next. And who takes one, and then finds the session
 * open, is seen by who ends it and then looks whose it is: one order for all of these. */
static bool change(pki_sampler *s, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(&s->state, &from, to, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

static bool is_on(void)
{
    return __atomic_load_n(&pki_sampling_on, __ATOMIC_SEQ_CST);
}

static pki_sampler *at(unsigned i)
{
    return __atomic_load_n(&all[i], __ATOMIC_SEQ_CST);
}

/* ---- events ---- */

static unsigned descriptors_of(const pki_sampler *s)
{
    unsigned count = 0;
    for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++)
        count += s->group[g].count;
    return count;
}

static void close_groups(pki_sampler *s)
{
    unsigned count = descriptors_of(s);
    for (unsigned g = 0; count && g < PKI_EVENT_GROUPS; g++)
        pki_perf_close(&s->group[g]);
    if (count)
        pki_fetch_add(&fds_open, 0u - count);
}

static uint32_t mask_of(const pki_sampler *s)
{
    uint32_t mask = 0;
    for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++)
        mask |= pki_perf_mask(&s->group[g]) << PKI_EVENT_AT(g, 0);
    return mask;
}

/* A sum of the thread's own: readings are too frequent for one that all threads share. */
static bool read_group(pki_sampler *s, const pki_perf_group *g, pki_perf_reading *r)
{
    bool read = pki_perf_read(g, r);
    if (read && !r->direct) {
        pki_store(&s->reads.bytes, s->reads.bytes + pki_perf_read_size(g));
        pki_store(&s->reads.calls, s->reads.calls + 1);
    }
    return read;
}

bool pki_sampler_read(pki_sampler *s, pki_event_reading *r)
{
    bool read = true;
    for (unsigned g = 0; read && g < PKI_EVENT_GROUPS; g++)
        read = !s->group[g].count || read_group(s, &s->group[g], &r->of[g]);
    if (!read && !s->broken) {
        s->broken = true;
        pki_fetch_add(&lost, 1u);
    }
    return read;
}

static bool between(const pki_sampler *s, const pki_event_reading *from,
                    const pki_event_reading *to, double value[PKI_EVENTS])
{
    for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++)
        if (s->group[g].count &&
            !pki_perf_between(&from->of[g], &to->of[g], value + PKI_EVENT_AT(g, 0)))
            return false;
    return true;
}

static void subtract_tare(const pki_sampler *s, unsigned from, double value[PKI_EVENTS])
{
    for (unsigned i = from; i < from + PKI_PERF_EVENTS; i++)
        value[i] = PKI_MAX(value[i] - s->tare[i], 0.0);
}

/* Bad speculation may be below 0: what retired in the call was dispatched before it. Sums even that
 * out. */
bool pki_sampler_between(const pki_sampler *s, const pki_event_reading *from,
                         const pki_event_reading *to, double value[PKI_EVENTS])
{
    if (!between(s, from, to, value))
        return false;
    for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++)
        if (s->group[g].count)
            subtract_tare(s, PKI_EVENT_AT(g, 0), value);
    if (s->group[PKI_TOPDOWN].count && pki_sampling_now.counts_dispatched)
        value[PKI_EVENT_AT(PKI_TOPDOWN, PKI_SLOTS_BAD_SPECULATION)] -=
            value[PKI_EVENT_AT(PKI_TOPDOWN, PKI_SLOTS_RETIRING)];
    return true;
}

/* What reading takes, and what it counts itself. */
static void weigh(pki_sampler *s)
{
    uint64_t least = UINT64_MAX;
    double value[PKI_EVENTS] = {0};
    bool any = false;
    s->pair_ns = s->cost_ns = 0;
    for (int i = 0; i < TARE_TRIES; i++) {
        pki_event_reading from, to;
        uint64_t before = pki_monotonic_ns();
        if (!pki_sampler_read(s, &from) || !pki_sampler_read(s, &to))
            return;
        least = PKI_MIN(least, pki_monotonic_ns() - before);
        if (!between(s, &from, &to, value))
            continue;
        for (int j = 0; j < PKI_EVENTS; j++)
            s->tare[j] = any ? PKI_MIN(s->tare[j], value[j]) : value[j];
        any = true;
    }
    s->pair_ns = s->cost_ns = (double)least;
    if (least > pki_load(&longest_pair) && least < UINT32_MAX) /* of two at once, either will do */
        pki_store(&longest_pair, (uint32_t)least);
}

/* As many as the session found, or none: figures of threads are added up. */
static bool open_groups(pki_sampler *s)
{
    const pki_sampling *now = &pki_sampling_now;
    int error = 0;
    if (pki_fetch_add(&fds_open, now->each) + now->each > now->fds) {
        pki_fetch_add(&fds_open, 0u - now->each);
        return false;
    }
    for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++) {
        if (!now->group[g].count)
            continue;
        pki_perf_open(&s->group[g], now->group[g].events, now->group[g].count, true);
        error = error ? error : s->group[g].error;
    }
    pki_fetch_add(&fds_open, descriptors_of(s) - now->each);
    if (mask_of(s) == now->mask)
        return true;
    close_groups(s);
    pki_store(&last_error, error);
    return false;
}

/* ---- whose it is ---- */

static pki_sampler *new_one(uint64_t tag)
{
    for (unsigned i = 0; i < PKI_SAMPLERS; i++) {
        pki_sampler *none = NULL;
        if (pki_load(&all[i]))
            continue;
        pki_sampler *s = pki_mem_private(sizeof *s);
        if (!s)
            return NULL;
        s->state = tag | BUSY;
        if (__atomic_compare_exchange_n(&all[i], &none, s, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return s;
        pki_mem_unmap(s, sizeof *s);
    }
    return NULL;
}

/* One that a thread has left, or another one. */
static pki_sampler *claim(uint64_t tag)
{
    for (unsigned i = 0; i < PKI_SAMPLERS; i++) {
        pki_sampler *s = at(i);
        if (s && pki_load(&s->state) == STATE(0, IDLE) && change(s, STATE(0, IDLE), tag | BUSY))
            return s;
    }
    return new_one(tag);
}

static void prepare(pki_sampler *s, const pki_thread *t)
{
    s->broken = false;
    s->check_at = s->checked = s->checked_at_ticks = 0;
    s->check_gap = s->pick_weight = 1;
    s->seed = my_tag * 0x9E3779B97F4A7C15u;
    s->unit_ns = pki_clock_unit_ns(&t->registry->arena->header->clock);
    memset(s->tare, 0, sizeof s->tare);
    weigh(s);
}

static void disable(pki_sampler *s)
{
    refused_in = pki_load(&session);
    pki_fetch_add(&without, 1u);
    if (s)
        pki_store_release(&s->state, STATE(0, IDLE));
}

static pki_sampler *begin_mine(const pki_thread *t)
{
    if (refused_in == pki_load(&session) ||
        pki_load(&opening_ns) > pki_load(&pki_sampling_now.opening_ns))
        return NULL;
    uint64_t before = pki_read_clock(CLOCK_THREAD_CPUTIME_ID);
    my_tag = STATE((uint32_t)syscall(SYS_gettid), 0);
    pki_sampler *s = claim(my_tag);
    if (!s || !open_groups(s)) {
        disable(s);
        return NULL;
    }
    prepare(s, t);
    pki_fetch_add(&threads, 1u);
    pki_fetch_add(&opening_ns, pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - before);
    return mine = s;
}

static void clear(pki_sampler *s)
{
    close_groups(s);
    memset(s->row, 0, s->rows * sizeof *s->row);
    s->rows = 0;
    double none = 0;
    __atomic_store(&s->spent_ns, &none, __ATOMIC_RELAXED);
}

static void release(pki_sampler *s)
{
    clear(s);
    pki_store_release(&s->state, STATE(0, IDLE));
    mine = NULL;
}

/* Unless whoever has ended the session has given up waiting for us. */
static void leave(pki_sampler *s)
{
    if (!change(s, my_tag | BUSY, my_tag | FREE))
        release(s);
}

void pki_sampler_leave(pki_sampler *s)
{
    int saved = errno;
    leave(s);
    errno = saved;
}

pki_sampler *pki_sampler_enter_mine(void)
{
    if (mine && !change(mine, my_tag | FREE, my_tag | BUSY))
        mine = NULL;
    return mine;
}

pki_sampler *pki_sampler_enter(const pki_thread *t)
{
    int saved = errno;
    pki_sampler *s = pki_sampler_enter_mine();
    if (!s && is_on()) {
        s = begin_mine(t);
        if (s && !is_on()) { /* it has ended meanwhile, and may not have seen this one */
            release(s);
            s = NULL;
        }
    }
    errno = saved;
    return s;
}

void pki_sampler_release(void)
{
    pki_sampler *s = pki_sampler_enter_mine();
    if (!s)
        return;
    mine = NULL;
    close_groups(s);
    if (!change(s, my_tag | BUSY, STATE(0, IDLE)))
        release(s);
}

pki_event_sums *pki_sampler_row(pki_sampler *s, uint32_t id)
{
    for (uint32_t i = 0; i < PKI_SAMPLED_REGIONS; i++) {
        pki_event_sums *row = &s->row[(id + i) % PKI_SAMPLED_REGIONS];
        if (row->id == id)
            return row;
        if (row->id)
            continue;
        row->id = id;
        row->gap = 1;
        s->rows = PKI_SAMPLED_REGIONS;
        return row;
    }
    pki_fetch_add(&beyond, 1u);
    return NULL;
}

/* ---- sessions ---- */

double pki_samplers_spent(void)
{
    double spent = (double)pki_load(&opening_ns);
    for (unsigned i = 0; i < PKI_SAMPLERS; i++) {
        const pki_sampler *s = at(i);
        double one = 0;
        if (!s)
            break;
        __atomic_load(&s->spent_ns, &one, __ATOMIC_RELAXED);
        spent += one;
    }
    return spent;
}

pki_own_reads pki_samplers_reads(void)
{
    pki_own_reads sum = {0, 0};
    for (unsigned i = 0; i < PKI_SAMPLERS && at(i); i++) {
        sum.bytes += pki_load(&at(i)->reads.bytes);
        sum.calls += pki_load(&at(i)->reads.calls);
    }
    return sum;
}

void pki_samplers_open(const pki_sampling *wanted)
{
    pki_sampling_now = *wanted;
    threads = without = lost = beyond = 0;
    last_error = 0;
    longest_pair = 0;
    opening_ns = 0;
    pki_bump(&session, 1u);
    pki_store_release(&pki_sampling_on, 1u);
}

/* False: its owner is in it, and stays there. */
static bool seize(pki_sampler *s)
{
    for (unsigned i = 0;; i++) {
        uint64_t state = __atomic_load_n(&s->state, __ATOMIC_SEQ_CST);
        if (PHASE(state) == OVER)
            return false;
        if (PHASE(state) != BUSY && change(s, state, STATE(0, TAKEN)))
            return true;
        if (PHASE(state) == BUSY && i >= TRIES && change(s, state, (state & ~(uint64_t)7) | OVER))
            return false;
        sched_yield();
    }
}

void pki_samplers_close(void (*take)(void *user, const pki_event_sums *row), void *user,
                        pki_sampling_counts *counts)
{
    __atomic_store_n(&pki_sampling_on, 0u, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < PKI_SAMPLERS; i++) {
        pki_sampler *s = at(i);
        if (!s)
            break;
        if (!seize(s)) {
            pki_fetch_add(&lost, 1u);
            continue;
        }
        for (uint32_t r = 0; r < s->rows; r++)
            if (s->row[r].id)
                take(user, &s->row[r]);
        clear(s);
        pki_store_release(&s->state, STATE(0, IDLE));
    }
    *counts =
        (pki_sampling_counts){pki_load(&threads), pki_load(&without),    pki_load(&lost),
                              pki_load(&beyond),  pki_load(&last_error), pki_load(&longest_pair)};
}

/* What another thread was in is the parent's in any state; only descriptors are ours to close. */
void pki_samplers_after_fork(void)
{
    pki_sampling_on = 0;
    mine = NULL;
    for (unsigned i = 0; i < PKI_SAMPLERS && all[i]; i++) {
        for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++)
            pki_perf_after_fork(&all[i]->group[g]);
        clear(all[i]);
        all[i]->state = STATE(0, IDLE);
    }
    fds_open = 0;
}
