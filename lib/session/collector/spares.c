#include "session/collector/spares.h"

#include <pk/region.h>

#include "base/memory.h"

#define SHARE 16u            /* of the arena, at most */
#define LOOK_NS 50000000u    /* a rate is looked at over so long */
#define SHORT_NS 100000000u  /* a ring that lasts less than this... */
#define HOLD_NS 250000000u   /* ...gets so much more */
#define FEW 4u               /* segments, for a ring that is found half full */
#define IDLE_NS 60000000000u /* not wanted for so long: given back */
#define FRESH_NS 1000000000u
#define RETRY_NS 10000000000u /* a disk that is full is not asked in each round */

/* Of all threads whose rings are short, bytes in HOLD_NS. */
static uint64_t measure_rates(pki_session *s, uint64_t passed)
{
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < pki_registry_blocks(s->registry); i++) {
        pki_thread *t = pki_registry_block(s->registry, i);
        uint64_t bytes = pki_thread_position(t).bytes;
        uint64_t more = pki_not_negative(bytes - t->rated_bytes); /* one may be undone since */
        t->rated_bytes = bytes;
        double per_ns = (double)more / (double)passed;
        if (per_ns * SHORT_NS > t->ring_bytes)
            wanted += (uint64_t)(per_ns * HOLD_NS);
    }
    return wanted;
}

static uint32_t ring_bytes(const pki_session *s)
{
    return s->config.ring_records * (uint32_t)sizeof(pki_record);
}

static uint32_t most_of(const pki_session *s)
{
    uint64_t fit = s->arena->spans.bytes / SHARE / ring_bytes(s);
    return (uint32_t)PKI_MIN(fit, PKI_SPARES_MOST);
}

/* Twice what a round has found at once, if that is much. */
static uint32_t wanted_by_need(const pki_session *s)
{
    uint32_t found = pki_load(&s->fullest), ring = s->config.ring_records;
    return found < ring / 2 ? 0 : PKI_MAX(2 * (found / ring), FEW);
}

/* How many there should be, as far as this round knows. */
static uint32_t wanted_now(pki_session *s, uint64_t now)
{
    uint32_t few = wanted_by_need(s);
    uint64_t passed = now - s->spares_rated;
    if (passed < LOOK_NS)
        return few;
    bool first = s->spares_rated == 0, kept = s->writing || s->history;
    s->spares_rated = now;
    uint64_t bytes = measure_rates(s, passed);
    uint64_t n = kept && !first ? (bytes + ring_bytes(s) - 1) / ring_bytes(s) : 0;
    return (uint32_t)PKI_MIN(PKI_MAX(n, few), PKI_SPARES_MOST);
}

/* Pages of a file that has been brought to the disk meanwhile are read-only again until somebody
 * takes a page fault, for which the file system may let him wait: that is for the collector. */
static void refresh(pki_session *s, uint64_t now)
{
    const pki_spares *spares = &s->registry->spares;
    if (!s->paths.arena[0] || spares->count == 0 || now - s->spares_fresh < FRESH_NS)
        return;
    const pki_spare *next = &spares->all[s->spares_next++ % spares->count];
    if (pki_spare_state_of(pki_load(&next->word)) == PKI_SPARE_FREE)
        pki_mem_populate(pki_arena_at(s->arena, (uint64_t)next->segment * PKI_PAGE), ring_bytes(s));
    if (s->spares_next % spares->count == 0)
        s->spares_fresh = now;
}

/* What is kept for one thread is there for no other. */
static uint32_t there_for_all(const pki_session *s)
{
    const pki_spares *spares = &s->registry->spares;
    return pki_spares_there(spares) - pki_spares_kept(spares);
}

/* One a round; all of them where rounds are rare. */
static void make(pki_session *s, uint64_t now)
{
    pki_spares *spares = &s->registry->spares;
    bool made = now >= s->spares_retry;
    for (bool more = true; made && more; more = s->config.no_collector)
        made = there_for_all(s) < s->spares_wanted &&
               pki_spare_make(spares, s->arena, ring_bytes(s), most_of(s));
    if (!made && now >= s->spares_retry && there_for_all(s) < s->spares_wanted)
        s->spares_retry = now + RETRY_NS;
}

/* One a round. A file system that cannot, or a descriptor that the program has closed, is not asked
 * in each of them. */
static void unmake(pki_session *s, uint64_t now)
{
    if (now >= s->spares_retry && !pki_spare_unmake(&s->registry->spares, s->arena, ring_bytes(s)))
        s->spares_retry = now + RETRY_NS;
}

void pki_spares_round(pki_session *s)
{
    uint64_t now = pki_monotonic_ns();
    pki_spare_share(s->registry);
    if (!s->config.spares || !pki_load(&pk_gate_))
        return;
    uint32_t wanted = wanted_now(s, now); /* once: it looks at the clock */
    wanted = PKI_MIN(wanted, most_of(s));
    if (wanted) {
        s->spares_wanted = PKI_MAX(s->spares_wanted, wanted);
        s->spares_asked = now;
    }
    if (now - s->spares_asked > IDLE_NS)
        s->spares_wanted = 0;
    uint32_t there = there_for_all(s);
    if (there < s->spares_wanted)
        make(s, now);
    else if (there > s->spares_wanted ||
             (!s->spares_wanted && pki_spares_there(&s->registry->spares)))
        unmake(s, now);
    refresh(s, now);
}
