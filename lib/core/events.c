#include "core/events.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "base/processors.h"
#include "core/names.h"
#include "core/registry.h"
#include "core/thread.h"

/* ---- a thread's hardware, software and top-down events ---- */

/* What one reading has of all groups. */
typedef struct pki_event_reading {
    pki_perf_reading of[PKI_EVENT_GROUPS];
} pki_event_reading;

typedef struct pki_sampler {
    uint64_t state;
    uint32_t rows;
    bool broken;       /* its descriptors are not ours any more */
    double unit_ns;    /* of a tick */
    double pair_ns;    /* two readings in a row, as fast as they can be */
    double cost_ns;    /* of a sampled call, as they have been of late */
    double spent_ns;   /* so far */
    uint64_t seed;     /* of distances */
    uint64_t check_at; /* records, up to the next look (core/events.h) */
    uint64_t checked;  /* records and ticks at the last one */
    uint64_t checked_at_ticks;
    uint32_t check_gap;                     /* records between two, on average */
    uint32_t pick_weight;                   /* of the call that the last look has picked */
    pki_perf_group group[PKI_EVENT_GROUPS]; /* without events: not asked for, or not to be had */
    double tare[PKI_EVENTS];                /* what two readings in a row differ by */
    pki_own_reads reads;                    /* by read(2), by whoever had it, ever */
    pki_event_reading end;
    pki_event_reading begin[PKI_DEPTH_MAX + 2]; /* by depth */
    double weight[PKI_DEPTH_MAX + 2];
    pki_event_sums row[PKI_SAMPLED_REGIONS];
} pki_sampler;

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
static uint32_t sampler_session; /* a number of its own */

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

/* False: cannot be read. */
static bool pki_sampler_read(pki_sampler *s, pki_event_reading *r)
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

/* Of groups that are open. */
/* Bad speculation may be below 0: what retired in the call was dispatched before it. Sums even that
 * out. */
static bool pki_sampler_between(const pki_sampler *s, const pki_event_reading *from,
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
    refused_in = pki_load(&sampler_session);
    pki_fetch_add(&without, 1u);
    if (s)
        pki_store_release(&s->state, STATE(0, IDLE));
}

static pki_sampler *begin_mine(const pki_thread *t)
{
    if (refused_in == pki_load(&sampler_session) ||
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

static void pki_sampler_leave(pki_sampler *s)
{
    int saved = errno;
    leave(s);
    errno = saved;
}

static pki_sampler *pki_sampler_enter_mine(void)
{
    if (mine && !change(mine, my_tag | FREE, my_tag | BUSY))
        mine = NULL;
    return mine;
}

/* Amid pki_enter and pki_leave: the thread's, which it is in from here on; NULL: it has none, or
 * the session is over. errno stays. */
/* the same, but none is made */
static pki_sampler *pki_sampler_enter(const pki_thread *t)
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

/* The region's; NULL: there are too many. Within enter and leave. */
static pki_event_sums *pki_sampler_row(pki_sampler *s, uint32_t id)
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
    pki_bump(&sampler_session, 1u);
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

/* ---- which calls are sampled ---- */

#define GAP_MOST (1u << 20)
#define BESIDE_NS 150.0    /* of a sampled call, beside its two readings */
#define READING_MOST 10.0  /* times as long as it can be short: what is longer was taken off */
#define GROWS 4u           /* at most, from one sample to the next */
#define ASIDE_NS 40.0      /* what leaving the fast path costs a call */
#define ASIDE_SHARE 0.25   /* of the bound, for that */
#define FEW 8u             /* samples of a region tell too little of how often it is called */
#define IN_VAIN_MOST 1024u /* calls off the fast path, of a thread that has no events */

static uint8_t frequent[PKI_NAMES_MAX];
static bool any_frequent;        /* a session that asks for no events need not touch the table */
static _Thread_local bool due;   /* the region that ends now is the one to be sampled next */
static _Thread_local bool fresh; /* the sampler's `end` has been read for the call that ends now */

void pki_events_reset(void)
{
    if (__atomic_exchange_n(&any_frequent, false, __ATOMIC_RELAXED))
        memset(frequent, 0, sizeof frequent);
}

bool pki_events_keep_off_fast_path(uint32_t id)
{
    return pki_events_on() && !pki_load(&frequent[id]);
}

/* As in core/region.c; from 1 to 2n - 1, n on average. */
static uint32_t draw(pki_sampler *s, uint32_t n)
{
    uint64_t x = s->seed ? s->seed : 1;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    s->seed = x;
    return 1 + (uint32_t)((x >> 32) * (2 * n - 1) >> 32);
}

static void spend(pki_sampler *s, double ns)
{
    double more = s->spent_ns + ns;
    __atomic_store(&s->spent_ns, &more, __ATOMIC_RELAXED);
}

/* A reading, and what it took: with cold caches far more than in a row. It may fail, of which the
 * program's errno knows nothing. */
static bool read_now(const pki_thread *t, pki_sampler *s, pki_event_reading *reading)
{
    int saved = errno;
    uint64_t before = pki_ticks(t->monotonic);
    bool done = pki_sampler_read(s, reading);
    double took = (double)(pki_ticks(t->monotonic) - before) * s->unit_ns;
    took = PKI_MIN(took, READING_MOST * s->pair_ns / 2) + BESIDE_NS / 2;
    s->cost_ns += (2 * took - s->cost_ns) / 8;
    spend(s, took);
    errno = saved;
    return done;
}

/* One of so many, for what comes once in `interval` ns; no jumps, since that is a guess. */
static uint32_t gap_for(const pki_sampler *s, double interval, uint32_t before)
{
    double bound = pki_sampling_now.bound, ease = pki_load(&pki_sampling_now.ease);
    double wanted = s->cost_ns * ease / (bound * PKI_MAX(interval, 1.0));
    double most = PKI_MIN((double)before * GROWS, (double)GAP_MOST), least = before / 2;
    return (uint32_t)PKI_MAX(PKI_MIN(PKI_MAX(wanted, least), most), 1.0);
}

/* ---- begin ---- */

static void mark_frequent(uint32_t id)
{
    pki_store(&frequent[id], (uint8_t)1);
    pki_store(&any_frequent, true);
}

static void learn(pki_sampler *s, pki_event_sums *row, uint32_t id, uint64_t now)
{
    uint32_t calls = row->drawn + 1;
    double interval = (double)(now - row->since) * s->unit_ns / calls;
    if (row->since)
        row->interval = row->interval > 0 ? (row->interval + interval) / 2 : interval;
    row->since = now;
    if (!(row->interval > 0))
        return;
    row->gap = gap_for(s, row->interval, row->gap);
    double ease = pki_load(&pki_sampling_now.ease);
    if (row->sampled >= FEW &&
        ASIDE_NS * ease > ASIDE_SHARE * pki_sampling_now.bound * row->interval)
        mark_frequent(id);
}

/* Is it this call's turn? So many calls does it stand for. */
static uint32_t turn(pki_sampler *s, pki_event_sums *row, uint32_t id, uint64_t now)
{
    spend(s, ASIDE_NS);
    if (row->left > 0) {
        row->left--;
        return 0;
    }
    uint32_t weight = row->gap;
    learn(s, row, id, now);
    row->drawn = row->left = draw(s, row->gap) - 1;
    return weight;
}

/* Without a row all of them would be looked through for each call. */
static uint32_t weight_of(pki_thread *t, pki_sampler *s, uint32_t id, bool by_looks)
{
    if (s->broken)
        return 0;
    if (by_looks)
        return s->pick_weight;
    pki_event_sums *row = pki_sampler_row(s, id);
    if (row)
        return turn(s, row, id, pki_ticks(t->monotonic));
    mark_frequent(id);
    return 0;
}

/* A call of a thread that has no events: it has left the fast path for nothing. */
static void count_in_vain(uint32_t id)
{
    static _Thread_local uint32_t in_vain;
    if (++in_vain % IN_VAIN_MOST == 0)
        mark_frequent(id);
}

/* A thinned region is off the fast path whether frequent or not, so it is not known which of its
 * calls a look has picked. */
uint32_t pki_events_begin(pki_thread *t, uint32_t id, bool picked, uint32_t thin_gap)
{
    unsigned depth = pki_depth_in(pki_load(&t->state)) + 1;
    bool by_looks = !thin_gap && pki_load(&frequent[id]);
    uint32_t flags = 0;
    if (depth > PKI_DEPTH_MAX || (by_looks && !picked))
        return 0;
    pki_sampler *s = pki_sampler_enter(t);
    if (!s) {
        count_in_vain(id);
        return 0;
    }
    uint32_t weight = weight_of(t, s, id, by_looks);
    if (weight && read_now(t, s, &s->begin[depth])) {
        s->weight[depth] = (double)weight * PKI_MAX(thin_gap, 1u);
        flags = PKI_SPECIAL | PKI_SAMPLED;
    }
    pki_sampler_leave(s);
    return flags;
}

/* ---- end ---- */

void pki_events_read_end(const pki_thread *t)
{
    pki_sampler *s = pki_sampler_enter_mine();
    if (!s)
        return;
    fresh = read_now(t, s, &s->end);
    pki_sampler_leave(s);
}

void pki_events_forget_end(void)
{
    fresh = false;
}

/* What quotients of a group's values are of: instructions, or all slots. */
static double base_of(unsigned group, const double *value)
{
    double slots = 0;
    if (group != PKI_TOPDOWN)
        return value[0];
    for (unsigned i = 0; i < PKI_PERF_EVENTS; i++)
        slots += value[PKI_EVENT_AT(PKI_TOPDOWN, i)];
    return slots;
}

static void enter_group(pki_event_sums *row, double weight, const double *value, unsigned group)
{
    double weight2 = weight * weight, base = base_of(group, value);
    for (unsigned i = PKI_EVENT_AT(group, 0); i < PKI_EVENT_AT(group + 1, 0); i++) {
        row->sum[i] += weight * value[i];
        row->sum2[i] += weight2 * value[i];
        row->square[i] += weight2 * value[i] * value[i];
        row->beside[i] += weight2 * value[i] * base;
    }
}

static void enter_values(const pki_sampler *s, pki_event_sums *row, double weight,
                         const double *value)
{
    row->sampled++;
    row->weight += weight;
    row->weight2 += weight * weight;
    for (unsigned g = 0; g < PKI_EVENT_GROUPS; g++)
        if (s->group[g].count)
            enter_group(row, weight, value, g);
}

void pki_events_end(unsigned depth, uint32_t id, bool balanced)
{
    double value[PKI_EVENTS] = {0};
    pki_sampler *s = pki_sampler_enter_mine();
    if (!s)
        return;
    pki_event_sums *row = balanced && fresh ? pki_sampler_row(s, id) : NULL;
    if (row && pki_sampler_between(s, &s->begin[depth], &s->end, value))
        enter_values(s, row, s->weight[depth], value);
    else if (row)
        row->missed++;
    pki_sampler_leave(s);
}

/* ---- looks ---- */

/* Records that the thread has written, up to that offset of its ring. */
static uint64_t records_at(const pki_thread *t, uint32_t at)
{
    return (t->laps + at) / sizeof(pki_record);
}

static void plan_check(pki_thread *t, pki_sampler *s, uint64_t records)
{
    uint64_t now = pki_ticks(t->monotonic), more = records - s->checked;
    s->pick_weight = s->check_gap; /* the call picked now was drawn with it */
    if (s->checked_at_ticks && more)
        s->check_gap = gap_for(s, (double)(now - s->checked_at_ticks) * s->unit_ns / (double)more,
                               s->check_gap);
    s->checked = records;
    s->checked_at_ticks = now;
    s->check_at = records + draw(s, s->check_gap);
}

uint32_t pki_events_check(pki_thread *t, uint32_t at)
{
    uint64_t records = records_at(t, at), bytes;
    pki_sampler *s = pki_sampler_enter(t);
    if (!s)
        return UINT32_MAX;
    bool met = s->checked_at_ticks && records >= s->check_at;
    if (!s->checked_at_ticks || met)
        plan_check(t, s, records);
    due = due || met;
    bytes = (s->check_at - records) * sizeof(pki_record);
    pki_sampler_leave(s);
    return bytes < t->ring_bytes - at ? at + (uint32_t)bytes : UINT32_MAX;
}

bool pki_events_is_due(void)
{
    return due;
}

void pki_events_forget_check(void)
{
    due = false;
}
