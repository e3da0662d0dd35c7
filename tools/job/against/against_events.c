/* tools/job/against/against_events.c - what sampled calls of a job counted, beside those of another
 * one. */
#include "job/against/against_events.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "job/forms/text.h"
#include "measure/figure.h"
#include "memory.h"

#define SHOWN 20 /* rows */
#define NAME 20
#define FIGURE 14

static const job_counted *find(const job_counted *in, size_t count, const char *region)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(in[i].region, region) == 0)
            return &in[i];
    return NULL;
}

static void add(against_events *to, const job_counted *now, const job_counted *before)
{
    for (pki_event_figure f = 0; f < PKI_EVENT_FIGURES; f++) {
        if (now->value[f] < 0 || before->value[f] < 0)
            continue;
        to->rows[to->count++] =
            (against_event){.region = now->region,
                            .figure = f,
                            .before = before->value[f],
                            .before_error = before->error[f],
                            .now = now->value[f],
                            .now_error = now->error[f],
                            .differs = pki_event_figures_differ(
                                now->value[f], now->error[f], before->value[f], before->error[f])};
    }
}

against_events against_events_of(const job *now, const job *before)
{
    against_events out = {0};
    size_t count, other_count;
    job_counted *all = job_counted_of(now, &count), *other = job_counted_of(before, &other_count);
    out.rows = memory_zeroed(count * PKI_EVENT_FIGURES, sizeof *out.rows);
    for (size_t i = 0; i < count; i++) {
        const job_counted *was = find(other, other_count, all[i].region);
        if (was)
            add(&out, &all[i], was);
    }
    free(all);
    free(other);
    return out;
}

void against_events_finish(against_events *events)
{
    free(events->rows);
    *events = (against_events){0};
}

static void put_value(double value, double error, pki_event_figure figure, FILE *to)
{
    pki_put_cell(to, pki_event_figure_shown(figure, value).text, 7);
    pki_put_cell(to, pki_event_error_shown(figure, value, error).text, 7);
}

static void put_row(const against_event *e, const char *region, FILE *to)
{
    char change[32] = "-";
    if (e->differs && e->before > 0)
        snprintf(change, sizeof change, "%+.1f %%", fmin(100 * (e->now / e->before - 1), 99999));
    job_text_left(to, region, NAME);
    pki_put_left(to, pki_event_figure_name(e->figure), FIGURE);
    put_value(e->before, e->before_error, e->figure, to);
    put_value(e->now, e->now_error, e->figure, to);
    pki_put_cell(to, change, 9);
    fputc('\n', to);
}

void against_events_text(const against_events *events, FILE *to)
{
    const char *last = "";
    if (!events->count)
        return;
    fputs("\n  Events a call (misses: in 1,000 instructions; a change is told where it is beyond\n"
          "  the errors of both samples)\n",
          to);
    job_text_left(to, "region", NAME);
    pki_put_left(to, "figure", FIGURE);
    fputs("  before       +-      now       +-    change\n", to);
    for (size_t i = 0; i < PKI_MIN(events->count, SHOWN); i++) {
        const against_event *e = &events->rows[i];
        put_row(e, strcmp(e->region, last) == 0 ? "" : e->region, to);
        last = e->region;
    }
    if (events->count > SHOWN)
        fprintf(to, "  ... and %zu more (--json has all)\n", events->count - SHOWN);
}

static void put_known(pki_json *j, const char *key, double value)
{
    pki_json_real(j, key, value < 0 ? NAN : value);
}

static void put_json(const against_event *e, pki_json *j)
{
    const char *change = !e->differs ? "cannot tell" : e->now > e->before ? "more" : "less";
    pki_json_row(j);
    pki_json_open(j, NULL, '{');
    pki_json_text(j, "region", e->region);
    pki_json_text(j, "figure", pki_event_figure_key(e->figure));
    pki_json_real(j, "before", e->before);
    put_known(j, "before_error", e->before_error);
    pki_json_real(j, "now", e->now);
    put_known(j, "now_error", e->now_error);
    pki_json_text(j, "change", change);
    pki_json_close(j, '}');
}

void against_events_json(const against_events *events, size_t most, pki_json *j)
{
    if (!events->count)
        return;
    pki_json_open(j, "events", '[');
    for (size_t i = 0; i < PKI_MIN(events->count, most); i++)
        put_json(&events->rows[i], j);
    pki_json_close(j, ']');
}
