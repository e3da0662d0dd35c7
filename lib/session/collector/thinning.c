#include "session/collector/thinning.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/log.h"
#include "core/thin.h"
#include "measure/figure.h"
#include "measure/thinning.h"
#include "session/costs/events.h"
#include "session/collector/collect.h"
#include "session/session.h"

/* CPU time of the process between two looks: soon at first, since what is not thinned yet may cost
 * more than all the rest of the run. */
#define FIRST_LOOKS 10u
#define FIRST_LOOK_NS 10000000u
#define LOOK_NS 100000000u

/* What a record costs the collector, about; the first look finds out what it does here. */
#define FOLD_NS 30.0
#define FORMAT_NS 60.0
#define IN_VAIN_MOST 8u /* looks */

/* What a timed call of a thinned region costs the program beside its work, in begins and ends of
 * the fast path: its own way is seldom taken, so its code is in no cache, and its ends wait for
 * what is under way, which nothing then overlaps with. 280 to 320 ns where a pair takes 25 in a row
 * (docs/internals/overhead.md). */
#define TIMED_PAIRS 12.0

typedef struct seen {
    uint64_t count, untimed; /* of calls, up to the last look */
    uint64_t excluded;       /* events */
    uint32_t in_vain;        /* looks at which its calls were timed although it was thinned */
} seen;

static struct {
    pki_thinning thinning;
    uint64_t process, beside; /* CPU time up to the last look, ns */
    uint32_t looks;
    bool watching; /* threads take their slow paths, to learn what is thinned */
    bool warned;   /* that counting alone is too much */
    bool any;      /* something is thinned */
    size_t seen_count, region_room;
    seen *seen; /* by id */
    pki_thin_region *regions;
} now;

static pk_status open_thinning(pki_session *s)
{
    double pair = s->toll.region_ns;
    pki_thin_reset();
    memset(&now, 0, sizeof now);
    if (!(s->config.overhead_max > 0))
        return PK_OK;
    s->toll.overhead_max = s->config.overhead_max;
    s->toll.counted_ns = pki_measure_counted_ns();
    const pki_hidden_ns hidden = pki_measure_hidden_ns(s->config.monotonic);
    s->thinning = true;
    double bound = s->config.overhead_max - pki_events_bound(&s->config);
    pki_thinning_init(&now.thinning, bound, s->writing,
                      (pki_thin_costs){.pair = pair,
                                       .timed = TIMED_PAIRS * pair,
                                       .counted = s->toll.counted_ns,
                                       .pair_hidden = hidden.pair,
                                       .counted_hidden = hidden.counted,
                                       .fold = FOLD_NS,
                                       .format = FORMAT_NS});
    return PK_OK;
}

/* A region whose calls may go without a time: an operation's may not, and nor may what is shared by
 * names for which there was no room. */
static bool may_thin(const pki_slot *slot)
{
    return slot->kind <= PK_WAIT && slot->kind != PK_COMM && slot->id >= PKI_NAME_FIRST;
}

static void add(const pki_slot *slot, size_t *count)
{
    seen *before = &now.seen[slot->id];
    const seen is = {pki_load(&slot->count), pki_load(&slot->untimed), before->excluded,
                     before->in_vain};
    uint64_t untimed = is.untimed - before->untimed;
    uint32_t thin = may_thin(slot) && before->in_vain < IN_VAIN_MOST ? pki_load(&pki_thin[slot->id])
                                                                     : PKI_THIN_NEVER;
    now.regions[(*count)++] = (pki_thin_region){.id = slot->id,
                                                .thin = thin,
                                                .timed = is.count - before->count - untimed,
                                                .untimed = untimed};
    *before = is;
}

/* All regions, with their calls since the last look. */
static size_t collect_regions(const pki_fold *fold)
{
    size_t count = 0, names = pki_name_count();
    if (!pki_array_fit(&now.seen, &now.seen_count, names, sizeof *now.seen) ||
        !pki_array_fit(&now.regions, &now.region_room, names, sizeof *now.regions))
        return 0;
    for (const pki_slot *slot = fold->totals.first; slot; slot = pki_table_next(slot))
        if (slot->kind <= PK_WAIT && slot->id < now.seen_count)
            add(slot, &count);
    return count;
}

/* Calls of thinned regions that came by the fast path: of a pk_region that has not been seen since,
 * as one in another file with the same name. If that goes on, they are no calls that can be
 * counted: spans (pk/span.h), or those of a device. */
static bool any_unaware(size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const pki_thin_region *r = &now.regions[i];
        uint32_t *in_vain = &now.seen[r->id].in_vain;
        bool unaware = pki_thin_skips_calls(r->thin) && r->timed > 1000 + r->untimed;
        *in_vain = r->untimed > r->timed ? 0 : *in_vain + unaware;
        any |= unaware;
        if (unaware && *in_vain == IN_VAIN_MOST)
            pki_thin_set(r->id, 0);
    }
    return any;
}

static void watch(const pki_session *s, bool on)
{
    if (on == now.watching)
        return;
    now.watching = on;
    pki_registry_lock();
    pki_thin_watch(s->registry, on);
    pki_registry_unlock();
}

static void apply(size_t count)
{
    now.any = false;
    for (size_t i = 0; i < count; i++) {
        const pki_thin_region *r = &now.regions[i];
        if (r->thin == PKI_THIN_NEVER)
            continue;
        pki_thin_set(r->id, r->thin);
        now.any |= r->thin > 0;
    }
}

static void warn_beyond(pki_session *s)
{
    if (!now.thinning.beyond || now.warned)
        return;
    now.warned = true;
    s->toll.beyond = 1;
    pki_log(PK_LOG_WARNING,
            "overhead_max: perfkit takes %s of the process's CPU time at least, more than the %s "
            "asked for: counting calls (%.1f to %.1f ns each) and timing the few that are left "
            "costs as much; fewer or longer regions would help",
            pki_figure_percent(now.thinning.sure / now.thinning.cpu).text,
            pki_figure_percent(now.thinning.bound).text, now.thinning.costs.counted_hidden,
            now.thinning.costs.counted);
}

static void adjust(pki_session *s, const pki_thin_input *input)
{
    pki_fold_lock();
    size_t count = collect_regions(pki_fold_now());
    pki_fold_unlock();
    bool unaware = any_unaware(count);
    if (pki_thinning_adjust(&now.thinning, input, now.regions, count)) {
        apply(count);
        unaware = now.any;
    }
    s->toll.counted_ns = pki_thinning_counted_ns(&now.thinning);
    watch(s, unaware);
    warn_beyond(s);
}

/* Behind a round. */
static void look_now(pki_session *s)
{
    if (!s->thinning)
        return;
    pki_toll toll = pki_toll_now(s);
    /* without events: they have a part of the bound to themselves */
    uint64_t at_steps = pki_services_spent() - pki_events_spent();
    uint64_t beside = toll.collector + toll.callers + toll.captures + at_steps + toll.backends;
    uint64_t process = toll.process - now.process;
    if (process < (now.looks < FIRST_LOOKS ? FIRST_LOOK_NS : LOOK_NS))
        return;
    const pki_thin_input input = {(double)process, (double)(beside - now.beside)};
    now.process = toll.process;
    now.beside = beside;
    now.looks++;
    adjust(s, &input);
}

bool pki_thinning_excludes(pki_session *s, const pki_record *r)
{
    uint32_t id = pki_what_id(r->what);
    bool call = pki_what_type(r->what) <= PKI_RECORD_REGION_WORK;
    if (!call || id >= now.seen_count || pki_load(&pki_thin[id]) != PKI_THIN_UNTRACED)
        return false;
    now.seen[id].excluded += s->writing;
    s->untraced += s->writing;
    return true;
}

uint64_t pki_thinning_excluded(uint32_t id)
{
    return id < now.seen_count ? now.seen[id].excluded : 0;
}

/* Nothing is thinned from here on. */
static void forget(void)
{
    if (!pki_the_session.thinning)
        return;
    pki_the_session.thinning = false;
    pki_thin_reset();
    free(now.seen);
    free(now.regions);
    memset(&now, 0, sizeof now);
}

const pki_service pki_service_thinning = {
    .name = "thinning",
    .open = open_thinning,
    .behind = look_now,
    .forget = forget,
};
