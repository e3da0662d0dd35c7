/* Regions beside the machine's limits. */
#include "out/report/sections.h"

#include <time.h>

#define NAME 16

static const char *bound(bool memory)
{
    return memory ? "memory" : "compute";
}

static void put_bound(const pki_roofline_row *row, FILE *file)
{
    if (row->memory_bound_double == row->memory_bound_single)
        pki_report_cell(file, bound(row->memory_bound_double), 7);
    else /* in double precision its peak is what it meets first */
        pki_report_cell(file, "both", 7);
}

static const char *region_name(const void *row)
{
    return ((const pki_roofline_row *)row)->region;
}

static void put_row(const pki_roofline_row *row, size_t name, const pki_column *names, FILE *file)
{
    const char *none = "-";
    fputs("  ", file);
    pki_put_apart(file, row->region, name, names);
    pki_report_cell(file, row->all_processors ? "all" : pki_figure_scaled(row->threads, "").text,
                    7);
    pki_report_cell(file, row->intensity > 0 ? pki_figure_scaled(row->intensity, "").text : none,
                    9);
    pki_report_cell(
        file,
        row->bytes_per_second > 0 ? pki_figure_scaled(row->bytes_per_second, "B/s").text : none, 9);
    pki_report_cell(
        file,
        row->flops_per_second > 0 ? pki_figure_scaled(row->flops_per_second, "F/s").text : none, 9);
    put_bound(row, file);
    fputs("  ", file);
    pki_report_percent(file, row->of_double);
    fputs("  ", file);
    pki_report_percent(file, row->of_single);
    fputc('\n', file);
}

static void put_limits(const pki_roofline *r, FILE *file)
{
    time_t when = (time_t)r->measured;
    struct tm utc;
    char day[16] = "";
    if (gmtime_r(&when, &utc))
        strftime(day, sizeof day, "%Y-%m-%d", &utc);
    pki_report_print(file,
                     "One processor of %s, by pk machine on %s: %s, %s in double precision, %s in "
                     "single; all %s: %s, %s, %s.",
                     r->host, day, pki_figure_scaled(r->bandwidth_one, "B/s").text,
                     pki_figure_scaled(r->double_one, "flop/s").text,
                     pki_figure_scaled(r->single_one, "flop/s").text, COUNT(r->processors),
                     pki_figure_scaled(r->bandwidth_all, "B/s").text,
                     pki_figure_scaled(r->double_all, "flop/s").text,
                     pki_figure_scaled(r->single_all, "flop/s").text);
}

static size_t longest_name(const pki_roofline *r, const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0; i < r->row_count; i++)
        if (pki_report_shows(options, r->rows[i].region))
            longest = PKI_MAX(longest, pki_width(r->rows[i].region));
    return longest;
}

void pki_report_roofline(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    const pki_roofline *r = &summary->roofline;
    size_t name = pki_report_name_room(options, NAME, longest_name(r, options)), shown = 0;
    if (!r->measured || !r->row_count)
        return;
    pki_report_title(file, "ROOFLINE: what regions reach of min(peak, intensity x bandwidth)");
    put_limits(r, file);
    fprintf(file, "  %-*s threads flop/byte     bytes     flops   bound double%% single%%\n",
            (int)name, "region");
    for (size_t i = 0; i < r->row_count; i++)
        if (pki_report_shows(options, r->rows[i].region) && shown++ < options->top) {
            pki_column names =
                pki_column_near(r->rows, r->row_count, sizeof *r->rows, i, region_name);
            put_row(&r->rows[i], name, &names, file);
        }
    if (shown > options->top)
        fprintf(file, "  ... and %zu more\n", shown - options->top);
}
