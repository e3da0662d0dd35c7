/* lib/out/report/gpu_memory.c - what CUDA has allocated, on which device, and in which regions. */
#include "out/report/sections.h"

#define NAME 27 /* columns of a region's name */
#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

static void put_place(const pki_gpu_memory_place *p, FILE *file)
{
    char of_all[128] = "";
    if (p->total)
        snprintf(of_all, sizeof of_all, "; at most %s of %s taken", BYTES(p->most_held),
                 BYTES(p->total));
    pki_report_print(file, "%s: %s live at the end, %s at most (%s into the run)%s", p->place,
                     BYTES(p->live), BYTES(p->peak), TIME((double)p->peak_ns), of_all);
    if (p->in_use)
        pki_report_print(file, "%s: %s in use at most, by all processes, as NVML saw it", p->place,
                         BYTES(p->in_use));
    if (p->most_reserved)
        pki_report_print(
            file,
            "%s: pools had reserved %s at most, %s of it unused then: kept for later, or"
            " in pieces; %s at the end, %s of it in use",
            p->place, BYTES(p->most_reserved), pki_figure_percent(p->unused).text,
            BYTES(p->pool_reserved), BYTES(p->pool_used));
}

static void put_cells(const char *name, size_t width, const uint64_t cells[5], FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, name, width);
    pki_report_cell(file, COUNT(cells[0]), 7);
    for (int i = 1; i < 5; i++)
        pki_report_cell(file, BYTES(cells[i]), 8);
    fputc('\n', file);
}

static void put_kinds(const pki_gpu_memory_place *p, size_t width, FILE *file)
{
    if (p->kind_count)
        fprintf(file, "  %-*s  allocs    bytes     live     peak  at peak\n", (int)width, "kind");
    for (size_t i = 0; i < p->kind_count; i++) {
        const pki_gpu_memory_kind *k = &p->kinds[i];
        put_cells(k->kind, width,
                  (const uint64_t[]){k->allocations, k->bytes, k->live, k->peak, k->at_peak}, file);
    }
}

static void put_regions(const pki_gpu_memory_place *p, size_t width,
                        const pki_report_options *options, FILE *file)
{
    size_t shown = 0, all = 0;
    for (size_t i = 0; i < p->region_count; i++)
        all += pki_report_shows(options, p->regions[i].name);
    if (!all)
        return;
    fprintf(file, "  %-*s  allocs    bytes     live     peak  at peak\n", (int)width, "region");
    for (size_t i = 0; i < p->region_count && shown < options->top; i++) {
        const pki_memory_region *r = &p->regions[i];
        if (!pki_report_shows(options, r->name))
            continue;
        put_cells(r->name && r->name[0] ? r->name : "(outside of regions)", width,
                  (const uint64_t[]){r->allocations, r->bytes, r->live, r->peak, r->at_peak}, file);
        shown++;
    }
    if (all > shown)
        fprintf(file, "  ... and %zu more\n", all - shown);
}

/* One pool's figures are the device's. */
static void put_pools(const pki_gpu_memory_place *p, size_t width,
                      const pki_report_options *options, FILE *file)
{
    size_t shown = 0;
    if (p->pool_count < 2)
        return;
    fprintf(file, "  %-*s  most reserved  in use   unused  reserved   in use\n", (int)width - 8,
            "pool");
    for (; shown < p->pool_count && shown < options->top; shown++) {
        const pki_gpu_pool_row *pool = &p->pools[shown];
        char name[48];
        snprintf(name, sizeof name, "%llu%s", (unsigned long long)pool->pool,
                 pool->gone ? ", given back" : "");
        fputs("  ", file);
        pki_put_left(file, name, width - 8);
        pki_report_cell(file, BYTES(pool->most_reserved), 14);
        pki_report_cell(file, BYTES(pool->used_then), 7);
        pki_report_cell(file, pki_figure_percent(pool->unused).text, 8);
        pki_report_cell(file, BYTES(pool->reserved), 9);
        pki_report_cell(file, BYTES(pool->used), 8);
        fputc('\n', file);
    }
    if (shown < p->pool_count)
        fprintf(file, "  ... and %zu more\n", p->pool_count - shown);
}

static size_t name_room(const pki_gpu_memory_place *p, const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0; i < p->region_count; i++)
        longest = PKI_MAX(longest, pki_width(p->regions[i].name));
    return pki_report_name_room(options, NAME, longest);
}

/* What makes figures less than exact. */
static void put_doubts(const pki_gpu_memory_summary *m, FILE *file)
{
    if (m->unknown_frees)
        pki_report_print(file, "freed, and allocated before the recording: %s in %s calls",
                         BYTES(m->unknown_freed), COUNT(m->unknown_frees));
    if (m->untied)
        pki_report_print(file,
                         "the region of %s allocations is unknown: they count outside of regions",
                         COUNT(m->untied));
    if (m->pools_beyond)
        pki_report_print(file, "records of pools beyond the first %u at once, not counted: %s", 64u,
                         COUNT(m->pools_beyond));
    if (m->dropped || m->lost || m->missed_frees)
        pki_report_print(
            file,
            "not exact: CUPTI dropped %s records, of whatever kind; %s were not counted,"
            " without a time or for want of memory; %s frees were not seen",
            COUNT(m->dropped), COUNT(m->lost), COUNT(m->missed_frees));
}

void pki_report_gpu_memory(const pki_summary *summary, const pki_report_options *options,
                           FILE *file)
{
    const pki_gpu_memory_summary *m = &summary->gpu_memory;
    if (!m->asked)
        return;
    pki_report_title(file, "DEVICE MEMORY");
    if (m->why_not && m->why_not[0])
        pki_report_print(file, "not recorded: %s", m->why_not);
    else if (!m->place_count)
        pki_report_print(file, "nothing was allocated while it was recorded");
    for (size_t i = 0; i < m->place_count; i++) {
        const pki_gpu_memory_place *p = &m->places[i];
        size_t width = name_room(p, options);
        put_place(p, file);
        put_kinds(p, width, file);
        put_regions(p, width, options, file);
        put_pools(p, width, options, file);
    }
    put_doubts(m, file);
}
