#include "bench/forms/document.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/text.h"
#include "bench/case.h"
#include "bench/stats/samples.h"
#include "out/columns.h"

/* ---- what a program of benchmarks has to say, and the forms in which it does ---- */

/* ---- rows ---- */

bool pki_bench_row_fill(pki_bench_row *row, pki_bench_case *c)
{
    row->clock = c->options.clock;
    row->cold = c->options.cold != 0;
    row->bytes = c->bytes;
    row->flops = c->flops;
    row->items = c->items;
    memcpy(row->label, c->label, sizeof row->label);
    row->arguments = c->arguments;
    for (unsigned i = 0; i < c->series_count; i++) {
        memcpy(row->figures[i].name, c->series[i].name, sizeof row->figures[i].name);
        row->figures[i].value = pki_bench_series_median(&c->series[i]);
    }
    row->figure_count = c->series_count;
    return pki_bench_result_fill(&row->result, c);
}

void pki_bench_row_finish(pki_bench_row *row)
{
    pk_bench_result_release(&row->result);
}

bool pki_bench_row_measured(const pki_bench_row *row)
{
    return row->result.outcome == PK_BENCH_OUTCOME_MEASURED;
}

/* "skipped", "failed", or the verdict's name. */
static const char *pki_bench_outcome_name(const pk_bench_result *r)
{
    switch (r->outcome) {
    case PK_BENCH_OUTCOME_SKIPPED:
        return "skipped";
    case PK_BENCH_OUTCOME_FAILED:
        return "failed";
    default:
        return pki_bench_verdict_name(r->verdict);
    }
}

size_t pki_bench_group(const pki_bench_document *document, size_t at)
{
    size_t end = at;
    while (end < document->row_count &&
           strcmp(document->rows[end].name, document->rows[at].name) == 0)
        end++;
    return end - at;
}

/* ---- aggregates ---- */

double pki_bench_aggregate_of(size_t which, double *values, size_t n)
{
    double mean = pki_samples_mean(values, n);
    switch (which) {
    case 0:
        return mean;
    case 1:
        return pki_samples_select_median(values, n);
    case 2:
        return pki_samples_stddev(values, n);
    default:
        return mean > 0 ? pki_samples_stddev(values, n) / mean : 0;
    }
}

static void aggregate(double *real, double *cpu, size_t n,
                      pki_bench_aggregate out[PKI_BENCH_AGGREGATES])
{
    static const char *const names[] = {"mean", "median", "stddev", "cv"};
    for (size_t i = 0; i < PKI_BENCH_AGGREGATES; i++)
        out[i] = (pki_bench_aggregate){names[i], i == 3 ? "percentage" : "time",
                                       pki_bench_aggregate_of(i, real, n),
                                       pki_bench_aggregate_of(i, cpu, n)};
}

size_t pki_bench_aggregates(const pki_bench_row *rows, size_t count,
                            pki_bench_aggregate out[PKI_BENCH_AGGREGATES])
{
    double real[PKI_BENCH_REPETITIONS_MOST], cpu[PKI_BENCH_REPETITIONS_MOST];
    size_t measured = 0;
    for (size_t i = 0; i < count && measured < PKI_BENCH_REPETITIONS_MOST; i++) {
        if (!pki_bench_row_measured(&rows[i]))
            continue;
        real[measured] = rows[i].result.median;
        cpu[measured++] = rows[i].result.cpu;
    }
    if (measured < 2)
        return 0;
    aggregate(real, cpu, measured, out);
    return PKI_BENCH_AGGREGATES;
}

/* ---- words ---- */

static const struct {
    const char *name;
    double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/* The unit that suits a benchmark's median: its name and its length in ns. */
static const char *pki_bench_unit_of(double ns, double *length)
{
    size_t i = 0;
    while (i + 1 < PKI_COUNT_OF(units) && ns >= 1000 * units[i].ns)
        i++;
    *length = units[i].ns;
    return units[i].name;
}

/* Decimals that make four digits, and no fifth by rounding up. */
static int decimals_of(double value)
{
    return value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
}

pki_bench_words pki_bench_time(double ns)
{
    pki_bench_words words;
    double length;
    const char *unit = pki_bench_unit_of(ns, &length);
    if (isfinite(ns))
        snprintf(words.text, sizeof words.text, "%.*f %s", decimals_of(ns / length), ns / length,
                 unit);
    else
        snprintf(words.text, sizeof words.text, "-");
    return words;
}

static void add_rate(char *text, size_t size, double rate, const char *unit)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t used = strlen(text), i = 0;
    if (!(rate > 0))
        return;
    while (i + 1 < PKI_COUNT_OF(prefixes) && rate >= 1000) {
        rate /= 1000;
        i++;
    }
    snprintf(text + used, size - used, "%s%.*f %s%s", used ? ", " : "", decimals_of(rate), rate,
             prefixes[i], unit);
}

/* "1.234 GB/s, 2.000 Gitem/s": the rates; "" if there are none. */
static void pki_bench_rates(const pki_bench_row *row, char *text, size_t size)
{
    text[0] = 0;
    add_rate(text, size, row->result.bytes_per_second, "B/s");
    add_rate(text, size, row->result.flops_per_second, "FLOP/s");
    add_rate(text, size, row->result.items_per_second, "items/s");
}

/* Half the interval over the median. */
static double pki_bench_half_width(const pk_bench_result *r)
{
    return r->median > 0 ? (r->high - r->low) / 2 / r->median : 0;
}

/* ---- text that may hold any bytes, where some of them would mean something else ---- */

/* The next character of a text, as valid UTF-8: what is not becomes U+FFFD, control characters a
 * blank. The bytes it took; *length of those at *out. */
static size_t pki_bench_character(const char *text, const char **out, size_t *length)
{
    size_t n = pki_utf8_length(text, strnlen(text, 4));
    bool control = (unsigned char)*text < 0x20 || *text == 0x7f;
    *out = n == 0 ? "\xEF\xBF\xBD" : control ? " " : text;
    *length = n == 0 ? 3 : control ? 1 : n;
    return n ? n : 1;
}

static const char *entity_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void pki_bench_put_xml(FILE *file, const char *text)
{
    while (*text) {
        const char *one, *entity;
        size_t length;
        text += pki_bench_character(text, &one, &length);
        if ((entity = entity_of(*one)))
            fputs(entity, file);
        else
            fwrite(one, 1, length, file);
    }
}

void pki_bench_put_markdown(FILE *file, const char *text)
{
    while (*text) {
        const char *one;
        size_t length;
        text += pki_bench_character(text, &one, &length);
        if (strchr("\\|`*_<>[]&#~", *one))
            fputc('\\', file);
        fwrite(one, 1, length, file);
    }
}

/* ---- One line per row; RFC 4180 ---- */

static void put_field(FILE *file, const char *text)
{
    fputc('"', file);
    while (*text) {
        const char *one;
        size_t length;
        text += pki_bench_character(text, &one, &length);
        if (*one == '"')
            fputc('"', file);
        fwrite(one, 1, length, file);
    }
    fputc('"', file);
}

static void put_real(FILE *file, double value, bool known)
{
    fputc(',', file);
    if (known)
        fprintf(file, "%.9g", value);
}

static void put_device(FILE *file, const pki_bench_row *row, bool known)
{
    const pk_bench_result *r = &row->result;
    put_real(file, r->launch, known);
    fprintf(file, ",%s", known ? pki_bench_bound_name(r->bound) : "");
    put_real(file, r->queued, known);
    put_real(file, row->cold, known);
    put_real(file, (double)r->throttled, known);
    put_real(file, r->clock_low_mhz, known && r->clock_high_mhz);
    put_real(file, r->clock_high_mhz, known && r->clock_high_mhz);
}

static void put_row(FILE *file, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    bool measured = pki_bench_row_measured(row);
    const double times[] = {r->median, r->low, r->high, r->mean, r->stddev, r->mad,
                            r->min,    r->p90, r->p95,  r->p99,  r->max,    r->cpu};
    put_field(file, row->name);
    fprintf(file, ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64, row->repetition, r->threads,
            r->count, r->iterations);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        put_real(file, times[i], measured);
    put_real(file, r->bytes_per_second, r->bytes_per_second > 0);
    put_real(file, r->flops_per_second, r->flops_per_second > 0);
    put_real(file, r->items_per_second, r->items_per_second > 0);
    put_real(file, r->instructions, measured && r->instructions >= 0);
    put_real(file, r->cycles, measured && r->cycles >= 0);
    put_real(file, r->cache_misses, measured && r->cache_misses >= 0);
    put_real(file, r->branch_misses, measured && r->branch_misses >= 0);
    put_real(file, r->allocations, measured && r->allocations >= 0);
    fprintf(file, ",%s,", pki_bench_outcome_name(r));
    put_field(file, row->label);
    fputc(',', file);
    put_field(file, r->reason);
    put_device(file, row, measured && row->clock == PK_BENCH_CLOCK_GPU);
    fputs("\r\n", file);
}

void pki_bench_csv(const pki_bench_document *d, FILE *file)
{
    fputs("name,repetition,threads,samples,iterations,median_ns,low_ns,high_ns,mean_ns,stddev_ns,"
          "mad_ns,min_ns,p90_ns,p95_ns,p99_ns,max_ns,cpu_ns,bytes_per_second,flops_per_second,"
          "items_per_second,instructions,cycles,cache_misses,branch_misses,allocations,verdict,"
          "label,reason,launch_ns,bound,queued,cold,throttled,clock_low_mhz,clock_high_mhz\r\n",
          file);
    for (size_t i = 0; i < d->row_count; i++)
        put_row(file, &d->rows[i]);
}

/* ---- What is said of a benchmark on a device beside its time ---- */

const char *pki_bench_bound_name(uint32_t bound)
{
    return bound == PK_BENCH_BOUND_DEVICE   ? "device"
           : bound == PK_BENCH_BOUND_LAUNCH ? "launch"
                                            : "unknown";
}

static const char *bound_text(const pk_bench_result *r)
{
    switch (r->bound) {
    case PK_BENCH_BOUND_DEVICE:
        return "bound by the device";
    case PK_BENCH_BOUND_LAUNCH:
        return r->queued ? "launch-bound if not queued" : "launch-bound";
    default:
        return "what binds it is not known";
    }
}

static void pki_bench_device_text(const pki_bench_row *row, char *text, size_t size)
{
    const pk_bench_result *r = &row->result;
    text[0] = 0;
    if (row->clock != PK_BENCH_CLOCK_GPU || !pki_bench_row_measured(row))
        return;
    int used = snprintf(text, size, "%s, %s: launching takes %s, %s",
                        row->cold ? "L2 flushed" : "L2 hot", r->queued ? "queued" : "not queued",
                        pki_bench_time(r->launch).text, bound_text(r));
    if (r->clock_high_mhz && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used,
                 r->clock_low_mhz < r->clock_high_mhz ? "; %u to %u MHz" : "; %u MHz",
                 r->clock_low_mhz, r->clock_high_mhz);
}

/* ---- JUnit's XML, as CI systems read it ---- */

/* A benchmark is a test case, its time the median of one iteration in seconds. */

/* sum/n:1024 is case "sum/n:1024" of class "sum". */
static void put_case(FILE *file, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    char family[256], device[192];
    snprintf(family, sizeof family, "%.*s", (int)strcspn(row->name, "/"), row->name);
    fputs("  <testcase classname=\"", file);
    pki_bench_put_xml(file, family);
    fputs("\" name=\"", file);
    pki_bench_put_xml(file, row->name);
    fprintf(file, "\" time=\"%.12f\"", r->median / 1e9);
    if (pki_bench_row_measured(row)) {
        fputs(">\n    <system-out>", file);
        pki_bench_put_xml(file, r->verdict_text);
        pki_bench_device_text(row, device, sizeof device);
        fprintf(file, "; median %s%s%s", pki_bench_time(r->median).text, *device ? "; " : "",
                device);
        fputs("</system-out>\n  </testcase>\n", file);
        return;
    }
    fprintf(file, ">\n    <%s message=\"",
            r->outcome == PK_BENCH_OUTCOME_FAILED ? "failure" : "skipped");
    pki_bench_put_xml(file, r->reason);
    fputs("\"/>\n  </testcase>\n", file);
}

void pki_bench_junit(const pki_bench_document *d, FILE *file)
{
    size_t failed = 0, skipped = 0;
    for (size_t i = 0; i < d->row_count; i++) {
        failed += d->rows[i].result.outcome == PK_BENCH_OUTCOME_FAILED;
        skipped += d->rows[i].result.outcome == PK_BENCH_OUTCOME_SKIPPED;
    }
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"", file);
    pki_bench_put_xml(file, d->executable);
    fprintf(file, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" time=\"%.3f\">\n",
            d->row_count, failed, skipped, (double)d->elapsed / 1e9);
    for (size_t i = 0; i < d->row_count; i++)
        put_case(file, &d->rows[i]);
    fputs("</testsuite>\n", file);
}

/* ---- For a pull request's comment: GitHub's tables ---- */

/* As code, so that no character means anything but itself; a bar would still end the cell. */
static void put_name(FILE *file, const char *name)
{
    fputc('`', file);
    while (*name) {
        const char *one;
        size_t length;
        name += pki_bench_character(name, &one, &length);
        if (*one == '|')
            fputc('\\', file);
        fwrite(*one == '`' ? "'" : one, 1, length, file);
    }
    fputc('`', file);
}

static void markdown_put_row(FILE *file, const pki_bench_row *row)
{
    const pk_bench_result *r = &row->result;
    char rates[128], device[192];
    fputs("| ", file);
    put_name(file, row->name);
    if (!pki_bench_row_measured(row)) {
        fprintf(file, " | %s | | | | | ", pki_bench_outcome_name(r));
        pki_bench_put_markdown(file, r->reason);
        fputs(" |\n", file);
        return;
    }
    pki_bench_rates(row, rates, sizeof rates);
    fprintf(file, " | %s | ± %.1f %% | %s | %s | %zu | ", pki_bench_time(r->median).text,
            100 * pki_bench_half_width(r), pki_bench_time(r->p99).text, pki_bench_time(r->cpu).text,
            (size_t)r->count);
    pki_bench_put_markdown(file, r->verdict_text);
    pki_bench_device_text(row, device, sizeof device);
    fprintf(file, "%s%s%s%s%s", *device ? "; " : "", device, *rates ? "; " : "", rates,
            *row->label ? "; " : "");
    pki_bench_put_markdown(file, row->label);
    fputs(" |\n", file);
}

void pki_bench_markdown(const pki_bench_document *d, FILE *file)
{
    const pki_bench_environment *e = d->environment;
    fputs("| benchmark | median | | p99 | CPU | samples | |\n"
          "|---|--:|--:|--:|--:|--:|---|\n",
          file);
    for (size_t i = 0; i < d->row_count; i++)
        markdown_put_row(file, &d->rows[i]);
    fputs("\n<sub>", file);
    pki_bench_put_markdown(file, *e->cpu ? e->cpu : e->architecture);
    fprintf(file, ", %u processors, ", e->cpus_online);
    pki_bench_put_markdown(file, e->kernel);
    fprintf(
        file,
        ", perfkit %s. ± is half the confidence interval of the median within this process run.",
        d->version);
    for (size_t i = 0; i < d->warning_count; i++) {
        fputs(i ? "; " : " Mind: ", file);
        pki_bench_put_markdown(file, d->warnings[i].text);
    }
    fputs("</sub>\n", file);
}

/* ---- Samples as pictures of characters ---- */

#define BARS 16
#define BAR_WIDTH 40

static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

#define SPREADS 6

/* Around the median: a spike would flatten all else. */
static void range_of(const pk_bench_result *r, double *low, double *high)
{
    double most = SPREADS * PKI_MAX(r->mad, r->median / 1000);
    *low = PKI_MAX(r->min, r->median - most);
    *high = PKI_MIN(r->max, r->median + most);
    if (!(*high > *low))
        *high = *low + 1;
}

static size_t step_of(double value, double low, double high, size_t steps)
{
    double at = (value - low) / (high - low) * (double)steps;
    return at < 0 ? 0 : at >= (double)steps ? steps - 1 : (size_t)at;
}

/* Samples as a line of `width` columns of eight heights. */
static void pki_bench_sparkline(const pk_bench_result *r, size_t width, FILE *file)
{
    double low, high;
    size_t columns = PKI_MIN(width, (size_t)r->count);
    double *scratch = malloc((r->count / (columns ? columns : 1) + 2) * sizeof *scratch);
    range_of(r, &low, &high);
    for (size_t i = 0; scratch && i < columns; i++) {
        size_t from = i * r->count / columns, to = (i + 1) * r->count / columns;
        memcpy(scratch, r->samples + from, (to - from) * sizeof *scratch);
        double median = pki_samples_select_median(scratch, to - from);
        fputs(heights[step_of(median, low, high, PKI_COUNT_OF(heights))], file);
    }
    free(scratch);
    fprintf(file, "  %s", pki_bench_time(low).text);
    fprintf(file, " .. %s", pki_bench_time(high).text);
}

static void pki_bench_histogram(const pk_bench_result *r, FILE *file)
{
    size_t bars[BARS] = {0}, most = 0, beyond = 0;
    double low, high;
    range_of(r, &low, &high);
    for (size_t i = 0; i < r->count; i++) {
        if (r->samples[i] > high)
            beyond++;
        else
            bars[step_of(r->samples[i], low, high, BARS)]++;
    }
    for (size_t i = 0; i < BARS; i++)
        most = PKI_MAX(most, bars[i]);
    for (size_t i = 0; i < BARS; i++) {
        fputs("    ", file);
        pki_put_right(file, pki_bench_time(low + (high - low) * (double)i / BARS).text, 9);
        fprintf(file, " %6zu%s", bars[i], bars[i] ? " " : "");
        pki_put_times(file, '#', most ? (bars[i] * BAR_WIDTH + most - 1) / most : 0);
        fputc('\n', file);
    }
    if (beyond)
        fprintf(file, "    %9s %6zu  up to %s\n", "beyond", beyond, pki_bench_time(r->max).text);
}

/* ---- The table for people ---- */

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

static void text_put_row(const pki_bench_document *d, size_t at, size_t name,
                         pki_bench_picture picture, FILE *file)
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
            text_put_row(d, at + i, name, picture, file);
        put_aggregates(&d->rows[at], count, name, file);
    }
    put_foot(d, file);
}
