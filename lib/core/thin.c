#include "core/thin.h"

#include "core/events.h"
#include "core/mirror.h"
#include "core/registry.h"

uint32_t pki_thin[PKI_NAMES_MAX];

/* A new array for more ids; what the old one holds goes along. */
static bool grow(pki_thread *t, uint32_t id)
{
    uint32_t size = PKI_MAX(t->counted_size, 64u);
    while (size <= id)
        size *= 2;
    pki_registry_lock();
    pki_counted *more =
        pki_pool_claim(&t->registry->arena->spans, &t->lost.pool, size * sizeof *more);
    for (uint32_t i = 0; more && i < t->counted_size; i++)
        more[i] = t->counted[i];
    if (more) {
        pki_store(&t->counted, more);
        pki_store(&t->counted_size, size);
    }
    pki_registry_unlock();
    return more;
}

/* Marsaglia's xorshift (Journal of Statistical Software 8, 14, 2003), its upper half. */
static uint32_t draw(pki_thread *t, uint32_t n)
{
    uint64_t x = t->seed ? t->seed : (uint64_t)(t->index + 1) * 0x9E3779B97F4A7C15u;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    t->seed = x;
    return (uint32_t)((x >> 32) * (2 * n - 1) >> 32);
}

static void set_gap(pki_counted *e, uint32_t gap)
{
    uint64_t pending = pki_counted_pending(e);
    pki_store(&e->drawn, e->left);
    pki_store(&e->before, pending);
    pki_store(&e->left, gap);
    pki_store(&e->drawn, gap);
}

void pki_thin_mark(pk_region *region, uint32_t id, bool aside)
{
    bool marked = pki_load(&region->id) == 0;
    if (aside == marked)
        return;
    if (aside)
        pki_store(&region->reserved, id);
    pki_store(&region->id, aside ? 0 : id);
}

/* The first call on a thread is timed, so that there is a duration to go by. */
static void follow(pki_thread *t, pki_counted *e, uint32_t thin)
{
    bool skips = pki_thin_skips_calls(thin);
    if (e->n != thin)
        set_gap(e, skips && e->n ? draw(t, thin) : 0);
    pki_store(&e->n, thin);
}

/* The last call of a gap is timed for itself, the one behind it for the gap. */
static void time_it(pki_thread *t, pki_counted *e, uint32_t thin)
{
    bool skips = pki_thin_skips_calls(thin);
    pki_store(&e->carries, !skips || e->left == 0);
    if (e->carries) {
        set_gap(e, skips ? draw(t, thin) : 0);
    } else if (e->left == 1) {
        pki_store(&e->drawn, e->drawn - 1);
        pki_store(&e->left, 0u);
    }
}

bool pki_thin_begin(pki_thread *t, pk_region *region, uint32_t id, bool *timed)
{
    uint32_t thin = pki_load(&pki_thin[id]);
    bool skips = pki_thin_skips_calls(thin), aside = skips || pki_events_keep_off_fast_path(id);
    *timed = false;
    if (PKI_LIKELY(!aside && !pki_load(&region->reserved)))
        return false;
    pki_thin_mark(region, id, aside);
    if (skips && id >= t->counted_size && !grow(t, id))
        return false;
    pki_counted *e = pki_counted_at(t, id);
    if (!e)
        return false;
    follow(t, e, thin);
    uint64_t state = pki_load(&t->state);
    bool room = (uint32_t)state < PKI_FRAME_OFFSET(PKI_DEPTH_MAX);
    if (room && !pki_mirrors_count() && pki_count_call(t, id, state))
        return true;
    time_it(t, e, thin);
    *timed = true;
    return false;
}

uint32_t pki_thin_pending(const pki_thread *t, uint32_t id)
{
    const pki_counted *e = pki_counted_at(t, id);
    return e && e->carries ? (uint32_t)PKI_MIN(pki_counted_pending(e), PKI_THINNED_MOST) : 0;
}

/* In this order a reader may miss calls of a thread that is amid this, and counts none twice. */
void pki_thin_carried(pki_thread *t, uint32_t id, uint32_t others, uint64_t ticks)
{
    pki_counted *e = pki_counted_at(t, id);
    if (!e || !e->carries)
        return;
    uint64_t rest = pki_counted_pending(e) - others;
    pki_store(&e->drawn, e->left);
    pki_store(&e->before, rest);
    pki_store(&e->last, ticks);
    pki_store(&e->bytes, (uint64_t)0);
    pki_store(&e->flops, (uint64_t)0);
}

static void watch(const pki_registry *r, pki_thread *t, bool on)
{
    uint32_t usual = r->monotonic || pki_mirrors_count() ? 0 : PKI_FRAME_OFFSET(PKI_DEPTH_MAX);
    if (pki_load(&t->life) == PKI_THREAD_LIVE && !pki_load(&t->ended))
        pki_store(&t->limit, on ? 0 : usual);
}

void pki_thin_watch(const pki_registry *r, bool on)
{
    for (uint32_t i = 0; i < pki_registry_blocks(r); i++)
        watch(r, pki_registry_block(r, i), on);
}

void pki_thin_settle(pki_thread *t)
{
    pki_registry_lock();
    watch(t->registry, t, false);
    pki_registry_unlock();
}

void pki_thin_set(uint32_t id, uint32_t thin)
{
    if (pki_load(&pki_thin[id]) != PKI_THIN_NEVER)
        pki_store(&pki_thin[id], thin);
}

void pki_thin_reset(void)
{
    uint32_t names = pki_name_count();
    for (uint32_t id = 0; id < names; id++)
        pki_thin_set(id, 0);
}
