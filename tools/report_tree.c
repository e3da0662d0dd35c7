/* tools/report_tree.c - the call tree as text. */
#include "report_capture.h"

#include "out/report/sections.h"

#include <stdio.h>

#define PATH 41    /* columns of a name with what stands in front of it */
#define INDENT 2u  /* per depth, */
#define DEEPEST 16 /* and deeper it is a number */

static uint64_t time_of_all(const pki_summary *s)
{
    uint64_t all = 0;
    for (size_t i = 0; i < s->tree_count; i++)
        all += s->tree[i].depth == 0 ? s->tree[i].time : 0;
    return all;
}

static const char *row_name(const void *row)
{
    return ((const pki_tree_row *)row)->name;
}

static void put_row(const pki_tree_row *r, double all, size_t width, const pki_column *names,
                    FILE *file)
{
    uint32_t indent = INDENT * PKI_MIN(r->depth, (uint32_t)DEEPEST);
    size_t left = width - indent;
    pki_put_times(file, ' ', 2 + indent);
    if (r->depth > DEEPEST)
        left -= (size_t)fprintf(file, "%u: ", r->depth);
    pki_put_apart(file, r->name, left, names);
    pki_report_cell(file, COUNT(r->calls), 7);
    pki_report_cell(file, TIME((double)r->time), 9);
    pki_report_cell(file, TIME((double)r->self), 9);
    pki_report_percent(file, all > 0 ? (double)r->time / all : 0);
    fputc('\n', file);
}

void report_tree(const pki_summary *summary, const pki_report_options *options, uint32_t depth,
                 double least, FILE *file)
{
    double all = (double)time_of_all(summary);
    size_t left = 0, width = PATH, shown = 0;
    uint32_t top = options->top ? options->top : PKI_REPORT_ALL;
    width += options->width > PKI_PAGE_WIDTH ? options->width - PKI_PAGE_WIDTH : 0;
    if (!summary->tree_count)
        return;
    pki_report_title(file, "CALL TREE of all threads: a region in those that it was called in");
    fprintf(file, "  %-*s   calls      time      self share\n", (int)width, "region");
    for (size_t i = 0; i < summary->tree_count; i++) {
        const pki_tree_row *r = &summary->tree[i];
        bool fits = r->depth < depth && (double)r->time >= least * all && shown < top;
        if (fits && pki_report_shows(options, r->name) && ++shown) {
            pki_column names = pki_column_near(summary->tree, summary->tree_count,
                                               sizeof *summary->tree, i, row_name);
            put_row(r, all, width, &names, file);
        } else {
            left++;
        }
    }
    if (left)
        fprintf(file, "  ... and %zu more rows (--depth, --min-share, --top)\n", left);
}
