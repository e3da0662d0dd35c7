#include "session/report/summary_rows.h"

#include <stdlib.h>
#include <string.h>

#include "core/names.h"
#include "measure/thinned.h"
#include "session/collector/thinning.h"
#include "stats/series.h"
#include "stats/slot.h"

typedef pki_summary_builder builder;

static char *copy(const char *text)
{
    return strdup(text ? text : "");
}

static double clock_step_of(const builder *g)
{
    const pki_clock_map *clock = &g->session->arena->header->clock;
    return (double)clock->step_ticks * pki_clock_unit_ns(clock);
}

static bool fill_region(builder *g, pki_region_row *row, uint32_t id)
{
    const pki_name *name = pki_name_at(id);
    pki_window_sum exact = {0};
    bool fits = pki_window_sum_of_stats(g->stats, &exact);
    pki_stats_finish(g->stats, 1);
    *row = (pki_region_row){
        .name = strndup(name->name, name->length),
        .kind = name->kind,
        .time = pki_stats_dist(g->stats),
        .self = g->stats->self,
        .bytes = g->stats->bytes,
        .flops = g->stats->flops,
        .thinned = pki_region_thinned_of(g->stats, 0, clock_step_of(g), g->session->toll.region_ns),
        .exact = exact};
    return fits && row->name && pki_histogram_of_times(&row->exact.buckets, &row->histogram);
}

static bool is_region(uint32_t id)
{
    return pki_name_kind(id) <= PK_WAIT;
}

bool pki_summary_add_regions(builder *g)
{
    uint32_t names = pki_name_count();
    g->out->regions = calloc(names, sizeof *g->out->regions);
    if (!g->out->regions)
        return false;
    for (uint32_t id = PKI_NAME_TOO_MANY; id < names; id++) {
        pki_stats_again(g->stats);
        if (!is_region(id) ||
            !(pki_fold_stats(g->fold, id, g->stats) || pki_device_has_region(g->fold->device, id) ||
              pki_spans_row(&g->fold->spans, id, 0).events))
            continue;
        pki_region_row *row = &g->out->regions[g->out->region_count];
        if (!fill_region(g, row, id))
            return false;
        row->span = pki_spans_row(&g->fold->spans, id, row->self ? 0 : row->time.count);
        row->thinned = pki_region_thinned_of(g->stats, pki_thinning_excluded(id), clock_step_of(g),
                                             g->session->toll.region_ns);
        row->gpu = pki_device_region_spans(g->fold->device, id);
        row->kernels = pki_device_region_kernels(g->fold->device, id);
        row->threads = pki_fold_threads(g->fold, id);
        g->out->region_count++;
    }
    pki_regions_sort(g->out->regions, g->out->region_count);
    g->out->spans = pki_fold_span_summary(g->fold);
    return pki_fold_requests(g->fold, &g->out->requests);
}

static bool fill_counter(builder *g, uint32_t id, const pki_value_stats *values)
{
    const pki_name *name = pki_name_at(id);
    if (values->tally.moments.count == 0)
        return true;
    pki_counter_row *row = &g->out->counters[g->out->counter_count++];
    *row = (pki_counter_row){.name = strndup(name->name, name->length),
                             .unit = strndup(name->key, name->key_length),
                             .value = pki_tally_dist(&values->tally),
                             .last = values->last};
    return row->name && row->unit && pki_timelines_fill(&g->fold->timelines, id, row);
}

bool pki_summary_add_counters(builder *g)
{
    uint32_t names = pki_name_count();
    bool done = true;
    g->out->counters = calloc(names, sizeof *g->out->counters);
    if (!g->out->counters)
        return false;
    for (uint32_t id = PKI_NAME_FIRST; done && id < names; id++) {
        pki_value_stats values = {0};
        if (pki_name_kind(id) != PKI_KIND_COUNTER)
            continue;
        done = pki_fold_values(g->fold, id, &values) && fill_counter(g, id, &values);
        pki_tally_finish(&values.tally);
    }
    return done;
}

/* One thread's regions, from a table of calls and one of lost calls. */
static bool fill_thread_regions(builder *g, pki_thread_row *row, const pki_table *calls,
                                const pki_table *lost)
{
    row->regions = calloc((size_t)calls->used + lost->used + 1, sizeof *row->regions);
    if (!row->regions)
        return false;
    for (uint32_t id = PKI_NAME_TOO_MANY; id < PKI_MAX(calls->count, lost->count); id++) {
        const pki_slot *a = pki_table_slot(calls, id), *b = pki_table_slot(lost, id);
        if ((!a && !b) || !is_region(id))
            continue;
        pki_stats_again(g->stats);
        if (a)
            pki_stats_add_slot(g->stats, a);
        if (b)
            pki_stats_add_slot(g->stats, b);
        if (!fill_region(g, &row->regions[row->region_count], id))
            return false;
        row->region_count++;
    }
    pki_regions_sort(row->regions, row->region_count);
    return true;
}

static void fill_kinds(pki_thread_row *row, const uint64_t *ns)
{
    memcpy(row->kinds, ns, sizeof row->kinds);
}

static bool fill_thread(builder *g, pki_thread_row *row, const pki_thread *t)
{
    const pki_thread_fold *alone =
        t->index < g->fold->thread_count ? &g->fold->threads[t->index] : NULL;
    *row = (pki_thread_row){.name = copy(t->name),
                            .tid = t->tid,
                            .ended = pki_load(&t->life) != PKI_THREAD_LIVE,
                            .recorded = pki_load(&t->recorded),
                            .dropped = pki_load(&t->dropped)};
    if (alone)
        fill_kinds(row, alone->kinds);
    return row->name &&
           (!alone || !g->fold->per_thread || fill_thread_regions(g, row, &alone->calls, &t->lost));
}

static bool fill_ended(builder *g, const pki_ended_thread *ended, const char *name)
{
    static const pki_table none;
    pki_thread_row *row = &g->out->threads[g->out->thread_count++];
    *row = (pki_thread_row){.name = copy(name),
                            .tid = ended->tid,
                            .ended = true,
                            .recorded = ended->recorded,
                            .dropped = ended->dropped};
    fill_kinds(row, ended->kinds);
    return row->name && (!g->fold->per_thread || fill_thread_regions(g, row, &ended->calls, &none));
}

static bool add_ended(builder *g)
{
    const pki_fold *fold = g->fold;
    for (uint32_t i = 0; i < fold->ended_count; i++)
        if (!fill_ended(g, &fold->ended[i], fold->ended[i].name))
            return false;
    return fold->ended_others.recorded + fold->ended_others.dropped == 0 ||
           fill_ended(g, &fold->ended_others, "other threads that have ended");
}

/* Under the registry's lock: a thread that ends now may be changing its name. */
static bool fill_threads(builder *g, uint32_t blocks)
{
    for (uint32_t i = 0; i < blocks; i++) {
        const pki_thread *t = pki_registry_block(g->session->registry, i);
        if (pki_load(&t->life) == PKI_THREAD_FREE)
            continue;
        g->out->thread_count++;
        if (!fill_thread(g, &g->out->threads[g->out->thread_count - 1], t))
            return false;
    }
    return true;
}

bool pki_summary_add_threads(builder *g)
{
    uint32_t blocks = pki_registry_blocks(g->session->registry);
    g->out->threads = calloc(blocks + g->fold->ended_count + 1u, sizeof *g->out->threads);
    if (!g->out->threads)
        return false;
    pki_registry_lock();
    bool filled = fill_threads(g, blocks);
    pki_registry_unlock();
    return filled && add_ended(g);
}
