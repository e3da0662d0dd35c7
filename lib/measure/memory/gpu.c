#include "measure/memory/gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "measure/memory/course.h"

/* ---- what is allocated on devices, by address ---- */

/* Addresses are multiples of powers of two: the upper bits of the product depend on all of them. */
static size_t home_of(const pki_blocks *b, uint64_t address)
{
    return (size_t)((address * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (b->room - 1);
}

static size_t next(const pki_blocks *b, size_t i)
{
    return (i + 1) & (b->room - 1);
}

/* Good until the next call of these; NULL: nothing is allocated there. */
static pki_block *pki_blocks_find(const pki_blocks *b, uint64_t address)
{
    if (!b->room || !address)
        return NULL;
    for (size_t i = home_of(b, address); b->all[i].address; i = next(b, i))
        if (b->all[i].address == address)
            return &b->all[i];
    return NULL;
}

static void put(pki_blocks *b, const pki_block *block)
{
    size_t i = home_of(b, block->address);
    while (b->all[i].address)
        i = next(b, i);
    b->all[i] = *block;
    b->count++;
}

static bool grow(pki_blocks *b)
{
    pki_blocks larger = {.room = b->room ? 2 * b->room : 256};
    larger.all = calloc(larger.room, sizeof *larger.all);
    if (!larger.all)
        return false;
    for (size_t i = 0; i < b->room; i++)
        if (b->all[i].address)
            put(&larger, &b->all[i]);
    free(b->all);
    *b = larger;
    return true;
}

/* An address that is not in there and not 0. False without memory: nothing has changed. */
static bool pki_blocks_add(pki_blocks *b, const pki_block *block)
{
    if (4 * (b->count + 1) > 3 * b->room && !grow(b))
        return false;
    put(b, block);
    return true;
}

/* One that pki_blocks_find has found. */
/* Those behind it that would no longer be found move up, so no place stays marked. */
static void pki_blocks_remove(pki_blocks *b, pki_block *block)
{
    size_t hole = (size_t)(block - b->all);
    for (size_t i = next(b, hole); b->all[i].address; i = next(b, i)) {
        size_t home = home_of(b, b->all[i].address);
        if (((i - home) & (b->room - 1)) < ((i - hole) & (b->room - 1)))
            continue;
        b->all[hole] = b->all[i];
        hole = i;
    }
    b->all[hole].address = 0;
    b->count--;
}

static void pki_blocks_finish(pki_blocks *b)
{
    free(b->all);
    *b = (pki_blocks){0};
}

/* ---- what CUDA allocates and frees, operation by operation ---- */

void pki_gpu_account_finish(pki_gpu_account *a)
{
    for (size_t i = 0; i < PKI_GPU_PLACES; i++) {
        pki_gpu_place *p = &a->places[i];
        for (size_t r = 0; r < p->region_room; r++)
            pki_growth_finish(&p->regions[r].growth);
        free(p->regions);
        pki_growth_finish(&p->growth);
    }
    pki_blocks_finish(&a->blocks);
    *a = (pki_gpu_account){0};
}

static uint32_t device_index(uint32_t device)
{
    return PKI_MIN(device, PKI_GPU_DEVICES - 1);
}

/* ---- what is in use ---- */

static void settle(pki_gpu_use *u, const pki_gpu_place *p)
{
    if (u->stamp != p->peaks)
        u->at_peak = u->live;
    u->stamp = p->peaks;
}

static void add(pki_gpu_use *u, const pki_gpu_place *p, uint64_t bytes)
{
    settle(u, p);
    u->allocations++;
    u->bytes += bytes;
    u->live += bytes;
    u->peak = PKI_MAX(u->peak, u->live);
}

static void record_free(pki_gpu_use *u, const pki_gpu_place *p, uint64_t bytes)
{
    settle(u, p);
    u->frees++;
    u->freed += bytes;
    u->live -= PKI_MIN(bytes, u->live);
}

/* What the device has given away: pools hold what they have reserved. Managed memory is where its
 * pages are, so nobody knows how much of it is on the device. */
static void hold(pki_gpu_place *p)
{
    uint64_t pool = p->kinds[PKI_GPU_POOL].live, managed = p->kinds[PKI_GPU_MANAGED].live;
    p->held = p->all.live - pool - managed + PKI_MAX(pool, p->reserved);
    p->most_held = PKI_MAX(p->most_held, p->held);
    p->part.most_held = PKI_MAX(p->part.most_held, p->held);
}

static pki_gpu_region *region_of(pki_gpu_place *p, uint32_t region)
{
    return pki_array_fit(&p->regions, &p->region_room, region + (size_t)1, sizeof *p->regions)
               ? &p->regions[region]
               : NULL;
}

static bool allocate(pki_gpu_account *a, const pki_block *b)
{
    pki_gpu_place *p = &a->places[b->place];
    pki_gpu_region *r = region_of(p, b->region);
    if (!r)
        return false;
    add(&r->use, p, b->bytes);
    add(&p->kinds[b->kind], p, b->bytes);
    add(&p->all, p, b->bytes);
    bool timed = b->kind == PKI_GPU_DEVICE || b->kind == PKI_GPU_ARRAY ||
                 b->kind == PKI_GPU_MANAGED || b->kind == PKI_GPU_PINNED;
    r->timed += timed;
    /* Operations arrive a second and more after they were made. */
    r->early += timed && b->ns <= a->early_ns;
    r->next_early += timed && b->ns <= a->next_early_ns;
    if (p->all.live == p->all.peak && b->bytes) {
        p->peaks++;
        p->peak_ns = b->ns;
    }
    if (p->all.live >= p->part.peak && b->bytes) {
        p->part.peak = p->all.live;
        p->part.peak_ns = b->ns;
    }
    hold(p);
    return true;
}

/* A region that has something has a row. */
static void release(pki_gpu_account *a, const pki_block *b)
{
    pki_gpu_place *p = &a->places[b->place];
    record_free(&p->regions[b->region].use, p, b->bytes);
    record_free(&p->kinds[b->kind], p, b->bytes);
    record_free(&p->all, p, b->bytes);
    hold(p);
}

/* ---- operations ---- */

/* Was it freed, by an operation that came before it? The first one that may have. */
static bool was_freed(pki_gpu_account *a, const pki_gpu_operation *o)
{
    struct pki_gpu_late *first = NULL;
    for (size_t i = 0; i < PKI_GPU_LATE; i++) {
        struct pki_gpu_late *l = &a->late[i];
        if (l->address == o->address && l->ns >= o->ns && (!first || l->ns < first->ns))
            first = l;
    }
    if (!first)
        return false;
    a->unknown_frees--;
    a->unknown_freed -= first->bytes;
    first->address = 0;
    return true;
}

static uint32_t do_allocation(pki_gpu_account *a, const pki_gpu_operation *o)
{
    bool pinned = o->kind == PKI_GPU_PINNED;
    pki_block *old = pki_blocks_find(&a->blocks, o->address);
    pki_block b = {.address = o->address,
                   .bytes = o->bytes,
                   .ns = o->ns,
                   .region = o->region,
                   .place = (uint8_t)(pinned ? PKI_GPU_HOST : device_index(o->device)),
                   .kind = (uint8_t)o->kind};
    bool freed = was_freed(a, o), over = freed || (old && o->ns < old->ns);
    if (old && !over) {
        a->missed_frees++;
        release(a, old);
        pki_blocks_remove(&a->blocks, old);
    }
    a->untied += !o->known_region;
    if (!allocate(a, &b)) {
        a->lost++;
        return b.place;
    }
    if (!over && pki_blocks_add(&a->blocks, &b))
        return b.place;
    a->lost += !over;
    release(a, &b);
    return b.place;
}

static uint32_t do_free(pki_gpu_account *a, const pki_gpu_operation *o)
{
    pki_block *b = pki_blocks_find(&a->blocks, o->address);
    if (!b) {
        a->unknown_frees++;
        a->unknown_freed += o->bytes;
        a->late[a->late_at] = (struct pki_gpu_late){o->address, o->bytes, o->ns};
        a->late_at = (a->late_at + 1) % PKI_GPU_LATE;
        return device_index(o->device);
    }
    uint32_t place = b->place;
    if (o->ns < b->ns) { /* of what was there before, and has been taken for freed */
        a->missed_frees -= a->missed_frees > 0;
        return place;
    }
    release(a, b);
    pki_blocks_remove(&a->blocks, b);
    return place;
}

uint32_t pki_gpu_account_do(pki_gpu_account *a, const pki_gpu_operation *o)
{
    a->operations++;
    if (!o->address) /* a failed call, or of no bytes */
        return device_index(o->device);
    return o->frees ? do_free(a, o) : do_allocation(a, o);
}

/* ---- pools ---- */

static struct pki_gpu_pool *find_pool(pki_gpu_account *a, uint64_t address, uint32_t place)
{
    for (size_t i = 0; i < a->pool_count; i++)
        if (a->pools[i].address == address && a->pools[i].place == place && !a->pools[i].gone)
            return &a->pools[i];
    return NULL;
}

/* A row that nobody has, or that of the pool that has been gone longest. */
static struct pki_gpu_pool *free_row(pki_gpu_account *a)
{
    struct pki_gpu_pool *oldest = NULL;
    if (a->pool_count < PKI_GPU_POOLS)
        return &a->pools[a->pool_count++];
    for (size_t i = 0; i < a->pool_count; i++)
        if (a->pools[i].gone && (!oldest || a->pools[i].number < oldest->number))
            oldest = &a->pools[i];
    return oldest;
}

static struct pki_gpu_pool *new_pool(pki_gpu_account *a, uint64_t address, uint32_t place)
{
    struct pki_gpu_pool *pool = free_row(a);
    if (!pool)
        return NULL;
    *pool = (struct pki_gpu_pool){
        .address = address, .place = place, .number = a->places[place].pools++};
    return pool;
}

/* A pool grows before it is used: of its largest size it is the most in use that counts. */
static void update_peak(uint64_t reserved, uint64_t used, uint64_t *most, uint64_t *then)
{
    if (reserved > *most) {
        *most = reserved;
        *then = used;
    } else if (reserved == *most) {
        *then = PKI_MAX(*then, used);
    }
}

static void sum_pools(pki_gpu_account *a, uint32_t place)
{
    pki_gpu_place *p = &a->places[place];
    p->reserved = p->used = 0;
    for (size_t i = 0; i < a->pool_count; i++) {
        p->reserved += a->pools[i].place == place ? a->pools[i].size : 0;
        p->used += a->pools[i].place == place ? a->pools[i].used : 0;
    }
    update_peak(p->reserved, p->used, &p->most_reserved, &p->used_then);
    update_peak(p->reserved, p->used, &p->part.most_reserved, &p->part.used_then);
    hold(p);
}

uint32_t pki_gpu_account_pool(pki_gpu_account *a, uint32_t device, uint64_t address, uint64_t size,
                              uint64_t used, bool gone)
{
    uint32_t place = device_index(device);
    struct pki_gpu_pool *pool = find_pool(a, address, place);
    if (!pool && !gone)
        pool = new_pool(a, address, place);
    if (!pool) {
        a->pools_beyond += !gone;
        return place;
    }
    pool->gone = gone;
    pool->size = gone ? 0 : size;
    pool->used = gone ? 0 : PKI_MIN(used, size);
    update_peak(pool->size, pool->used, &pool->most_reserved, &pool->used_then);
    sum_pools(a, place);
    return place;
}

/* ---- looks ---- */

static void see_regions(pki_gpu_place *p, uint64_t step, bool early)
{
    for (size_t i = 0; i < p->region_room; i++) {
        pki_gpu_region *r = &p->regions[i];
        if (r->use.allocations && i < PKI_MEMORY_REGIONS)
            pki_growth_see(&r->growth, step, r->use.live);
        if (early) {
            r->early = r->next_early;
            r->next_early = r->timed;
        }
    }
}

/* Without a new step there is nothing to add for one, as in pki_memory_course_see. */
void pki_gpu_account_see(pki_gpu_account *a, uint64_t steps, bool early, uint64_t ns)
{
    bool more = steps > a->last_steps;
    a->last_steps = steps;
    if (early) {
        a->early_ns = a->next_early_ns;
        a->next_early_ns = ns;
    }
    for (size_t i = 0; (more || early) && i < PKI_GPU_PLACES; i++) {
        pki_gpu_place *p = &a->places[i];
        if (!p->all.allocations)
            continue;
        see_regions(p, steps ? steps - 1 : 0, early);
        pki_growth_see(&p->growth, steps ? steps - 1 : 0, p->all.live);
    }
}

/* ---- the account of device memory as parts of a run that can be added up ---- */

static bool add_place(pki_gpu_memory_sums *out, pki_gpu_memory_sum row, const char *place)
{
    row.place = strdup(place);
    out->places[out->place_count++] = row;
    return row.place;
}

static bool copy_place(const pki_gpu_account *a, size_t place, pki_gpu_memory_sums *out)
{
    const pki_gpu_place *p = &a->places[place];
    char name[16] = "host";
    if (place != PKI_GPU_HOST)
        snprintf(name, sizeof name, "gpu%u", (unsigned)place);
    return add_place(out,
                     (pki_gpu_memory_sum){.allocations = p->all.allocations,
                                          .bytes = p->all.bytes,
                                          .frees = p->all.frees,
                                          .freed = p->all.freed,
                                          .live = p->all.live,
                                          .held = p->held,
                                          .pool_reserved = p->reserved,
                                          .pool_used = p->used,
                                          .peak = p->part.peak,
                                          .peak_ns = p->part.peak_ns,
                                          .most_held = p->part.most_held,
                                          .most_reserved = p->part.most_reserved,
                                          .used_then = p->part.used_then,
                                          .peak_so_far = p->all.peak},
                     name);
}

bool pki_gpu_account_sums(const pki_gpu_account *a, pki_gpu_memory_sums *out)
{
    bool done = true;
    out->operations = a->operations;
    out->lost = a->lost;
    out->places = calloc(PKI_GPU_PLACES, sizeof *out->places);
    for (size_t i = 0; out->places && i < PKI_GPU_PLACES; i++)
        if (a->places[i].all.allocations || a->places[i].most_reserved)
            done = copy_place(a, i, out) && done;
    return out->places && done;
}

void pki_gpu_account_cut(pki_gpu_account *a)
{
    for (size_t i = 0; i < PKI_GPU_PLACES; i++) {
        pki_gpu_place *p = &a->places[i];
        p->part.peak = p->all.live;
        p->part.most_held = p->held;
        p->part.most_reserved = p->reserved;
        p->part.used_then = p->used;
    }
}

/* ---- parts, and their sum ---- */

static pki_gpu_memory_sum *find(const pki_gpu_memory_sums *in, const char *place)
{
    for (size_t i = 0; i < in->place_count; i++)
        if (strcmp(in->places[i].place, place) == 0)
            return &in->places[i];
    return NULL;
}

bool pki_gpu_sums_more(const pki_gpu_memory_sums *now, const pki_gpu_memory_sums *before,
                       pki_gpu_memory_sums *out)
{
    bool done = true;
    *out = (pki_gpu_memory_sums){.asked = now->asked,
                                 .why_not = strdup(now->why_not),
                                 .operations = now->operations - before->operations,
                                 .dropped = now->dropped - before->dropped,
                                 .lost = now->lost - before->lost,
                                 .places = calloc(now->place_count + 1, sizeof *out->places)};
    for (size_t i = 0; out->places && i < now->place_count; i++) {
        pki_gpu_memory_sum row = now->places[i];
        const pki_gpu_memory_sum *was = find(before, row.place);
        if (was) {
            row.allocations -= was->allocations;
            row.bytes -= was->bytes;
            row.frees -= was->frees;
            row.freed -= was->freed;
        }
        done = add_place(out, row, row.place) && done;
    }
    return out->why_not && out->places && done;
}

static void add_to(pki_gpu_memory_sum *into, const pki_gpu_memory_sum *more)
{
    pki_gpu_memory_sum sum = *more;
    sum.place = into->place;
    sum.allocations += into->allocations;
    sum.bytes += into->bytes;
    sum.frees += into->frees;
    sum.freed += into->freed;
    if (into->peak > sum.peak) {
        sum.peak = into->peak;
        sum.peak_ns = into->peak_ns;
    }
    if (into->most_reserved > sum.most_reserved)
        sum.used_then = into->used_then;
    else if (into->most_reserved == sum.most_reserved)
        sum.used_then = PKI_MAX(sum.used_then, into->used_then);
    sum.most_reserved = PKI_MAX(sum.most_reserved, into->most_reserved);
    sum.most_held = PKI_MAX(sum.most_held, into->most_held);
    *into = sum;
}

/* Of a damaged file there may be any number. */
static bool append(pki_gpu_memory_sums *into, const pki_gpu_memory_sum *more)
{
    if (into->place_count == PKI_GPU_PLACES)
        return true;
    pki_gpu_memory_sum *places = realloc(into->places, (into->place_count + 1) * sizeof *places);
    if (!places)
        return false;
    into->places = places;
    return add_place(into, *more, more->place);
}

bool pki_gpu_sums_add(pki_gpu_memory_sums *into, const pki_gpu_memory_sums *more)
{
    bool done = true;
    if (!more->asked)
        return true;
    char *why = strdup(more->why_not ? more->why_not : "");
    free(into->why_not);
    into->why_not = why;
    into->asked = 1;
    into->operations += more->operations;
    into->dropped += more->dropped;
    into->lost += more->lost;
    for (size_t i = 0; i < more->place_count && done; i++) {
        pki_gpu_memory_sum *row = find(into, more->places[i].place);
        if (row)
            add_to(row, &more->places[i]);
        else
            done = append(into, &more->places[i]);
    }
    return why && done;
}

/* ---- as a report says it ---- */

static pki_gpu_memory_place summary_row(const pki_gpu_memory_sum *s)
{
    return (pki_gpu_memory_place){
        .place = strdup(s->place),
        .allocations = s->allocations,
        .bytes = s->bytes,
        .frees = s->frees,
        .freed = s->freed,
        .live = s->live,
        .peak = s->peak,
        .peak_ns = s->peak_ns,
        .held = s->held,
        .most_held = s->most_held,
        .pool_reserved = s->pool_reserved,
        .pool_used = s->pool_used,
        .most_reserved = s->most_reserved,
        .used_then = s->used_then,
        .unused = s->most_reserved ? 1 - (double)s->used_then / (double)s->most_reserved : 0};
}

bool pki_gpu_sums_summarise(const pki_gpu_memory_sums *sums, pki_gpu_memory_summary *out)
{
    bool done = true;
    if (!sums->asked)
        return true;
    *out = (pki_gpu_memory_summary){.asked = 1,
                                    .why_not = strdup(sums->why_not ? sums->why_not : ""),
                                    .operations = sums->operations,
                                    .dropped = sums->dropped,
                                    .lost = sums->lost,
                                    .places = calloc(sums->place_count + 1, sizeof *out->places)};
    for (size_t i = 0; out->places && i < sums->place_count; i++) {
        out->places[out->place_count] = summary_row(&sums->places[i]);
        done = out->places[out->place_count++].place && done;
    }
    return out->why_not && out->places && done;
}

void pki_gpu_sums_finish(pki_gpu_memory_sums *sums)
{
    for (size_t i = 0; i < sums->place_count; i++)
        free(sums->places[i].place);
    free(sums->places);
    free(sums->why_not);
    *sums = (pki_gpu_memory_sums){0};
}

/* ---- the account of device memory as rows of the report ---- */

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
