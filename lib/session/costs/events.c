#include "session/costs/events.h"
#include "session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/memory.h"
#include "base/processors.h"
#include "core/events.h"
#include "core/names.h"
#include "core/thin.h"
#include "measure/costs/events.h"

#define USUAL_BOUND 0.01
#define OF_OVERHEAD_MAX 0.25 /* the rest is regions' */
#define FIRST_EASE 4u        /* before it is known how many regions there are */
#define EASE_MOST 4096u
#define PAIRS 10          /* what is shorter than so many pairs of readings has them in its time */
#define LOOK_NS 50000000u /* of CPU time of the process */
#define OPENING_NS 20000000u /* may go at first into threads' opening their events */
#define OF_DESCRIPTORS 4     /* a part of those that the process may have */

static struct {
    bool asked[PKI_EVENT_GROUPS], on;
    pki_sampling sampling;
    pki_sampling_counts counts;
    char why_not[PKI_EVENT_GROUPS][256];
    uint64_t process; /* CPU time at the last look, and what had been spent by then */
    double spent, at_end;
    size_t room;
    pki_event_sums *rows; /* by id; once closed */
} x;

static pki_topdown topdown; /* the same in each session that asks for it */

double pki_events_bound(const pki_config *c)
{
    if (!c->costs_hardware && !c->costs_software && !c->costs_topdown)
        return 0;
    return c->overhead_max > 0 ? OF_OVERHEAD_MAX * c->overhead_max : USUAL_BOUND;
}

static void name_missing(const pki_perf_event *events, uint32_t mask, char *why_not, size_t size)
{
    for (unsigned i = 0, n = 0; i < PKI_PERF_EVENTS; i++) {
        size_t used = strlen(why_not);
        if (!(mask >> i & 1))
            snprintf(why_not + used, size - used, "%s%s",
                     n++ ? ", " : "not counted: ", events[i].name);
    }
}

/* Which of a group this thread can have; what not, and why, in words. Of slots all of them: one
 * that is missing would be in no share. */
static void try_group(pki_event_group which, const pki_perf_event *events, unsigned count)
{
    char *why_not = x.why_not[which];
    size_t size = sizeof x.why_not[which];
    pki_perf_group group;
    bool any = pki_perf_open(&group, events, count, false);
    uint32_t mask = pki_perf_mask(&group);
    if (!any || (which == PKI_TOPDOWN && group.count < count)) {
        pki_perf_explain(group.error, why_not, size);
    } else {
        name_missing(events, mask, why_not, size);
        x.sampling.group[which].events = events;
        x.sampling.group[which].count = count;
        x.sampling.mask |= mask << PKI_EVENT_AT(which, 0);
        x.sampling.each += group.count;
    }
    pki_perf_close(&group);
}

static void try_topdown(void)
{
    pki_topdown found;
    if (!pki_topdown_find(&found, x.why_not[PKI_TOPDOWN], sizeof x.why_not[PKI_TOPDOWN]))
        return;
    topdown = found;
    x.sampling.counts_dispatched = found.counts_dispatched;
    try_group(PKI_TOPDOWN, topdown.event, topdown.count);
}

static void try_groups(void)
{
    if (x.asked[PKI_HARDWARE])
        try_group(PKI_HARDWARE, pki_perf_hardware, PKI_PERF_EVENTS);
    if (x.asked[PKI_SOFTWARE])
        try_group(PKI_SOFTWARE, pki_perf_software, PKI_PERF_EVENTS);
    if (x.asked[PKI_TOPDOWN])
        try_topdown();
}

static uint32_t descriptors(void)
{
    struct rlimit limit;
    uint64_t may = PKI_SAMPLER_FDS;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        may = PKI_MIN(may, (uint64_t)limit.rlim_cur / OF_DESCRIPTORS);
    return (uint32_t)may;
}

static pk_status open_events(pki_session *s)
{
    const pki_config *c = &s->config;
    int saved = errno;
    free(x.rows);
    memset(&x, 0, sizeof x);
    pki_events_reset();
    x.asked[PKI_HARDWARE] = c->costs_hardware;
    x.asked[PKI_SOFTWARE] = c->costs_software;
    x.asked[PKI_TOPDOWN] = c->costs_topdown;
    x.sampling = (pki_sampling){.bound = pki_events_bound(c),
                                .ease = FIRST_EASE,
                                .fds = descriptors(),
                                .opening_ns = OPENING_NS};
    try_groups();
    x.on = x.sampling.mask;
    if (x.on) {
        pki_samplers_open(&x.sampling);
        pki_registry_lock();
        pki_thin_watch(s->registry, true); /* those that have joined meanwhile */
        pki_registry_unlock();
    }
    errno = saved;
    return PK_OK;
}

/* More than may be: less by as much; much less: twice as much. */
static uint32_t next_ease(uint32_t ease, double share, double bound)
{
    double wanted = ease;
    if (share > bound)
        wanted = (double)ease * PKI_MIN(share / bound, 8.0) + 1;
    else if (share < bound / 4)
        wanted = (double)ease / 2;
    return (uint32_t)PKI_MAX(PKI_MIN(wanted, (double)EASE_MOST), 1.0);
}

static void keep_to_bound(pki_session *s)
{
    uint64_t now = x.on ? pki_read_clock(CLOCK_PROCESS_CPUTIME_ID) - s->start_cpu : 0;
    if (now < x.process + LOOK_NS)
        return;
    double spent = pki_samplers_spent();
    double share = (spent - x.spent) / (double)(now - x.process);
    uint32_t ease = next_ease(pki_load(&pki_sampling_now.ease), share, x.sampling.bound);
    pki_store(&pki_sampling_now.ease, ease);
    pki_store(&pki_sampling_now.opening_ns,
              OPENING_NS + (uint64_t)((double)now * x.sampling.bound));
    x.process = now;
    x.spent = spent;
}

static void add_sums(void *user, const pki_event_sums *row)
{
    (void)user;
    if (row->id < pki_name_count() &&
        pki_array_fit(&x.rows, &x.room, (size_t)row->id + 1, sizeof *x.rows))
        pki_event_sums_add(&x.rows[row->id], row);
}

/* Nothing is sampled from here on, and all descriptors are closed. */
static void close_events(pki_session *s)
{
    (void)s;
    if (!x.on)
        return;
    x.at_end = pki_samplers_spent();
    x.on = false;
    pki_samplers_close(add_sums, NULL, &x.counts);
}

uint64_t pki_events_spent(void)
{
    return (uint64_t)(x.on ? pki_samplers_spent() : x.at_end);
}

/* ---- the report ---- */

static const pki_region_row *region_of(const pki_summary *s, const char *name, uint32_t kind)
{
    for (size_t i = 0; i < s->region_count; i++)
        if (s->regions[i].kind == kind && strcmp(s->regions[i].name, name) == 0)
            return &s->regions[i];
    return NULL;
}

static bool add_row(pki_summary *out, uint32_t id)
{
    pki_events_summary *e = &out->events;
    const pki_name *name = pki_name_at(id);
    char *copy = strndup(name->name, name->length);
    const pki_region_row *region = copy ? region_of(out, copy, name->kind) : NULL;
    pki_events_row *row = &e->rows[e->row_count];
    if (!copy)
        return false;
    row->region = copy;
    row->time = region ? (uint64_t)region->time.sum : 0;
    pki_event_sums_fill(&x.rows[id], region ? region->time.count : 0, x.sampling.mask, row);
    if (row->value[PKI_EVENT_PROCESSOR] < PAIRS * x.counts.pair_ns)
        row->value[PKI_EVENT_PROCESSOR] = row->error[PKI_EVENT_PROCESSOR] = -1;
    e->row_count++;
    return true;
}

static int by_time(const void *a, const void *b)
{
    const pki_events_row *one = a, *other = b;
    if (one->time != other->time)
        return one->time < other->time ? 1 : -1;
    return strcmp(one->region, other->region);
}

static bool add_rows(pki_summary *out)
{
    pki_events_summary *e = &out->events;
    e->rows = calloc(x.room + 1, sizeof *e->rows);
    bool done = e->rows;
    for (uint32_t id = 0; done && id < x.room; id++)
        if (x.rows[id].sampled || x.rows[id].missed)
            done = add_row(out, id);
    if (done && e->row_count)
        qsort(e->rows, e->row_count, sizeof *e->rows, by_time);
    return done;
}

/* In words; "": each thread that could be had its events. */
static void explain_threads(char *text, size_t size)
{
    if (x.counts.error)
        pki_perf_explain(x.counts.error, text, size);
    else if (x.counts.threads_without)
        snprintf(text, size,
                 "at most %u threads at once, %u descriptors and a quarter of the process's limit",
                 PKI_SAMPLERS, PKI_SAMPLER_FDS);
}

/* Once regions are in it. False without memory. */
static bool summarise(const pki_session *s, pki_summary *out)
{
    (void)s;
    pki_events_summary *e = &out->events;
    char without[192] = "";
    if (!x.asked[PKI_HARDWARE] && !x.asked[PKI_SOFTWARE] && !x.asked[PKI_TOPDOWN])
        return true;
    explain_threads(without, sizeof without);
    e->asked = 1;
    e->why_not_hardware = strdup(x.why_not[PKI_HARDWARE]);
    e->why_not_software = strdup(x.why_not[PKI_SOFTWARE]);
    e->why_not_topdown = strdup(x.why_not[PKI_TOPDOWN]);
    e->why_threads = strdup(without);
    e->threads = x.counts.threads;
    e->threads_without = x.counts.threads_without;
    e->threads_lost = x.counts.lost;
    e->calls_beyond = x.counts.beyond;
    e->bound = x.sampling.bound;
    e->spent = (uint64_t)x.at_end;
    return e->why_not_hardware && e->why_not_software && e->why_not_topdown && e->why_threads &&
           add_rows(out);
}

const pki_service pki_service_events = {
    .name = "events",
    .open = open_events,
    .round = keep_to_bound,
    .close = close_events,
    .summarise = summarise,
    .abandon = close_events,
    .spent = pki_events_spent,
};
