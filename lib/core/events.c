#include "core/events.h"

#include <errno.h>
#include <string.h>

#include "core/names.h"

#define GAP_MOST (1u << 20)
#define BESIDE_NS 150.0   /* of a sampled call, beside its two readings */
#define READING_MOST 10.0 /* times as long as it can be short: what is longer was taken off */
#define GROWS 4u          /* at most, from one sample to the next */
#define ASIDE_NS 40.0     /* what leaving the fast path costs a call */
#define ASIDE_SHARE 0.25  /* of the bound, for that */
#define FIRST_CALLS 256u
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

/* As in core/thin.c; from 1 to 2n - 1, n on average. */
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

bool pki_events_met_enough(const pki_thread *t)
{
    static _Thread_local uint32_t met, session;
    if (session != t->session) {
        session = t->session;
        met = 0;
    }
    return met <= FIRST_CALLS && ++met == FIRST_CALLS;
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
