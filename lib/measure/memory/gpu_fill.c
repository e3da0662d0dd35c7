/* lib/measure/memory/gpu_fill.c - the account of device memory as rows of the report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "measure/memory/course.h"
#include "measure/memory/gpu.h"

static const char *const kind_names[PKI_GPU_KINDS] = {
    [PKI_GPU_DEVICE] = "device",   [PKI_GPU_POOL] = "pool",     [PKI_GPU_ARRAY] = "array",
    [PKI_GPU_MANAGED] = "managed", [PKI_GPU_STATIC] = "static", [PKI_GPU_PINNED] = "pinned"};

static uint64_t at_peak(const pki_gpu_use *u, const pki_gpu_place *p)
{
    return u->stamp == p->peaks ? u->at_peak : u->live;
}

static bool fill_kinds(const pki_gpu_place *p, pki_gpu_memory_place *out)
{
    out->kinds = calloc(PKI_GPU_KINDS, sizeof *out->kinds);
    for (int i = 0; out->kinds && i < PKI_GPU_KINDS; i++) {
        const pki_gpu_use *u = &p->kinds[i];
        if (!u->allocations)
            continue;
        pki_gpu_memory_kind *k = &out->kinds[out->kind_count++];
        *k = (pki_gpu_memory_kind){.kind = strdup(kind_names[i]),
                                   .allocations = u->allocations,
                                   .bytes = u->bytes,
                                   .frees = u->frees,
                                   .freed = u->freed,
                                   .live = u->live,
                                   .peak = u->peak,
                                   .at_peak = at_peak(u, p)};
        if (!k->kind)
            return false;
    }
    return out->kinds != NULL;
}

static double each(const pki_gpu_region *r, uint64_t steps)
{
    return steps ? (double)(r->timed - r->early) / (double)steps : 0;
}

static bool fill_region(const pki_gpu_place *p, size_t id, const char *(*names)(uint32_t),
                        uint64_t steady, pki_memory_region *out)
{
    const pki_gpu_region *r = &p->regions[id];
    const char *name = id ? names((uint32_t)id) : NULL;
    *out = (pki_memory_region){.name = strdup(name ? name : ""),
                               .allocations = r->use.allocations,
                               .bytes = r->use.bytes,
                               .frees = r->use.frees,
                               .freed = r->use.freed,
                               .live = r->use.live,
                               .peak = r->use.peak,
                               .at_peak = at_peak(&r->use, p),
                               .steady = each(r, steady),
                               .growth = pki_growth_of(&r->growth, PKI_MEMORY_GROWTH_LEAST)};
    return out->name != NULL;
}

static bool fill_regions(const pki_gpu_place *p, const char *(*names)(uint32_t), uint64_t steady,
                         pki_gpu_memory_place *out)
{
    out->regions = calloc(p->region_room + 1, sizeof *out->regions);
    for (size_t i = 0; out->regions && i < p->region_room; i++) {
        if (!p->regions[i].use.allocations)
            continue;
        pki_memory_region *r = &out->regions[out->region_count++];
        if (!fill_region(p, i, names, steady, r))
            return false;
        out->steady += r->steady;
    }
    if (out->region_count)
        qsort(out->regions, out->region_count, sizeof *out->regions, pki_memory_by_peak);
    return out->regions != NULL;
}

static int by_number(const void *a, const void *b)
{
    const pki_gpu_pool_row *x = a, *y = b;
    return (x->pool > y->pool) - (x->pool < y->pool);
}

static double unused_of(uint64_t reserved, uint64_t used)
{
    return reserved ? 1 - (double)used / (double)reserved : 0;
}

static bool fill_pools(const pki_gpu_account *a, size_t place, pki_gpu_memory_place *out)
{
    out->pools = calloc(a->pool_count + 1, sizeof *out->pools);
    for (size_t i = 0; out->pools && i < a->pool_count; i++) {
        const struct pki_gpu_pool *p = &a->pools[i];
        if (p->place != place)
            continue;
        out->pools[out->pool_count++] =
            (pki_gpu_pool_row){.pool = p->number,
                               .gone = p->gone,
                               .reserved = p->size,
                               .used = p->used,
                               .most_reserved = p->most_reserved,
                               .used_then = p->used_then,
                               .unused = unused_of(p->most_reserved, p->used_then)};
    }
    if (out->pool_count)
        qsort(out->pools, out->pool_count, sizeof *out->pools, by_number);
    return out->pools;
}

static bool fill_place(const pki_gpu_place *p, size_t place, const char *(*names)(uint32_t),
                       uint64_t steady, pki_gpu_memory_place *out)
{
    char name[16] = "host";
    if (place != PKI_GPU_HOST)
        snprintf(name, sizeof name, "gpu%u", (unsigned)place);
    *out = (pki_gpu_memory_place){
        .place = strdup(name),
        .allocations = p->all.allocations,
        .bytes = p->all.bytes,
        .frees = p->all.frees,
        .freed = p->all.freed,
        .live = p->all.live,
        .peak = p->all.peak,
        .peak_ns = p->peak_ns,
        .held = p->held,
        .most_held = p->most_held,
        .pool_reserved = p->reserved,
        .pool_used = p->used,
        .most_reserved = p->most_reserved,
        .used_then = p->used_then,
        .growth = pki_growth_of(&p->growth, PKI_MEMORY_GROWTH_LEAST),
    };
    out->unused = unused_of(p->most_reserved, p->used_then);
    return out->place && fill_kinds(p, out) && fill_regions(p, names, steady, out);
}

bool pki_gpu_account_fill(const pki_gpu_account *a, const char *(*names)(uint32_t id),
                          uint64_t steady, pki_gpu_memory_summary *out)
{
    out->operations = a->operations;
    out->unknown_frees = a->unknown_frees;
    out->unknown_freed = a->unknown_freed;
    out->missed_frees = a->missed_frees;
    out->untied = a->untied;
    out->lost = a->lost;
    out->pools_beyond = a->pools_beyond;
    out->steady_steps = steady;
    out->places = calloc(PKI_GPU_PLACES, sizeof *out->places);
    for (size_t i = 0; out->places && i < PKI_GPU_PLACES; i++) {
        const pki_gpu_place *p = &a->places[i];
        if (!p->all.allocations && !p->most_reserved)
            continue;
        pki_gpu_memory_place *row = &out->places[out->place_count++];
        if (!fill_place(p, i, names, steady, row) || !fill_pools(a, i, row))
            return false;
    }
    return out->places != NULL;
}
