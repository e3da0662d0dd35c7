/* lib/measure/verdict/gpu_memory.c - a device's memory grows without end, is nearly used up, or is
 * taken from the driver in every step. */
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

/* Of a region, its name in quotation marks where it has one. */
#define WHERE(r)                                                                                   \
    is_named(r) ? "in \"" : "", is_named(r) ? (r)->name : "outside of all regions",                \
        is_named(r) ? "\"" : ""

static bool is_named(const pki_memory_region *r)
{
    return r->name && r->name[0];
}

/* The region that grows most; *place: where. */
static const pki_memory_region *growing(const pki_gpu_memory_summary *m,
                                        const pki_gpu_memory_place **place)
{
    const pki_memory_region *most = NULL;
    for (size_t i = 0; i < m->place_count; i++)
        for (size_t r = 0; r < m->places[i].region_count; r++) {
            const pki_memory_region *region = &m->places[i].regions[r];
            if (!(region->growth.per_step > (most ? most->growth.per_step : 0)))
                continue;
            most = region;
            *place = &m->places[i];
        }
    return most;
}

bool pki_verdict_gpu_leak(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_memory_place *p = NULL;
    const pki_memory_region *r = growing(&s->gpu_memory, &p);
    if (!r || s->gpu_memory.dropped || s->gpu_memory.lost) /* frees may be among them */
        return true;
    pki_sentence_add(words,
                     "Unfreed CUDA memory on %s %s%s%s grows by %s a step, in"
                     " each third of the last %s steps (%s standard deviations from no trend,"
                     " threshold 4.5): %s live at the end.",
                     p->place, WHERE(r), BYTES(r->growth.per_step), COUNT(r->growth.steps),
                     pki_figure_scaled(r->growth.z, "").text, BYTES(r->live));
    return pki_verdict_add_sentence(words, s, "gpu-leak", PKI_WARN, r->growth.z, PKI_GROWTH_Z);
}

static uint64_t most_used(const pki_gpu_memory_place *p)
{
    return PKI_MAX(p->most_held, p->in_use);
}

static double share_of(const pki_gpu_memory_place *p)
{
    return p->total ? (double)most_used(p) / (double)p->total : 0;
}

bool pki_verdict_gpu_near_limit(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_memory_summary *m = &s->gpu_memory;
    const pki_gpu_memory_place *p = NULL;
    for (size_t i = 0; i < m->place_count; i++)
        if (share_of(&m->places[i]) > (p ? share_of(p) : PKI_NEAR_LIMIT))
            p = &m->places[i];
    if (!p)
        return true;
    pki_sentence_add(
        words,
        "%s of %s's memory were in use, %s of %s (threshold 90 %%)%s: a somewhat larger"
        " input ends the run.",
        BYTES(most_used(p)), p->place, PERCENT(share_of(p)), BYTES(p->total),
        p->in_use > p->most_held ? ", by all processes" : "");
    if (p->region_count && p->regions[0].at_peak)
        pki_sentence_add(words, " Most of what was allocated at its peak, %s, was %s%s%s.",
                         BYTES(p->regions[0].at_peak), WHERE(&p->regions[0]));
    if (p->unused > 0.1 && p->most_reserved - p->used_then > p->total / 100)
        pki_sentence_add(words, " Memory pools kept %s of it without using it.",
                         BYTES(p->most_reserved - p->used_then));
    return pki_verdict_add_sentence(words, s, "gpu-near-memory-limit", PKI_WARN, share_of(p),
                                    PKI_NEAR_LIMIT);
}

bool pki_verdict_gpu_allocates(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_memory_summary *m = &s->gpu_memory;
    const pki_gpu_memory_place *p = NULL;
    const pki_memory_region *most = NULL;
    for (size_t i = 0; i < m->place_count; i++)
        if (m->places[i].steady > (p ? p->steady : PKI_GPU_ALLOCATES))
            p = &m->places[i];
    if (!p || m->steady_steps < PKI_FEW_STEPS)
        return true;
    for (size_t i = 0; i < p->region_count; i++)
        if (!most || p->regions[i].steady > most->steady)
            most = &p->regions[i];
    pki_sentence_add(
        words,
        "%s allocations of CUDA's a step on %s, none of them from a memory pool, long after"
        " the first ones (threshold 0.5); most, %s, %s%s%s. Each asks the driver, and the"
        " free of each may wait for the device: allocate before the loop, or from a pool"
        " (cudaMallocAsync).",
        pki_figure_scaled(p->steady, "").text, p->place, pki_figure_scaled(most->steady, "").text,
        WHERE(most));
    return pki_verdict_add_sentence(words, s, "gpu-allocates", PKI_WARN, p->steady,
                                    PKI_GPU_ALLOCATES);
}
