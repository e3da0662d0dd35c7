#include "backend/cupti/join.h"

#include <stdlib.h>

#include "backend/cupti/calls.h"
#include "backend/cupti/names.h"
#include "base/array.h"

#define HELD_MOST                                                                                  \
    (1u << 20) /* records; more than CUPTI can make in the time that they are held                 \
                */

typedef struct held {
    pki_cupti_record record;
    bool admitted; /* it lies within the limits, and its link knows of it */
} held;

static held *all;
static size_t count, room;
static uint64_t aged; /* when links were, last */

void pki_cupti_join_after_fork(void)
{
    all = NULL;
    count = room = 0;
    aged = 0;
    pki_cupti_links_after_fork();
    pki_cupti_events_after_fork();
}

void pki_cupti_join_forget(void)
{
    free(all);
    pki_cupti_links_forget();
    pki_cupti_events_forget();
    pki_cupti_join_after_fork();
}

/* ---- what comes in ---- */

static void join_event(const pki_cupti_record *r, pki_cupti_counts *counts)
{
    pki_cupti_link *l = pki_cupti_link_at(r->correlation);
    if (l) {
        l->recorded = true;
        l->event = (uint32_t)r->id;
        l->event_context = r->context;
        l->event_stream = r->stream;
    }
    if (pki_cupti_events_wanted() &&
        !pki_cupti_event_note(r->context, (uint32_t)r->id,
                              (pki_cupti_recorded){r->correlation, r->stream}))
        counts->lost++;
}

static void join_external(const pki_cupti_record *r)
{
    pki_cupti_link *l = pki_cupti_link_at(r->correlation);
    if (l)
        l->external = r->id;
}

void pki_cupti_join_record(void *user, const pki_cupti_record *r)
{
    pki_cupti_counts *counts = user;
    if (r->what == PKI_CUPTI_EXTERNAL) {
        join_external(r);
        return;
    }
    if (r->what == PKI_CUPTI_EVENT) {
        join_event(r, counts);
        return;
    }
    if (r->what <= PKI_CUPTI_SET && r->what != PKI_CUPTI_GRAPH)
        pki_cupti_context_note(r->context, r->device);
    if (count == HELD_MOST || !pki_array_fit(&all, &room, count + 1, sizeof *all)) {
        counts->lost++;
        return;
    }
    all[count] = (held){*r, false};
    if (r->what == PKI_CUPTI_KERNEL) /* its module may be unloaded before it is its turn */
        all[count].record.name = pki_cupti_kernel_name(r->name);
    count++;
}

static bool is_call(const pki_cupti_record *r)
{
    return r->what == PKI_CUPTI_RUNTIME || r->what == PKI_CUPTI_DRIVER;
}

static bool is_on_device(const pki_cupti_record *r)
{
    return r->what <= PKI_CUPTI_SET;
}

static unsigned traits_of(const pki_cupti_record *r)
{
    return pki_cupti_call_of(r->what == PKI_CUPTI_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API
                                                          : CUPTI_CB_DOMAIN_DRIVER_API,
                             r->detail)
        ->traits;
}

/* Calls that nobody wants to see: CUPTI records them where it cannot be told not to. */
static bool is_noise(const pki_cupti_record *r)
{
    return (r->what == PKI_CUPTI_RUNTIME && traits_of(r) & PKI_CUPTI_QUIET) ||
           (r->what == PKI_CUPTI_DRIVER && !(traits_of(r) & PKI_CUPTI_LAUNCHES));
}

static void note_call(pki_cupti_link *l, const pki_cupti_record *r)
{
    if (l->called && r->what == PKI_CUPTI_DRIVER)
        return;
    l->called = true;
    l->by_runtime = r->what == PKI_CUPTI_RUNTIME;
    l->launches = traits_of(r) & PKI_CUPTI_LAUNCHES;
    l->thread = r->thread;
    l->start = r->start;
    l->end = r->end;
}

static void note(const pki_cupti_record *r)
{
    pki_cupti_link *l = is_call(r) || is_on_device(r) ? pki_cupti_link_at(r->correlation) : NULL;
    if (l && is_call(r))
        note_call(l, r);
    else if (l)
        l->on_device = true;
}

typedef enum verdict { KEEP, DROP, GIVE } verdict;

/* Is it within the limits? KEEP: that is not known yet. */
static verdict admit(const pki_cupti_record *r, const pki_cupti_limits *m)
{
    bool known = m->last || r->start < m->decided;
    if (is_noise(r))
        return DROP;
    if (r->start < m->begin || r->start == 0)
        return m->begin != UINT64_MAX || known ? DROP : KEEP;
    if (r->start >= m->end)
        return DROP;
    return m->end != UINT64_MAX || known ? GIVE : KEEP;
}

static void admit_all(const pki_cupti_limits *m, pki_cupti_counts *counts)
{
    for (size_t i = 0; i < count;) {
        held *h = &all[i];
        verdict v = h->admitted ? KEEP : admit(&h->record, m);
        if (v == DROP) {
            counts->outside += !is_noise(&h->record);
            *h = all[--count];
            continue;
        }
        if (v == GIVE) {
            h->admitted = true;
            note(&h->record);
        }
        i++;
    }
}

/* ---- what goes out ---- */

static verdict judge_call(const pki_cupti_record *r, const pki_cupti_link *l, bool waited)
{
    bool arrow = traits_of(r) & PKI_CUPTI_LAUNCHES && r->result == 0;
    return !arrow || !l || l->on_device || waited ? GIVE : KEEP;
}

/* Of the events that a call recorded or waited for all is known once the rest of that time is. */
static bool awaits_events(const pki_cupti_record *r, bool complete)
{
    bool concerned = r->what == PKI_CUPTI_SYNC || (is_call(r) && traits_of(r) & PKI_CUPTI_RECORDS);
    return pki_cupti_events_wanted() && concerned && !complete;
}

static verdict judge(const pki_cupti_record *r, const pki_cupti_link *l, const pki_cupti_limits *m)
{
    bool complete = m->last || r->start < m->complete;
    bool waited = m->last || m->now - PKI_MIN(r->arrived, m->now) >= PKI_CUPTI_PATIENCE_NS;
    if (awaits_events(r, complete))
        return KEEP;
    switch (r->what) {
    case PKI_CUPTI_DRIVER: /* the runtime's call around it ends, and is recorded, after it */
        if (l && l->by_runtime)
            return DROP;
        return complete ? judge_call(r, l, waited) : KEEP;
    case PKI_CUPTI_RUNTIME:
        return judge_call(r, l, waited);
    case PKI_CUPTI_SYNC:
        return !l || l->called || waited ? GIVE : KEEP;
    case PKI_CUPTI_OVERHEAD:
    case PKI_CUPTI_POOL:
        return complete ? GIVE : KEEP;
    default:
        return complete && (!l || l->called || waited) ? GIVE : KEEP;
    }
}

/* Those to be given go behind the others; how many those others are. */
static size_t part(const pki_cupti_limits *m, pki_cupti_counts *counts)
{
    size_t end = count;
    for (size_t i = 0; i < end;) {
        const pki_cupti_record *r = &all[i].record;
        verdict v = all[i].admitted ? judge(r, pki_cupti_link_at(r->correlation), m) : KEEP;
        if (v == KEEP) {
            i++;
            continue;
        }
        held h = all[i];
        all[i] = all[--end];
        if (v == DROP) {
            all[end] = all[--count];
            counts->covered++;
        } else {
            all[end] = h;
        }
    }
    return end;
}

/* As they began; of two that began together the longer one is around the other. */
static int compare(const void *a, const void *b)
{
    const pki_cupti_record *x = &((const held *)a)->record, *y = &((const held *)b)->record;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return (int)is_call(y) - (int)is_call(x);
}

static void tie_call(pki_cupti_link *l, pki_cupti_tie *tie)
{
    if (l->emitted) { /* one event of a call for each correlation */
        tie->correlation = 0;
        return;
    }
    tie->flow = l->on_device && !l->alone;
    l->alone = l->alone || !tie->flow;
    l->emitted = true;
}

static void tie_device(pki_cupti_link *l, pki_cupti_tie *tie, pki_cupti_counts *counts)
{
    tie->flow = l->called && !l->alone && !l->arrived;
    l->arrived = l->arrived || tie->flow;
    l->alone = l->alone || !l->called;
    counts->unlinked += !l->called;
}

/* A wait has the correlation of its call, and each has one call (HTA's rule). */
static void tie_wait(const pki_cupti_link *l, const pki_cupti_record *r, pki_cupti_tie *tie)
{
    if (!pki_cupti_events_wanted() || !l->called)
        return;
    tie->correlation = r->correlation;
    if (r->id)
        tie->source = pki_cupti_event_before(r->context, (uint32_t)r->id, r->correlation);
}

static pki_cupti_tie tie_of(const pki_cupti_record *r, pki_cupti_counts *counts)
{
    pki_cupti_link *l = pki_cupti_link_at(r->correlation);
    pki_cupti_tie tie = {.correlation = is_call(r) || is_on_device(r) ? r->correlation : 0};
    if (!l) {
        counts->unlinked += is_on_device(r);
        return tie;
    }
    tie.external = l->external;
    tie.thread = l->thread;
    tie.start = l->start;
    tie.end = l->end;
    tie.record = is_call(r) && l->recorded ? l : NULL;
    if (r->what == PKI_CUPTI_SYNC)
        tie_wait(l, r, &tie);
    else if (is_call(r))
        tie_call(l, &tie);
    else if (is_on_device(r))
        tie_device(l, &tie, counts);
    return tie;
}

void pki_cupti_join_finalise(const pki_cupti_limits *m, pki_cupti_counts *counts,
                             pki_cupti_give *give)
{
    admit_all(m, counts);
    size_t kept = part(m, counts);
    if (count > kept)
        qsort(all + kept, count - kept, sizeof *all, compare);
    for (size_t i = kept; i < count; i++) {
        pki_cupti_tie tie = tie_of(&all[i].record, counts);
        give(&all[i].record, &tie);
    }
    count = kept;
    if (m->now - PKI_MIN(aged, m->now) < PKI_CUPTI_PATIENCE_NS)
        return;
    aged = m->now;
    pki_cupti_links_age();
    pki_cupti_events_age();
}

uint64_t pki_cupti_join_finalised(const pki_cupti_limits *m)
{
    uint64_t until = PKI_MIN(m->complete, m->decided);
    for (size_t i = 0; i < count; i++)
        if (is_on_device(&all[i].record) || is_call(&all[i].record))
            until = PKI_MIN(until, all[i].record.start);
    return until;
}
