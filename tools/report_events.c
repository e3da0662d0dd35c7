/* tools/report_events.c - what sampled calls of regions counted in this run and in another one. */
#include "report_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure/costs/events.h"
#include "out/report/sections.h"

#define NAME 20
#define FIGURE 15

typedef struct beside {
    const pki_events_row *mine, *other;
} beside;

static const pki_events_row *find(const pki_events_summary *in, const char *region)
{
    for (size_t i = 0; i < in->row_count; i++)
        if (strcmp(in->rows[i].region, region) == 0)
            return &in->rows[i];
    return NULL;
}

static bool are_known(const beside *b, pki_event_figure figure)
{
    return pki_event_figure_of(b->mine, figure) >= 0 && pki_event_figure_of(b->other, figure) >= 0;
}

static void put_value(double value, double error, pki_event_figure figure, FILE *file)
{
    pki_report_cell(file,
                    figure == PKI_FIGURE_PROCESSOR ? TIME(value)
                                                   : pki_event_figure_shown(figure, value).text,
                    8);
    pki_report_cell(file, pki_event_error_shown(figure, value, error).text, 7);
}

static void put_change(double now, double then, bool differ, FILE *file)
{
    char text[32] = "-";
    if (differ && then > 0)
        snprintf(text, sizeof text, "%+.1f %%", fmin(100 * (now / then - 1), 99999));
    pki_report_cell(file, text, 9);
}

static void put_row(const beside *b, pki_event_figure figure, const char *region, FILE *file)
{
    double now = pki_event_figure_of(b->mine, figure), then = pki_event_figure_of(b->other, figure);
    double error = pki_event_error_of(b->mine, figure);
    double other = pki_event_error_of(b->other, figure);
    fputs("  ", file);
    pki_put_left(file, region, NAME);
    pki_put_left(file, pki_event_figure_name(figure), FIGURE);
    put_value(now, error, figure, file);
    put_value(then, other, figure, file);
    put_change(now, then, pki_event_figures_differ(now, error, then, other), file);
    fputc('\n', file);
}

static void put_region(const beside *b, FILE *file)
{
    const char *region = b->mine->region;
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (!are_known(b, f))
            continue;
        put_row(b, f, region, file);
        region = "";
    }
}

static void put_head(FILE *file)
{
    fputs("\nEVENTS A CALL: what both runs sampled\n", file);
    pki_report_print(file,
                     "Misses are those in 1,000 instructions. +-: 95 %% of samples would be as "
                     "near; a change is shown where it is beyond both.");
    fprintf(file, "  %-*s%-*s this run      +-    other      +-   change\n", NAME, "region", FIGURE,
            "figure");
}

static bool knows_any(const beside *b)
{
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++)
        if (are_known(b, f))
            return true;
    return false;
}

void report_events_beside(const pki_summary *mine, const pki_summary *other,
                          const pki_report_options *options, FILE *file)
{
    uint32_t top = options->top ? options->top : PKI_REPORT_TOP, shown = 0, all = 0;
    for (size_t i = 0; i < mine->events.row_count; i++) {
        const beside b = {&mine->events.rows[i], find(&other->events, mine->events.rows[i].region)};
        if (!b.other || !knows_any(&b) || !pki_report_shows(options, b.mine->region) ||
            all++ >= top)
            continue;
        if (!shown++)
            put_head(file);
        put_region(&b, file);
    }
    if (all > shown)
        fprintf(file, "  ... and %u regions more\n", all - shown);
}
