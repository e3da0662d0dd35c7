#include "backend/cupti/join.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cupti/records.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/map.h"
#include "base/memory.h"

#define PKI_CUPTI_LINK_AGES 30

#define PKI_CUPTI_PATIENCE_NS 10000000000u /* how long an arrow's other end is waited for */

/* ---- names of kernels as PyTorch's tools know them ---- */

#define IDENTIFIER_BYTES 512

static pki_texts names; /* as CUPTI has them */
static char **shown;    /* NULL: as it is */
static size_t shown_room;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* _Z3fooi is foo, _ZN1a3fooE... is foo as well: the last of the names that follow each other. */
bool pki_cupti_identifier(const char *mangled, char *name, size_t size)
{
    if (strncmp(mangled, "_Z", 2) != 0)
        return false;
    const char *p = mangled + 2;
    bool nested = *p == 'N', any = false;
    p += nested;
    while (is_digit(*p)) {
        size_t n = 0;
        while (is_digit(*p) && n < IDENTIFIER_BYTES)
            n = 10 * n + (size_t)(*p++ - '0');
        if (n == 0 || n >= IDENTIFIER_BYTES || strnlen(p, n) < n)
            return any;
        snprintf(name, size, "%.*s", (int)n, p);
        any = true;
        p += n;
        if (!nested)
            break;
    }
    return any;
}

typedef char *demangler(const char *mangled, char *buffer, size_t *size, int *status);

/* The C++ library's, if the program has one; perfkit needs none itself. */
static demangler *find_demangler(void)
{
    demangler *found;
    void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
    memcpy(&found, &symbol, sizeof found);
    return found;
}

static char *make_name(const char *mangled)
{
    char identifier[IDENTIFIER_BYTES];
    int status = 0;
    if (strncmp(mangled, "_Z", 2) != 0)
        return NULL;
    demangler *demangle = find_demangler();
    char *name = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    if (!name && pki_cupti_identifier(mangled, identifier, sizeof identifier))
        name = strdup(identifier);
    return name;
}

/* A kernel's name, demangled where the process has a demangler (every C++ program has one), else
 * its first identifier: CUPTI's string becomes one of ours that stays. Never NULL. */
static const char *kernel_name(const char *mangled)
{
    if (!mangled || !*mangled)
        return "(unnamed kernel)";
    uint32_t known = names.count, number = PKI_TEXTS_NONE;
    if (pki_array_fit(&shown, &shown_room, known + (size_t)1, sizeof *shown))
        number = pki_texts_add(&names, mangled);
    if (number == PKI_TEXTS_NONE)
        return "(no memory)";
    if (number == known)
        shown[number] = make_name(mangled);
    return shown[number] ? shown[number] : names.texts[number];
}

static void names_forget(bool whole)
{
    for (uint32_t i = 0; whole && i < names.count; i++)
        free(shown[i]);
    if (whole) {
        free(shown);
        pki_texts_finish(&names);
    }
    names = (pki_texts){0};
    shown = NULL;
    shown_room = 0;
}

/* ---- which call recorded the event that somebody waits for ---- */

#define BUCKETS 1024u
#define MOST (1u << 20)
#define CONTEXTS 64u

/* A recording; those of one bucket in a chain, the newest first. */
typedef struct node {
    uint32_t context, event;
    pki_cupti_recorded recorded;
    uint32_t next; /* index + 1; 0: the last */
    uint32_t age;
} node;

bool pki_cupti_sync_events;
static node *nodes;
static size_t events_count, events_room;
static uint32_t buckets[BUCKETS]; /* index + 1 */
static uint32_t devices[CONTEXTS];

static uint32_t *bucket_of(uint32_t context, uint32_t event)
{
    return &buckets[(context * 2654435761u ^ event * 40503u) % BUCKETS];
}

static bool is_of(const node *n, uint32_t context, uint32_t event)
{
    return n->context == context && n->event == event;
}

/* Threads' buffers come in any order: behind the newer ones. */
static void link_in(size_t i)
{
    node *n = &nodes[i];
    uint32_t *at = bucket_of(n->context, n->event);
    while (*at && nodes[*at - 1].recorded.correlation > n->recorded.correlation)
        at = &nodes[*at - 1].next;
    n->next = *at;
    *at = (uint32_t)i + 1;
}

/* False without memory. */
static bool pki_cupti_event_note(uint32_t context, uint32_t event, pki_cupti_recorded recorded)
{
    if (events_count == MOST ||
        !pki_array_fit(&nodes, &events_room, events_count + 1, sizeof *nodes))
        return false;
    nodes[events_count] = (node){.context = context, .event = event, .recorded = recorded};
    link_in(events_count++);
    return true;
}

/* The newest one before that correlation. */
static pki_cupti_recorded pki_cupti_event_before(uint32_t context, uint32_t event,
                                                 uint32_t correlation)
{
    for (uint32_t i = *bucket_of(context, event); i; i = nodes[i - 1].next)
        if (is_of(&nodes[i - 1], context, event) && nodes[i - 1].recorded.correlation < correlation)
            return nodes[i - 1].recorded;
    return (pki_cupti_recorded){0, 0};
}

static bool is_newest(const node *n)
{
    uint32_t i = *bucket_of(n->context, n->event);
    while (i && !is_of(&nodes[i - 1], n->context, n->event))
        i = nodes[i - 1].next;
    return &nodes[i - 1] == n;
}

static void pki_cupti_events_age(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < events_count; i++)
        nodes[i].age = is_newest(&nodes[i]) ? 0 : nodes[i].age + 1;
    for (size_t i = 0; i < events_count; i++)
        if (nodes[i].age < 2)
            nodes[kept++] = nodes[i];
    events_count = kept;
    memset(buckets, 0, sizeof buckets);
    for (size_t i = 0; i < events_count; i++)
        link_in(i);
}

static void events_forget(bool whole)
{
    if (whole)
        free(nodes);
    nodes = NULL;
    events_count = events_room = 0;
    memset(buckets, 0, sizeof buckets);
    memset(devices, 0, sizeof devices);
}

/* CUPTI counts contexts from 1. */
static void pki_cupti_context_note(uint32_t context, uint32_t device)
{
    if (context < CONTEXTS)
        devices[context] = device;
}

uint32_t pki_cupti_context_device(uint32_t context)
{
    return context < CONTEXTS ? devices[context] : 0;
}

/* ---- what is known of a correlation ---- */

typedef struct table {
    pki_cupti_link *links;
    uint32_t room, count; /* room: 0 or a power of two */
} table;

static table young, old;

static uint32_t slot_of(const table *t, uint32_t correlation)
{
    uint32_t i = correlation * 2654435761u & (t->room - 1);
    while (t->links[i].correlation && t->links[i].correlation != correlation)
        i = (i + 1) & (t->room - 1);
    return i;
}

static pki_cupti_link *find(const table *t, uint32_t correlation)
{
    pki_cupti_link *l = t->room ? &t->links[slot_of(t, correlation)] : NULL;
    return l && l->correlation ? l : NULL;
}

static bool make_room(table *t)
{
    if (t->count < t->room / 2)
        return true;
    table more = {NULL, t->room ? 2 * t->room : 1024, t->count};
    more.links = more.room ? calloc(more.room, sizeof *more.links) : NULL;
    if (!more.links)
        return t->count + 1 < t->room; /* slower, as long as there is a free place */
    for (uint32_t i = 0; i < t->room; i++)
        if (t->links[i].correlation)
            more.links[slot_of(&more, t->links[i].correlation)] = t->links[i];
    free(t->links);
    *t = more;
    return true;
}

/* The link, made if need be; good until the next call of these. NULL for correlation 0, and without
 * memory. */
static pki_cupti_link *pki_cupti_link_at(uint32_t correlation)
{
    pki_cupti_link *l = correlation ? find(&young, correlation) : NULL;
    if (l || !correlation || !make_room(&young))
        return l;
    const pki_cupti_link *before = find(&old, correlation);
    l = &young.links[slot_of(&young, correlation)];
    if (before)
        *l = *before;
    l->correlation = correlation;
    young.count++;
    return l;
}

static void retain(const pki_cupti_link *l)
{
    if (l->age >= PKI_CUPTI_LINK_AGES || find(&old, l->correlation))
        return;
    pki_cupti_link *kept = pki_cupti_link_at(l->correlation);
    if (!kept)
        return;
    *kept = *l;
    kept->age++;
}

static void pki_cupti_links_age(void)
{
    table oldest = old;
    old = young;
    young = (table){NULL, 0, 0};
    for (uint32_t i = 0; i < oldest.room; i++)
        if (oldest.links[i].correlation && oldest.links[i].launches && !oldest.links[i].on_device)
            retain(&oldest.links[i]);
    free(oldest.links);
}

static void links_forget(bool whole)
{
    if (whole) {
        free(young.links);
        free(old.links);
    }
    young = old = (table){NULL, 0, 0};
}

/* ---- from records in the order in which buffers come back to activities ---- */

#define HELD_MOST                                                                                  \
    (1u << 20) /* records; more than CUPTI can make in the time that they are held                 \
                */

typedef struct held {
    pki_cupti_record record;
    bool admitted; /* it lies within the limits, and its link knows of it */
} held;

static held *all;
static size_t join_count, join_room;
static uint64_t aged; /* when links were, last */

void pki_cupti_join_forget(bool whole)
{
    if (whole)
        free(all);
    all = NULL;
    join_count = join_room = 0;
    aged = 0;
    links_forget(whole);
    events_forget(whole);
    names_forget(whole);
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
    if (pki_load(&pki_cupti_sync_events) &&
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
    if (join_count == HELD_MOST || !pki_array_fit(&all, &join_room, join_count + 1, sizeof *all)) {
        counts->lost++;
        return;
    }
    all[join_count] = (held){*r, false};
    if (r->what == PKI_CUPTI_KERNEL) /* its module may be unloaded before it is its turn */
        all[join_count].record.name = kernel_name(r->name);
    join_count++;
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
    for (size_t i = 0; i < join_count;) {
        held *h = &all[i];
        verdict v = h->admitted ? KEEP : admit(&h->record, m);
        if (v == DROP) {
            counts->outside += !is_noise(&h->record);
            *h = all[--join_count];
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
    return pki_load(&pki_cupti_sync_events) && concerned && !complete;
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
    size_t end = join_count;
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
            all[end] = all[--join_count];
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
    if (!pki_load(&pki_cupti_sync_events) || !l->called)
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
    if (join_count > kept)
        qsort(all + kept, join_count - kept, sizeof *all, compare);
    for (size_t i = kept; i < join_count; i++) {
        pki_cupti_tie tie = tie_of(&all[i].record, counts);
        give(&all[i].record, &tie);
    }
    join_count = kept;
    if (m->now - PKI_MIN(aged, m->now) < PKI_CUPTI_PATIENCE_NS)
        return;
    aged = m->now;
    pki_cupti_links_age();
    pki_cupti_events_age();
}

/* ---- what was launched before CUPTI recorded ---- */

#define QUEUED_NS 50000u /* from a launch to its kernel, where nothing is in the way: less */
#define STREAMS 64u

static void note_first(const pki_cupti_record *r, const pki_cupti_record *first[STREAMS])
{
    size_t i = 0;
    while (i < STREAMS && first[i] &&
           !(first[i]->stream == r->stream && first[i]->context == r->context))
        i++;
    if (i < STREAMS && (!first[i] || r->start < first[i]->start))
        first[i] = r;
}

/* Its call may have been handed over, or be in a buffer that has not come back. */
static bool has_waited(const pki_cupti_record *r)
{
    const pki_cupti_link *l = pki_cupti_link_at(r->correlation);
    if (l && l->called)
        return r->start > l->end + QUEUED_NS;
    for (size_t i = 0; i < join_count; i++)
        if (is_call(&all[i].record) && all[i].record.correlation == r->correlation)
            return r->start > all[i].record.end + QUEUED_NS;
    return true;
}

uint64_t pki_cupti_join_queued(bool amid)
{
    const pki_cupti_record *first[STREAMS] = {NULL};
    uint64_t latest = 0;
    for (size_t i = 0; i < join_count; i++)
        if (is_on_device(&all[i].record))
            note_first(&all[i].record, first);
    for (size_t i = 0; i < STREAMS && first[i]; i++)
        if (first[i]->start > latest && (amid || has_waited(first[i])))
            latest = first[i]->start;
    return first[0] ? latest : UINT64_MAX;
}

uint64_t pki_cupti_join_finalised(const pki_cupti_limits *m)
{
    uint64_t until = PKI_MIN(m->complete, m->decided);
    for (size_t i = 0; i < join_count; i++)
        if (is_on_device(&all[i].record) || is_call(&all[i].record))
            until = PKI_MIN(until, all[i].record.start);
    return until;
}
