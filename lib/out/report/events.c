/* What the processor and the kernel counted of sampled calls. */
#include "measure/costs/beside.h"
#include "out/report/sections.h"

#define NAME 18
#define NO_FIGURE "-"

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

static const char *region_name(const void *row)
{
    return ((const pki_events_row *)row)->region;
}

static void put_head(const pki_events_summary *e, size_t at, FILE *file)
{
    const pki_events_row *r = &e->rows[at];
    pki_column names = pki_column_near(e->rows, e->row_count, sizeof *e->rows, at, region_name);
    fputs("  ", file);
    pki_put_apart(file, r->region, NAME, &names);
    pki_report_cell(file, COUNT(r->calls), 7);
    pki_report_cell(file, COUNT(r->sampled), 7);
}

static void put_hardware(const pki_events_row *r, FILE *file)
{
    put_value(r->value[PKI_EVENT_INSTRUCTIONS], 7, file);
    put_error(r->value[PKI_EVENT_INSTRUCTIONS], r->error[PKI_EVENT_INSTRUCTIONS], file);
    put_value(r->value[PKI_EVENT_CYCLES], 7, file);
    put_value(r->ratio[PKI_EVENT_IPC], 5, file);
    put_error(r->ratio[PKI_EVENT_IPC], r->ratio_error[PKI_EVENT_IPC], file);
    put_value(r->ratio[PKI_EVENT_CACHE], 6, file);
    put_value(r->ratio[PKI_EVENT_BRANCH], 6, file);
    fputc('\n', file);
}

static void put_software(const pki_events_row *r, FILE *file)
{
    double took = r->value[PKI_EVENT_PROCESSOR];
    pki_report_cell(file, took < 0 ? NO_FIGURE : TIME(took), 9);
    put_error(took, r->error[PKI_EVENT_PROCESSOR], file);
    put_value(r->value[PKI_EVENT_FAULTS], 8, file);
    put_value(r->value[PKI_EVENT_SWITCHES], 9, file);
    put_value(r->value[PKI_EVENT_MIGRATIONS], 10, file);
    fputc('\n', file);
}

/* Percent of the slots, and the largest error of the four in the same. */
static void put_topdown(const pki_events_row *r, FILE *file)
{
    double worst = 0;
    if (!(r->value[PKI_EVENT_SLOTS] > 0)) {
        put_value(-1, 7, file);
        fputc('\n', file);
        return;
    }
    put_value(r->value[PKI_EVENT_SLOTS], 7, file);
    for (pki_event_figure f = PKI_FIGURE_RETIRING; f <= PKI_FIGURE_BACKEND_BOUND; f++) {
        double error = pki_event_error_of(r, f);
        worst = error < 0 || worst < 0 ? -1 : PKI_MAX(worst, error);
        pki_report_cell(file, pki_figure_percent(pki_event_figure_of(r, f)).text, 8);
    }
    pki_report_cell(file, worst < 0 ? NO_FIGURE : pki_figure_percent(worst).text, 7);
    fputc('\n', file);
}

/* Has any region one of these means? */
static bool has(const pki_events_summary *e, int first, int last)
{
    for (size_t i = 0; i < e->row_count; i++)
        for (int j = first; j <= last; j++)
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

static const struct {
    int first, last; /* means that it is of */
    const char *head;
    void (*put)(const pki_events_row *row, FILE *file);
} tables[] = {
    {PKI_EVENT_INSTRUCTIONS, PKI_EVENT_BRANCH_MISSES,
     "  instr.       +-  cycles   IPC       +-  cache branch", put_hardware},
    {PKI_EVENT_PROCESSOR, PKI_EVENT_MIGRATIONS, " processor       +-   faults  switches migrations",
     put_software},
    {PKI_EVENT_SLOTS, PKI_EVENT_SLOTS, "   slots retiring bad spec front-end back-end      +-",
     put_topdown},
};

static void put_rows(const pki_events_summary *e, FILE *file)
{
    for (size_t t = 0; t < PKI_COUNT_OF(tables); t++) {
        if (!has(e, tables[t].first, tables[t].last))
            continue;
        fprintf(file, "  region               calls sampled%s\n", tables[t].head);
        for (size_t i = 0; i < e->row_count; i++) {
            put_head(e, i, file);
            tables[t].put(&e->rows[i], file);
        }
    }
}

/* A file may be older than one of them. */
static void put_why_not(const char *what, const char *why_not, FILE *file)
{
    if (why_not && *why_not)
        pki_report_print(file, "%s events: %s", what, why_not);
}

void pki_report_events(const pki_summary *s, FILE *file)
{
    const pki_events_summary *e = &s->events;
    if (!e->asked)
        return;
    bool hardware = has(e, tables[0].first, tables[0].last);
    bool topdown = has(e, tables[2].first, tables[2].last);
    pki_report_title(file, "EVENTS A CALL");
    put_why_not("hardware", e->why_not_hardware, file);
    put_why_not("software", e->why_not_software, file);
    put_why_not("top-down", e->why_not_topdown, file);
    if (e->row_count)
        pki_report_print(
            file,
            "Means over sampled calls, with what is inside them; +-: 95 %% of samples "
            "would be as near.%s%s",
            hardware ? " cache, branch: misses in 1,000 instructions, in user mode." : "",
            topdown ? " slots: of the pipeline, in user mode, and what became of them; +- is the "
                      "largest of the four errors, in percent of the slots."
                    : "");
    put_rows(e, file);
    put_missed(e, file);
    put_threads(e, file);
}
