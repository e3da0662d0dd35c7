/* The table for people. */
#include "bench/forms/document.h"

#include "base/compiler.h"
#include "out/columns.h"

#include <stdarg.h>
#include <string.h>

#define NAME_LEAST 24
#define NAME_MOST 48
#define PICTURE 48

static size_t name_width(const pki_bench_document *d)
{
    size_t widest = NAME_LEAST;
    for (size_t i = 0; i < d->row_count; i++)
        widest = PKI_MAX(widest, pki_width(d->rows[i].name));
    return PKI_MIN(widest, NAME_MOST);
}

static void put_head(const pki_bench_document *d, FILE *file)
{
    const pki_bench_environment *e = d->environment;
    fprintf(file, "%s, %u of %u processors, %s\n", *e->cpu ? e->cpu : e->architecture,
            e->cpus_allowed, e->cpus_online, e->kernel);
    for (size_t i = 0; i < d->warning_count; i++) {
        fputs("  mind: ", file);
        pki_put_paragraph(file, d->warnings[i].text, 8, 8);
    }
    fputc('\n', file);
}

static void put_titles(size_t name, FILE *file)
{
    pki_put_left(file, "benchmark", name);
    pki_put_cell(file, "median", 9);
    pki_put_cell(file, "+-", 6);
    pki_put_cell(file, "p99", 9);
    pki_put_cell(file, "CPU", 9);
    pki_put_cell(file, "samples", 7);
    fputs("  verdict\n", file);
}

/* ---- a row ---- */

static PKI_PRINTF(3, 4) void add(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    used += (size_t)snprintf(text + used, size - used, "%s", used ? ", " : "");
    va_start(args, format);
    vsnprintf(text + PKI_MIN(used, size - 1), size - PKI_MIN(used, size - 1), format, args);
    va_end(args);
}

static void put_indented(FILE *file, const char *text)
{
    fputs("    ", file);
    pki_put_paragraph(file, text, 4, 4);
}

static void put_figures(const pki_bench_row *row, FILE *file)
{
    char text[1024];
    const pk_bench_result *r = &row->result;
    const struct {
        const char *name;
        double value;
    } counted[] = {{"instructions", r->instructions}, {"cycles", r->cycles},
                   {"cache misses", r->cache_misses}, {"branch misses", r->branch_misses},
                   {"allocations", r->allocations},   {"allocated bytes", r->allocated_bytes}};
    pki_bench_rates(row, text, sizeof text);
    for (size_t i = 0; i < PKI_COUNT_OF(counted); i++)
        if (counted[i].value >= 0)
            add(text, sizeof text, "%.4g %s", counted[i].value, counted[i].name);
    for (unsigned i = 0; i < row->figure_count; i++)
        add(text, sizeof text, "%s %.5g", row->figures[i].name, row->figures[i].value);
    if (*text)
        put_indented(file, text);
    pki_bench_device_text(row, text, sizeof text);
    if (*text)
        put_indented(file, text);
}

/* Times of one's own, and a device's, have no loop of ours in them. */
static bool no_work(const pki_bench_row *row, double loop)
{
    bool in_loop = row->clock == PK_BENCH_CLOCK_WALL || row->clock == PK_BENCH_CLOCK_CPU;
    return row->result.median <= (in_loop ? PKI_BENCH_NO_WORK * loop : 0);
}

/* What a verdict other than steady means, and what else there is to know. */
static void put_remarks(const pki_bench_row *row, double loop, bool note, FILE *file)
{
    const pk_bench_result *r = &row->result;
    if (r->verdict != PK_BENCH_VERDICT_STEADY)
        put_indented(file, r->verdict_text);
    if (r->stopped == PK_BENCH_STOP_TIME || r->stopped == PK_BENCH_STOP_SAMPLES)
        put_indented(file, r->stopped == PK_BENCH_STOP_TIME
                               ? "stopped by the time limit, before it was as precise as wanted"
                               : "stopped by the limit of samples");
    if (!r->warmup_steady)
        put_indented(file, "warm-up was given up before it ran steadily");
    if (no_work(row, loop))
        put_indented(file, "hardly longer than the empty loop: was it optimised away? (pk_keep)");
    if (note && *r->note)
        put_indented(file, r->note);
}

static void put_picture(const pk_bench_result *r, pki_bench_picture picture, FILE *file)
{
    if (picture == PKI_BENCH_SPARKLINE && r->count) {
        fputs("    ", file);
        pki_bench_sparkline(r, PICTURE, file);
        fputc('\n', file);
    }
    if (picture == PKI_BENCH_HISTOGRAM && r->count)
        pki_bench_histogram(r, file);
}

static bool noted_before(const pki_bench_document *d, size_t at)
{
    return at > 0 && strcmp(d->rows[at].result.note, d->rows[at - 1].result.note) == 0;
}

static const char *name_of(const void *row)
{
    return ((const pki_bench_row *)row)->name;
}

static void put_row(const pki_bench_document *d, size_t at, size_t name, pki_bench_picture picture,
                    FILE *file)
{
    const pki_bench_row *row = &d->rows[at];
    const pk_bench_result *r = &row->result;
    char width[16];
    pki_column names = pki_column_near(d->rows, d->row_count, sizeof *d->rows, at, name_of);
    pki_put_apart(file, row->name, name, &names);
    if (!pki_bench_row_measured(row)) {
        fprintf(file, "  %s: ", pki_bench_outcome_name(r));
        pki_put_paragraph(file, r->reason, name + 11, 4);
        return;
    }
    snprintf(width, sizeof width, "%.1f %%", PKI_MIN(100 * pki_bench_half_width(r), 999));
    pki_put_cell(file, pki_bench_time(r->median).text, 9);
    pki_put_cell(file, width, 6);
    pki_put_cell(file, pki_bench_time(r->p99).text, 9);
    pki_put_cell(file, pki_bench_time(r->cpu).text, 9);
    snprintf(width, sizeof width, "%zu", (size_t)r->count);
    pki_put_cell(file, width, 7);
    fprintf(file, "  %s%s", pki_bench_outcome_name(r), *row->label ? "  " : "");
    pki_put_left(file, row->label, pki_width(row->label));
    fputc('\n', file);
    put_figures(row, file);
    put_remarks(row, d->overhead.loop, !noted_before(d, at), file);
    put_picture(r, picture, file);
}

static void put_aggregates(const pki_bench_row *rows, size_t count, size_t name, FILE *file)
{
    pki_bench_aggregate all[PKI_BENCH_AGGREGATES];
    size_t made = pki_bench_aggregates(rows, count, all);
    for (size_t i = 0; i < made; i++) {
        char title[64], share[32];
        bool is_share = strcmp(all[i].unit, "percentage") == 0;
        snprintf(title, sizeof title, "  %s of %zu repetitions", all[i].name, count);
        snprintf(share, sizeof share, "%.2f %%", 100 * all[i].real);
        pki_put_left(file, title, name);
        pki_put_cell(file, is_share ? share : pki_bench_time(all[i].real).text, 9);
        snprintf(share, sizeof share, "%.2f %%", 100 * all[i].cpu);
        pki_put_cell(file, "", 6);
        pki_put_cell(file, "", 9);
        pki_put_cell(file, is_share ? share : pki_bench_time(all[i].cpu).text, 9);
        fputc('\n', file);
    }
}

static void put_foot(const pki_bench_document *d, FILE *file)
{
    const pki_bench_overhead *o = &d->overhead;
    fprintf(
        file,
        "\nper iteration, without perfkit's part (a loop's %.2f ns when empty, %.2f beside work;"
        "\nthe clock's %.0f ns per sample). +- is half the confidence interval of the median: how"
        "\nwell this process run is known. To compare two builds: pk bench-ab.\n",
        o->loop, o->loop_beside, o->clock);
}

void pki_bench_text(const pki_bench_document *d, pki_bench_picture picture, FILE *file)
{
    size_t name = name_width(d);
    put_head(d, file);
    put_titles(name, file);
    for (size_t at = 0; at < d->row_count; at += pki_bench_group(d, at)) {
        size_t count = pki_bench_group(d, at);
        for (size_t i = 0; i < count; i++)
            put_row(d, at + i, name, picture, file);
        put_aggregates(&d->rows[at], count, name, file);
    }
    put_foot(d, file);
}
