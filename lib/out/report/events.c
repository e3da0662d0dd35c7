/* What the processor and the kernel counted of sampled calls. */
#include "out/report/sections.h"

#define NAME 18
#define NO_FIGURE "-"

enum { INSTRUCTIONS, CYCLES, CACHE, BRANCH, PROCESSOR, FAULTS, SWITCHES, MIGRATIONS };

static void put_value(double value, size_t width, FILE *file)
{
    pki_report_cell(file, value < 0 ? NO_FIGURE : pki_figure_scaled(value, "").text, width);
}

/* As a share of what it is the error of. */
static void put_error(double value, double error, FILE *file)
{
    bool known = value > 0 && error >= 0;
    pki_report_cell(file, known ? pki_figure_percent(error / value).text : NO_FIGURE, 8);
}

static void put_head(const pki_events_row *r, FILE *file)
{
    fputs("  ", file);
    pki_put_left(file, r->region, NAME);
    pki_report_cell(file, COUNT(r->calls), 7);
    pki_report_cell(file, COUNT(r->sampled), 7);
}

static void put_hardware(const pki_events_row *r, FILE *file)
{
    put_head(r, file);
    put_value(r->value[INSTRUCTIONS], 7, file);
    put_error(r->value[INSTRUCTIONS], r->error[INSTRUCTIONS], file);
    put_value(r->value[CYCLES], 7, file);
    put_value(r->ratio[PKI_EVENT_IPC], 5, file);
    put_error(r->ratio[PKI_EVENT_IPC], r->ratio_error[PKI_EVENT_IPC], file);
    put_value(r->ratio[PKI_EVENT_CACHE], 6, file);
    put_value(r->ratio[PKI_EVENT_BRANCH], 6, file);
    fputc('\n', file);
}

static void put_software(const pki_events_row *r, FILE *file)
{
    put_head(r, file);
    pki_report_cell(file, r->value[PROCESSOR] < 0 ? NO_FIGURE : TIME(r->value[PROCESSOR]), 9);
    put_error(r->value[PROCESSOR], r->error[PROCESSOR], file);
    put_value(r->value[FAULTS], 8, file);
    put_value(r->value[SWITCHES], 9, file);
    put_value(r->value[MIGRATIONS], 10, file);
    fputc('\n', file);
}

/* Has any region that event? */
static bool has(const pki_events_summary *e, int from)
{
    for (size_t i = 0; i < e->row_count; i++)
        for (int j = from; j < from + 4; j++)
            if (e->rows[i].value[j] >= 0)
                return true;
    return false;
}

static void put_threads(const pki_events_summary *e, FILE *file)
{
    if (e->threads_without)
        pki_report_print(file, "%s threads had none: %s", COUNT(e->threads_without),
                         e->why_threads);
    if (e->threads_lost)
        pki_report_print(file,
                         "%s threads were not sampled any longer: the program has closed their "
                         "descriptors, or the session ended amid a reading",
                         COUNT(e->threads_lost));
    if (e->calls_beyond)
        pki_report_print(file, "at least %s calls were of regions beyond 256 on a thread",
                         COUNT(e->calls_beyond));
}

static void put_missed(const pki_events_summary *e, FILE *file)
{
    uint64_t missed = 0, sampled = 0;
    for (size_t i = 0; i < e->row_count; i++) {
        missed += e->rows[i].missed;
        sampled += e->rows[i].sampled;
    }
    if (missed)
        pki_report_print(file,
                         "%s sampled calls beside %s have no figures: the counters were others' "
                         "meanwhile, or the call had no end of its own",
                         COUNT(missed), COUNT(sampled));
}

static void put_rows(const pki_events_summary *e, FILE *file)
{
    if (has(e, INSTRUCTIONS))
        fputs("  region               calls sampled  instr.       +-  cycles   IPC       +-"
              "  cache branch\n",
              file);
    for (size_t i = 0; i < e->row_count && has(e, INSTRUCTIONS); i++)
        put_hardware(&e->rows[i], file);
    if (has(e, PROCESSOR))
        fputs("  region               calls sampled processor       +-   faults  switches"
              " migrations\n",
              file);
    for (size_t i = 0; i < e->row_count && has(e, PROCESSOR); i++)
        put_software(&e->rows[i], file);
}

void pki_report_events(const pki_summary *s, FILE *file)
{
    const pki_events_summary *e = &s->events;
    if (!e->asked)
        return;
    pki_report_title(file, "EVENTS A CALL");
    if (*e->why_not_hardware)
        pki_report_print(file, "hardware events: %s", e->why_not_hardware);
    if (*e->why_not_software)
        pki_report_print(file, "software events: %s", e->why_not_software);
    if (e->row_count)
        pki_report_print(file,
                         "Means over sampled calls, with what is inside them; +-: 95 %% of samples "
                         "would be as near.%s",
                         has(e, INSTRUCTIONS)
                             ? " cache, branch: misses in 1,000 instructions, in user mode."
                             : "");
    put_rows(e, file);
    put_missed(e, file);
    put_threads(e, file);
}
