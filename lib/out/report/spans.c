/* lib/out/report/spans.c - pk_spans: how long they took, wherever they began and ended. */
#include "out/columns.h"
#include "out/report/sections.h"

#define NAME 23 /* columns of a span's name */

bool pki_report_is_span_alone(const pki_region_row *r)
{
    return r->span.events && r->self == 0 && !r->gpu.count && !r->kernels.count;
}

static void put_row(const pki_region_row *r, size_t name, const pki_column *names, bool marks,
                    FILE *file)
{
    const pki_dist *d = &r->time;
    fputs("  ", file);
    pki_put_apart(file, r->name, name, names);
    pki_report_cell(file, COUNT(marks ? r->span.marks : r->span.ended), 7);
    pki_report_cell(file, marks ? "" : COUNT(r->span.unfinished), 6);
    pki_report_cell(file, TIGHT(d->mean), 7);
    pki_report_cell(file, TIGHT(d->p50), 7);
    pki_report_cell(file, TIGHT(d->p90), 7);
    pki_report_cell(file, TIGHT(d->p99), 7);
    pki_report_cell(file, TIGHT(d->max), 7);
    fputc('\n', file);
}

static bool is_wanted(const pki_region_row *r, const pki_report_options *options, bool marks)
{
    return (marks ? r->span.marks : r->span.begun) > 0 && pki_report_shows(options, r->name);
}

static size_t room_for_names(const pki_summary *s, const pki_report_options *options)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->region_count; i++)
        if (is_wanted(&s->regions[i], options, false) || is_wanted(&s->regions[i], options, true))
            longest = PKI_MAX(longest, pki_width(s->regions[i].name));
    return pki_report_name_room(options, NAME, longest);
}

static void put_rows(const pki_summary *s, const pki_report_options *options, bool marks,
                     FILE *file)
{
    size_t name = room_for_names(s, options), shown = 0, all = 0;
    for (size_t i = 0; i < s->region_count; i++)
        all += is_wanted(&s->regions[i], options, marks);
    if (!all)
        return;
    fprintf(file, "  %-*s %s    mean     p50     p90     p99     max\n", (int)name,
            marks ? "mark, since the last" : "span", marks ? "  marks       " : "  ended   open");
    for (size_t i = 0; i < s->region_count && shown < options->top; i++)
        if (is_wanted(&s->regions[i], options, marks)) {
            pki_column names = pki_report_region_names(s->regions, s->region_count, i);
            put_row(&s->regions[i], name, &names, marks, file);
            shown++;
        }
    if (all > shown)
        fprintf(file, "  ... and %zu more\n", all - shown);
}

/* What went wrong, and with whom. */
static void put_errors(const pki_span_summary *s, FILE *file)
{
    if (s->unfinished)
        pki_report_print(file, "unfinished: %s of %s spans had begun and not ended",
                         COUNT(s->unfinished), COUNT(s->begun));
    if (s->dropped)
        pki_report_print(file,
                         "%s begins, marks and ends found no room: their times are in these"
                         " figures, and they are missing from the trace",
                         COUNT(s->dropped));
    if (s->ended_twice)
        pki_report_print(file,
                         "ended twice: %s ends or marks of spans that had ended, in no figure",
                         COUNT(s->ended_twice));
    if (s->of_earlier)
        pki_report_print(file, "of an earlier session: %s ends or marks, in no figure",
                         COUNT(s->of_earlier));
}

void pki_report_spans(const pki_summary *summary, const pki_report_options *options, FILE *file)
{
    if (!summary->spans.events)
        return;
    pki_report_title(file, "SPANS from begin to end, on whatever threads");
    put_rows(summary, options, false, file);
    put_rows(summary, options, true, file);
    put_errors(&summary->spans, file);
}
