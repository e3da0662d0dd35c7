#include "measure/memory/gpu.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/compiler.h"
#include "measure/memory/course.h"

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
