/* lib/out/report/memory.c - how much memory the run took, and which regions asked for it. */
#include "out/columns.h"
#include "out/report/sections.h"

#define NAME 27 /* columns of a region's name */
#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

static void put_process(const pki_memory_summary *m, FILE *file)
{
    pki_report_print(file, "resident: %s at the end, %s at most; private: %s at most",
                     BYTES(m->resident), BYTES(m->most_resident), BYTES(m->most_private));
    if (m->limit)
        pki_report_print(file, "limit: %s (%s), of which %s were in use", BYTES(m->limit),
                         m->limit_of, pki_figure_percent((double)m->used / (double)m->limit).text);
    if (m->step_minor.count)
        pki_report_print(file, "page faults in a step: %s (p50 %s, p99 %s), and %s from a disk",
                         pki_figure_scaled(m->step_minor.mean, "").text,
                         pki_figure_scaled(m->step_minor.p50, "").text,
                         pki_figure_scaled(m->step_minor.p99, "").text,
                         pki_figure_scaled(m->step_major.mean, "").text);
    else
        pki_report_print(file, "page faults: %s, and %s from a disk", COUNT(m->minor_faults),
                         COUNT(m->major_faults));
}

static const char *region_name(const void *row)
{
    const pki_memory_region *r = row;
    return r->name && r->name[0] ? r->name : "(outside of regions)";
}

static void put_row(const pki_memory_region *r, size_t name, const pki_column *names, FILE *file)
{
    fputs("  ", file);
    pki_put_apart(file, region_name(r), name, names);
    pki_report_cell(file, COUNT(r->allocations), 7);
    pki_report_cell(file, BYTES(r->bytes), 8);
    pki_report_cell(file, BYTES(r->live), 8);
    pki_report_cell(file, BYTES(r->peak), 8);
    pki_report_cell(file, BYTES(r->at_peak), 8);
    fputc('\n', file);
}

static void put_regions(const pki_memory_summary *m, const pki_report_options *options, FILE *file)
{
    size_t longest = 0, shown = 0, all = 0;
    for (size_t i = 0; i < m->region_count; i++) {
        longest = PKI_MAX(longest, pki_width(m->regions[i].name));
        all += pki_report_shows(options, m->regions[i].name);
    }
    size_t name = pki_report_name_room(options, NAME, longest);
    if (!all)
        return;
    fprintf(file, "  %-*s  allocs    bytes     live     peak  at peak\n", (int)name, "region");
    for (size_t i = 0; i < m->region_count && shown < options->top; i++)
        if (pki_report_shows(options, m->regions[i].name)) {
            pki_column names =
                pki_column_near(m->regions, m->region_count, sizeof *m->regions, i, region_name);
            put_row(&m->regions[i], name, &names, file);
            shown++;
        }
    if (all > shown)
        fprintf(file, "  ... and %zu more\n", all - shown);
}

void pki_report_memory(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    const pki_memory_summary *m = &summary->memory;
    if (!m->looks)
        return;
    pki_report_title(file, "MEMORY");
    put_process(m, file);
    bool counts = m->allocator && m->allocator[0];
    if (m->uncounted && m->uncounted[0])
        pki_report_print(file, "libpk_alloc %s: %s", counts ? "counts not all" : "counts nothing",
                         m->uncounted);
    if (!counts)
        return;
    pki_report_print(file, "allocated, from %s: %s live at the end, %s at most (within %s)",
                     m->allocator, BYTES(m->live), BYTES(m->peak), BYTES(m->within));
    put_regions(m, options, file);
}
