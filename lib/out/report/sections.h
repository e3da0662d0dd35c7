/* lib/out/report/sections.h - the parts of the text report; report/text.c puts them in order. Each
 * writes nothing if it has nothing to say, and ends with a newline otherwise.
 */
#pragma once

#include "base/compiler.h"
#include "measure/figure.h"
#include "measure/shape.h"
#include "out/columns.h"
#include "out/report/report.h"

void pki_report_steps(const pki_summary *summary, FILE *file);
void pki_report_gpus(const pki_summary *summary, const pki_report_options *options, FILE *file);
void pki_report_costs(const pki_summary *summary, FILE *file);
void pki_report_events(const pki_summary *summary, FILE *file);
void pki_report_roofline(const pki_summary *summary, const pki_report_options *options, FILE *file);
void pki_report_gpu_memory(const pki_summary *summary, const pki_report_options *options,
                           FILE *file);
void pki_report_comm(const pki_summary *summary, FILE *file);

static inline const char *pki_report_region_name(const void *row)
{
    const char *name = ((const pki_region_row *)row)->name;
    return name ? name : "";
}

/* The names beside that of a region's row. */
static inline pki_column pki_report_region_names(const pki_region_row *rows, size_t count,
                                                 size_t at)
{
    return pki_column_near(rows, count, sizeof *rows, at, pki_report_region_name);
}

/* Columns for names that take `usual` on a page of the usual width: no more than there is room for,
 * or than the longest one needs. */
static inline size_t pki_report_name_room(const pki_report_options *options, size_t usual,
                                          size_t longest)
{
    size_t more = options->width > PKI_PAGE_WIDTH ? options->width - PKI_PAGE_WIDTH : 0;
    return PKI_MIN(PKI_MAX(longest, usual), usual + more);
}

static inline bool pki_report_shows(const pki_report_options *options, const char *name)
{
    return !options->shows || options->shows(options->user, name ? name : "");
}

#define COUNT(n) (pki_figure_count(n).text)
#define TIME(ns) (pki_figure_time(ns).text)
#define TIGHT(ns) (pki_figure_time_tight(ns).text)

/* ---- cells of a table, a blank in front of each ---- */

void pki_report_cell(FILE *file, const char *text, size_t width);

/* A share as a number of percent in five columns. */
void pki_report_percent(FILE *file, double share);

/* ---- paragraphs ---- */

/* Without a margin. */
PKI_PRINTF(2, 3) void pki_report_heading(FILE *file, const char *format, ...);

/* A blank line, and the title in capitals. */
PKI_PRINTF(2, 3) void pki_report_title(FILE *file, const char *format, ...);

/* A paragraph at the margin of a section. */
PKI_PRINTF(2, 3) void pki_report_print(FILE *file, const char *format, ...);

/* The same with a mark in front of it. */
