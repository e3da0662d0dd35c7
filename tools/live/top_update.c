/* tools/live/top_update.c - from what is read at one look and the next to figures. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "live/top.h"
#include "stats/buckets.h"
#include "stats/quantile.h"

bool top_open(top *t, targets *of)
{
    *t = (top){.all = calloc(of->count, sizeof *t->all), .count = of->count};
    for (size_t i = 0; t->all && i < of->count; i++) {
        t->all[i].view.t = &of->all[i];
        t->all[i].state = of->all[i].state;
        t->all[i].buckets = calloc(PK_STATS_BUCKETS, sizeof *t->all[i].buckets);
        if (!t->all[i].buckets)
            return false;
    }
    return t->all != NULL;
}

void top_close(top *t)
{
    for (size_t i = 0; t->all && i < t->count; i++) {
        top_process *p = &t->all[i];
        snapshot_finish(&p->view.s);
        free(p->buckets);
        free(p->seen);
        free(p->completed);
        free(p->calls);
        free(p->streams);
        free(p->comm_rates);
    }
    free(t->all);
    *t = (top){0};
}

/* ---- steps ---- */

static double quantile(const uint64_t *counts, uint64_t total, double q)
{
    size_t bucket = pki_rank_bucket(counts, PK_STATS_BUCKETS, sizeof *counts, pki_rank(q, total));
    return total ? pki_bucket_middle((uint32_t)bucket) : 0;
}

static uint64_t sum_of(const uint64_t *counts)
{
    uint64_t total = 0;
    for (size_t i = 0; i < PK_STATS_BUCKETS; i++)
        total += counts[i];
    return total;
}

/* Of the steps since the look before; where there are none, as they were. */
static void update_steps(top_process *p)
{
    static pk_stats stats;
    static uint64_t since[PK_STATS_BUCKETS];
    const live_calls *row = snapshot_calls(&p->view.s, PKI_NAME_STEP);
    p->p50_before = p->p50;
    if (!row || !row->count || !snapshot_stats(p->view.t, row, &stats))
        return;
    for (size_t i = 0; i < PK_STATS_BUCKETS; i++)
        since[i] = stats.buckets[i] > p->buckets[i] ? stats.buckets[i] - p->buckets[i] : 0;
    memcpy(p->buckets, stats.buckets, sizeof stats.buckets);
    uint64_t total = sum_of(since);
    if (!total)
        return;
    p->p50 = quantile(since, total, 0.5);
    p->p90 = quantile(since, total, 0.9);
    p->p99 = quantile(since, total, 0.99);
}

static void update_rate(top_process *p)
{
    const snapshot *s = &p->view.s;
    p->ns = s->now_ns > p->now_ns ? s->now_ns - p->now_ns : 0;
    p->steps_made = s->steps > p->steps ? s->steps - p->steps : 0;
    p->steps_per_second = p->ns ? (double)p->steps_made * 1e9 / (double)p->ns : 0;
    p->steps = s->steps;
    p->now_ns = s->now_ns;
}

static void update_kinds(top_process *p)
{
    uint64_t since[TOP_KINDS] = {0}, total = 0;
    const live_thread *main = snapshot_main(&p->view.s);
    for (size_t k = 0; main && k < TOP_KINDS; k++) {
        since[k] = main->kinds[k] > p->kinds[k] ? main->kinds[k] - p->kinds[k] : 0;
        total += since[k];
        p->kinds[k] = main->kinds[k];
    }
    for (size_t k = 0; k < TOP_KINDS && total; k++)
        p->shares[k] = (double)since[k] / (double)total;
}

/* ---- regions and communicators ---- */

static uint64_t difference(uint64_t now, uint64_t *before)
{
    uint64_t d = now > *before ? now - *before : 0;
    *before = now;
    return d;
}

/* Spans on streams are counted in the upper half of the table. */
static bool update_call(top_process *p, const live_calls *row, bool stream)
{
    top_calls **calls = stream ? &p->streams : &p->calls;
    size_t *room = stream ? &p->stream_room : &p->call_room;
    size_t *count = stream ? &p->stream_count : &p->call_count;
    size_t at = row->id * (size_t)2 + stream;
    if (row->kind > PK_WAIT)
        return true;
    if (!pki_array_fit(&p->seen, &p->seen_room, at + 1, sizeof *p->seen) ||
        !pki_array_fit(calls, room, *count + 1, sizeof **calls))
        return false;
    top_calls since = {.id = row->id,
                       .name = live_name_of(&p->view.s.names, row->id),
                       .calls = difference(row->count, &p->seen[at].calls),
                       .self = difference(row->self, &p->seen[at].self),
                       .sum = difference(row->sum, &p->seen[at].sum)};
    if (since.calls || since.self)
        (*calls)[(*count)++] = since;
    return true;
}

static bool update_calls(top_process *p)
{
    const snapshot *s = &p->view.s;
    p->call_count = p->stream_count = 0;
    for (size_t i = 0; i < s->call_count; i++)
        if (!update_call(p, &s->calls[i], false))
            return false;
    for (size_t i = 0; i < s->stream_count; i++)
        if (!update_call(p, &s->streams[i], true))
            return false;
    return true;
}

static bool update_comms(top_process *p)
{
    const snapshot *s = &p->view.s;
    if (!pki_array_fit(&p->completed, &p->completed_room, s->comm_count + 1,
                       sizeof *p->completed) ||
        !pki_array_fit(&p->comm_rates, &p->comm_room, s->comm_count + 1, sizeof *p->comm_rates))
        return false;
    for (size_t i = 0; i < s->comm_count; i++) {
        uint64_t done = difference(s->comms[i].completed, &p->completed[i]);
        p->comm_rates[i] = p->ns ? (double)done * 1e9 / (double)p->ns : 0;
    }
    return true;
}

/* ---- all ---- */

static bool update(top_process *p)
{
    p->lost = !snapshot_take(&p->view.s, p->view.t);
    p->changed = p->known && p->view.t->state != p->state;
    p->state = p->view.t->state;
    if (p->lost)
        return true;
    update_rate(p);
    update_steps(p);
    update_kinds(p);
    p->known = true;
    return update_calls(p) && update_comms(p);
}

bool top_update(top *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (!update(&t->all[i]))
            return false;
    t->views++;
    return true;
}

/* ---- regions of all processes ---- */

static int by_name(const void *a, const void *b)
{
    const top_region *x = a, *y = b;
    int order = strcmp(x->name->text, y->name->text);
    return order ? order : (x->name->kind > y->name->kind) - (x->name->kind < y->name->kind);
}

static int by_self(const void *a, const void *b)
{
    const top_region *x = a, *y = b;
    return x->self == y->self ? by_name(a, b) : x->self < y->self ? 1 : -1;
}

static int by_calls(const void *a, const void *b)
{
    const top_region *x = a, *y = b;
    return x->calls == y->calls ? by_name(a, b) : x->calls < y->calls ? 1 : -1;
}

static size_t merge_same(top_region *all, size_t n)
{
    size_t kept = 0;
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++) {
        if (!kept || by_name(&all[kept - 1], &all[i]) != 0) {
            all[kept++] = all[i];
            continue;
        }
        all[kept - 1].calls += all[i].calls;
        all[kept - 1].self += all[i].self;
        all[kept - 1].sum += all[i].sum;
        all[kept - 1].processes += all[i].processes;
    }
    return kept;
}

top_region *top_regions(const top *t, bool streams, size_t *count)
{
    static int (*const orders[])(const void *, const void *) = {by_self, by_calls, by_name};
    size_t n = 0, room = 1;
    for (size_t i = 0; i < t->count; i++)
        room += streams ? t->all[i].stream_count : t->all[i].call_count;
    top_region *all = calloc(room, sizeof *all);
    for (size_t i = 0; all && i < t->count; i++) {
        const top_process *p = &t->all[i];
        for (size_t k = 0; k < (streams ? p->stream_count : p->call_count); k++) {
            const top_calls *c = streams ? &p->streams[k] : &p->calls[k];
            all[n++] = (top_region){c->name, c->calls, c->self, c->sum, 1};
        }
    }
    *count = all ? merge_same(all, n) : 0;
    if (all)
        qsort(all, *count, sizeof *all, orders[t->order]);
    return all;
}
