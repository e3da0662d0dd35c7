/* lib/measure/verdict/memory.c - memory grows without end, is nearly used up, or is taken and given
 * back in every step. */
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

static const char *shown(const pki_memory_region *r)
{
    return r->name && r->name[0] ? r->name : "outside of all regions";
}

/* The region that grows most; NULL: none does. */
static const pki_memory_region *growing(const pki_memory_summary *m)
{
    const pki_memory_region *most = NULL;
    for (size_t i = 0; i < m->region_count; i++)
        if (m->regions[i].growth.per_step > (most ? most->growth.per_step : 0))
            most = &m->regions[i];
    return most;
}

bool pki_verdict_leak(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    const pki_memory_region *r = growing(m);
    const pki_growth *g = r ? &r->growth : &m->growth;
    if (!(g->per_step > 0))
        return true;
    if (r)
        pki_sentence_add(
            words,
            "What is allocated %s%s%s and not freed grows by %s a step, in each third of"
            " the last %s steps (%s standard deviations from no trend, threshold 4.5): %s"
            " live at the end.",
            r->name[0] ? "in \"" : "", shown(r), r->name[0] ? "\"" : "", BYTES(g->per_step),
            COUNT(g->steps), pki_figure_scaled(g->z, "").text, BYTES(r->live));
    else
        pki_sentence_add(
            words,
            "The process's private memory grows by %s a step, in each third of the last"
            " %s steps (%s standard deviations from no trend, threshold 4.5).",
            BYTES(g->per_step), COUNT(g->steps), pki_figure_scaled(g->z, "").text);
    if (!r && !m->allocator[0])
        pki_sentence_add(words, " With libpk_alloc preloaded the report names the region.");
    return pki_verdict_add_sentence(words, s, "leak", PKI_WARN, g->z, PKI_GROWTH_Z);
}

bool pki_verdict_near_limit(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    double share = m->limit ? (double)m->used / (double)m->limit : 0;
    if (!(share > PKI_NEAR_LIMIT))
        return true;
    pki_sentence_add(words,
                     "%s of memory were in use, %s of the limit of %s (%s; threshold 90 %%): a"
                     " somewhat larger input ends the run.",
                     BYTES(m->used), PERCENT(share), BYTES(m->limit), m->limit_of);
    return pki_verdict_add_sentence(words, s, "near-memory-limit", PKI_WARN, share, PKI_NEAR_LIMIT);
}

/* A step's usual length; 0: there are none. */
static double usual_step(const pki_summary *s)
{
    return s->steps.steady.count ? s->steps.steady.p50 : 0;
}

bool pki_verdict_page_faults(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    double step = usual_step(s);
    double ns = m->steady_minor * PKI_MINOR_FAULT_NS + m->steady_major * PKI_MAJOR_FAULT_NS;
    if (!(step > 0 && ns / step > PKI_PAGE_FAULT_SHARE))
        return true;
    pki_sentence_add(
        words,
        "%s page faults in a step, %s of them from a disk, cost some %s of it (at 0.5 us"
        " and 100 us; threshold 5 %%): memory is given back to the system and taken"
        " anew. Keep large blocks from step to step, or have the allocator keep them.",
        pki_figure_scaled(m->steady_minor + m->steady_major, "").text,
        pki_figure_scaled(m->steady_major, "").text, PERCENT(ns / step));
    return pki_verdict_add_sentence(words, s, "page-faults", PKI_WARN, ns / step,
                                    PKI_PAGE_FAULT_SHARE);
}

bool pki_verdict_allocates(pki_summary *s, pki_sentence *words)
{
    const pki_memory_summary *m = &s->memory;
    const pki_memory_region *most = NULL;
    double step = usual_step(s), all = 0;
    for (size_t i = 0; i < m->region_count; i++) {
        all += m->regions[i].steady;
        if (m->regions[i].steady > (most ? most->steady : 0))
            most = &m->regions[i];
    }
    double share = step > 0 ? all * PKI_ALLOCATION_NS / step : 0;
    if (!most || !(share > PKI_ALLOCATES_SHARE))
        return true;
    pki_sentence_add(
        words,
        "%s allocations in a step, long after the first ones, cost some %s of it (at 50"
        " ns; threshold 2 %%); most, %s, %s%s%s. Allocate before the loop.",
        pki_figure_scaled(all, "").text, PERCENT(share), pki_figure_scaled(most->steady, "").text,
        most->name[0] ? "in \"" : "", shown(most), most->name[0] ? "\"" : "");
    return pki_verdict_add_sentence(words, s, "allocates", PKI_NOTE, share, PKI_ALLOCATES_SHARE);
}
