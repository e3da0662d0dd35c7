/* tools/compare/forms.c - a comparison as text, JSON, Markdown and JUnit */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "bench/forms/document.h"
#include "compare/compare.h"
#include "measure/figure.h"
#include "out/columns.h"
#include "out/json_write.h"

/* ---- figures ---- */

/* For all of them, in words. */
typedef struct compare_string {
    char text[256];
} compare_string;

static compare_string compare_format_time(double ns)
{
    compare_string string = {"-"};
    if (ns > 0)
        snprintf(string.text, sizeof string.text, "%s", pki_figure_time(ns).text);
    return string;
}

static int put_ratio(char *out, size_t size, double ratio)
{
    if (isnan(ratio))
        return snprintf(out, size, "-");
    return snprintf(out, size, ratio < 10 ? "%.4f" : "%.4g", ratio);
}

static compare_string compare_format_ratio(const compare_row *row)
{
    compare_string string;
    put_ratio(string.text, sizeof string.text, row->decided ? row->decision.ratio : NAN);
    return string;
}

/* "0.9810 .. 1.0041" */
static compare_string compare_format_interval(const compare_row *row)
{
    const pki_interval *i = &row->decision.interval;
    compare_string string = {"-"};
    if (!row->decided || !isfinite(i->high))
        return string;
    int length = put_ratio(string.text, sizeof string.text, i->low);
    length += snprintf(string.text + length, sizeof string.text - (size_t)length, " .. ");
    put_ratio(string.text + length, sizeof string.text - (size_t)length, i->high);
    return string;
}

/* ---- verdicts ---- */

static const char *unit_of(const compare_row *row, bool several)
{
    if (row->evidence.method == PKI_BY_MOMENTS)
        return several ? "runs of each" : "run of each";
    return several ? "process runs" : "process run";
}

/* "cannot tell: 14 more process runs" */
static compare_string compare_format_verdict(const compare_row *row)
{
    compare_string string;
    const pki_decision *d = &row->decision;
    const char *name = pki_change_name(d->change);
    size_t size = sizeof string.text;
    if (!row->decided)
        snprintf(string.text, size, "not compared: %s", row->why);
    else if (d->change != PKI_UNSURE)
        snprintf(string.text, size, "%s", name);
    else if (row->why[0])
        snprintf(string.text, size, "%s: %s", name, row->why);
    else if (d->more == PKI_TOO_MANY)
        snprintf(string.text, size, "%s: too close to the margin", name);
    else if (d->more > 0)
        snprintf(string.text, size, "%s: %zu more %s", name, d->more, unit_of(row, d->more > 1));
    else if (row->evidence.method == PKI_BY_MOMENTS)
        snprintf(string.text, size, "%s: single runs", name);
    else
        snprintf(string.text, size, "%s: too few %s", name, unit_of(row, true));
    return string;
}

/* "1 slower, 2 same, 4 cannot tell" */
static compare_string compare_format_summary(const comparison *c)
{
    static const pki_change order[] = {PKI_SLOWER, PKI_FASTER, PKI_SAME, PKI_UNSURE};
    compare_string string = {""};
    size_t length = 0;
    for (size_t i = 0; i < PKI_COUNT_OF(order); i++)
        if (c->changes[order[i]])
            length += (size_t)snprintf(string.text + length, sizeof string.text - length,
                                       "%s%zu %s", length ? ", " : "", c->changes[order[i]],
                                       pki_change_name(order[i]));
    if (c->undecided)
        snprintf(string.text + length, sizeof string.text - length, "%s%zu not compared",
                 length ? ", " : "", c->undecided);
    return string;
}

/* ---- how it was decided ---- */

static size_t most_runs(const comparison *c)
{
    size_t most = 0;
    for (size_t i = 0; i < c->count; i++)
        most = PKI_MAX(most, c->rows[i].evidence.count);
    return most;
}

/* "20 pairs of process runs, ..." */
static compare_string compare_format_method(const comparison *c)
{
    compare_string string;
    size_t n = most_runs(c), size = sizeof string.text;
    if (c->way == COMPARE_ONE_PROCESS)
        snprintf(string.text, size, "%zu process runs of both builds in one process, signed ranks",
                 n);
    else if (c->way == COMPARE_PAIRS)
        snprintf(string.text, size, "%zu pairs of process runs in alternation, signed ranks", n);
    else if (n >= PKI_MOMENTS_DF + 1)
        snprintf(string.text, size, "one run against %zu stored ones, Student's t", n);
    else
        snprintf(string.text, size,
                 "runs at different moments, taken to move by up to %.3g %% by themselves",
                 100 * c->options.moments);
    return string;
}

/* ---- docs/internals/bench.md, "A comparison" ---- */

static const char *const ways[] = {"one-process", "pairs", "moments"};

/* 0 and infinity bound nothing. */
static void put_bound(pki_json *json, const char *key, double bound)
{
    pki_json_real(json, key, bound > 0 ? bound : NAN);
}

static void put_decision(pki_json *json, const pki_decision *d)
{
    pki_json_real(json, "ratio", d->ratio);
    put_bound(json, "low", d->interval.low);
    put_bound(json, "high", d->interval.high);
    pki_json_real(json, "level", d->level);
    pki_json_real(json, "p", d->p);
    pki_json_text(json, "verdict", pki_change_name(d->change));
    if (d->change == PKI_UNSURE && d->more > 0 && d->more < PKI_TOO_MANY)
        pki_json_uint(json, "more", d->more);
}

static void put_row(pki_json *json, const compare_row *row)
{
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "name", row->name);
    pki_json_real(json, "old", row->old_time);
    pki_json_real(json, "new", row->new_time);
    pki_json_uint(json, "old_launches", row->old_runs);
    pki_json_uint(json, "new_launches", row->new_runs);
    if (row->decided)
        put_decision(json, &row->decision);
    else
        pki_json_text(json, "verdict", "not compared");
    pki_json_text(json, "text", compare_format_verdict(row).text);
    pki_json_close(json, '}');
}

static void put_comparison(pki_json *json, const comparison *c)
{
    pki_json_row(json);
    pki_json_open(json, NULL, '{');
    pki_json_text(json, "old", c->old_path);
    pki_json_text(json, "new", c->new_path);
    pki_json_text(json, "method", ways[c->way]);
    pki_json_text(json, "summary", compare_format_summary(c).text);
    pki_json_open(json, "warnings", '[');
    for (size_t i = 0; i < c->warning_count; i++)
        pki_json_text(json, NULL, c->warnings[i]);
    pki_json_close(json, ']');
    pki_json_open(json, "benchmarks", '[');
    for (size_t i = 0; i < c->count; i++)
        put_row(json, &c->rows[i]);
    pki_json_close(json, ']');
    pki_json_close(json, '}');
}

void compare_json(const comparison *steps, size_t count, FILE *file)
{
    pki_json json = {.file = file, .rows = true};
    pki_json_open(&json, NULL, '{');
    pki_json_text(&json, "format", "perfkit comparison");
    pki_json_uint(&json, "schema", 1);
    pki_json_real(&json, "threshold", steps->options.threshold);
    pki_json_real(&json, "alpha", steps->options.alpha);
    pki_json_real(&json, "moments", steps->options.moments);
    pki_json_open(&json, "comparisons", '[');
    for (size_t i = 0; i < count; i++)
        put_comparison(&json, &steps[i]);
    pki_json_close(&json, ']');
    pki_json_close(&json, '}');
    fputc('\n', file);
}

/* ---- what CI services show as tests ---- */

/* Slower is a failure, what was not compared is skipped. */

static void put_attribute(FILE *file, const char *key, const char *value)
{
    fprintf(file, " %s=\"", key);
    pki_bench_put_xml(file, value);
    fputc('"', file);
}

static void put_case(FILE *file, const comparison *c, const compare_row *row)
{
    bool slower = row->decided && row->decision.change == PKI_SLOWER;
    char figures[1536];
    snprintf(figures, sizeof figures, "%s: %s -> %s, ratio %s, interval %s",
             compare_format_verdict(row).text, compare_format_time(row->old_time).text,
             compare_format_time(row->new_time).text, compare_format_ratio(row).text,
             compare_format_interval(row).text);
    fputs("    <testcase", file);
    put_attribute(file, "classname", c->new_path);
    put_attribute(file, "name", row->name);
    fputs(">\n      <", file);
    if (slower || !row->decided) {
        fputs(slower ? "failure" : "skipped", file);
        put_attribute(file, "message", figures);
        fputs("/>\n", file);
    } else {
        fputs("system-out>", file);
        pki_bench_put_xml(file, figures);
        fputs("</system-out>\n", file);
    }
    fputs("    </testcase>\n", file);
}

static void put_suite(FILE *file, const comparison *c)
{
    char name[600];
    snprintf(name, sizeof name, "%s -> %s", c->old_path, c->new_path);
    fputs("  <testsuite", file);
    put_attribute(file, "name", name);
    fprintf(file, " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n", c->count,
            c->changes[PKI_SLOWER], c->undecided);
    for (size_t i = 0; i < c->count; i++)
        put_case(file, c, &c->rows[i]);
    fputs("  </testsuite>\n", file);
}

void compare_junit(const comparison *steps, size_t count, FILE *file)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", file);
    for (size_t i = 0; i < count; i++)
        put_suite(file, &steps[i]);
    fputs("</testsuites>\n", file);
}

/* ---- for a pull request's comment ---- */

static void markdown_put_row(FILE *file, const compare_row *row)
{
    bool changed = row->decided && row->decision.change >= PKI_FASTER;
    fputs("| ", file);
    pki_bench_put_markdown(file, row->name);
    fprintf(file, " | %s | %s | %s | %s | %s", compare_format_time(row->old_time).text,
            compare_format_time(row->new_time).text, compare_format_ratio(row).text,
            compare_format_interval(row).text, changed ? "**" : "");
    pki_bench_put_markdown(file, compare_format_verdict(row).text);
    fputs(changed ? "** |\n" : " |\n", file);
}

static void put_one(FILE *file, const comparison *c)
{
    fputs("**", file);
    pki_bench_put_markdown(file, compare_format_summary(c).text);
    fputs("** (", file);
    pki_bench_put_markdown(file, c->old_path);
    fputs(" → ", file);
    pki_bench_put_markdown(file, c->new_path);
    fprintf(file, ")\n\n");
    for (size_t i = 0; i < c->warning_count; i++) {
        fputs("> ⚠ ", file);
        pki_bench_put_markdown(file, c->warnings[i]);
        fputs("\n\n", file);
    }
    fputs("| benchmark | old | new | ratio | interval | verdict |\n"
          "|---|--:|--:|--:|:-:|---|\n",
          file);
    for (size_t i = 0; i < c->count; i++)
        markdown_put_row(file, &c->rows[i]);
    fputs("\n", file);
    pki_bench_put_markdown(file, compare_format_method(c).text);
    fprintf(file, "; margin %.3g %%, alpha %.3g over all of them together (Holm)\n",
            100 * c->options.threshold, c->options.alpha);
}

void compare_markdown(const comparison *steps, size_t count, FILE *file)
{
    for (size_t i = 0; i < count; i++) {
        if (i)
            fputc('\n', file);
        put_one(file, &steps[i]);
    }
}

/* ---- text ---- */

#define NAME_MOST 44
#define FIGURE 10
#define INTERVAL 16

static size_t name_width(const comparison *c)
{
    size_t width = strlen("benchmark");
    for (size_t i = 0; i < c->count; i++)
        width = PKI_MAX(width, pki_width(c->rows[i].name));
    return PKI_MIN(width, NAME_MOST);
}

/* A name that is too long has a line of its own. */
static void put_name(FILE *file, const char *name, size_t width)
{
    if (pki_width(name) > width) {
        pki_put_left(file, name, pki_width(name));
        fputc('\n', file);
        name = "";
    }
    pki_put_left(file, name, width);
}

static void put_verdict(FILE *file, const compare_row *row)
{
    compare_string verdict = compare_format_verdict(row);
    fputs("  ", file);
    pki_put_left(file, verdict.text, pki_width(verdict.text));
    fputc('\n', file);
}

static void text_put_row(FILE *file, const compare_row *row, size_t width)
{
    put_name(file, row->name, width);
    pki_put_cell(file, compare_format_time(row->old_time).text, FIGURE);
    pki_put_cell(file, compare_format_time(row->new_time).text, FIGURE);
    pki_put_cell(file, compare_format_ratio(row).text, 6);
    pki_put_cell(file, compare_format_interval(row).text, INTERVAL);
    put_verdict(file, row);
}

static void put_warnings(FILE *file, const comparison *c)
{
    for (size_t i = 0; i < c->warning_count; i++) {
        fputs("warning: ", file);
        pki_put_paragraph(file, c->warnings[i], 9, 9);
    }
}

static bool has_single_runs(const comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const compare_row *row = &c->rows[i];
        if (row->decided && !row->why[0] && row->decision.change == PKI_UNSURE &&
            row->decision.more == 0 && row->evidence.method == PKI_BY_MOMENTS)
            return true;
    }
    return false;
}

static void put_advice(FILE *file, const comparison *c)
{
    if (!has_single_runs(c))
        return;
    pki_put_paragraph(file,
                      "single runs: stored at different moments, one of each build; nothing in them"
                      " says how far runs of one build lie apart on this machine. `pk bench-ab OLD"
                      " NEW` takes both builds in turn, and `pk compare --baseline DIR` learns the"
                      " spread from stored runs.",
                      0, 0);
}

static void put_files(FILE *file, const comparison *c)
{
    char line[600];
    snprintf(line, sizeof line, "%s -> %s", c->old_path, c->new_path);
    pki_put_paragraph(file, line, 0, 0);
    snprintf(line, sizeof line, "%s; margin %.3g %%, alpha %.3g over all of them together (Holm)",
             compare_format_method(c).text, 100 * c->options.threshold, c->options.alpha);
    pki_put_paragraph(file, line, 0, 0);
    put_warnings(file, c);
    fputc('\n', file);
}

static void text_put_one(FILE *file, const comparison *c)
{
    size_t width = name_width(c);
    put_files(file, c);
    pki_put_left(file, "benchmark", width);
    pki_put_cell(file, "old", FIGURE);
    pki_put_cell(file, "new", FIGURE);
    pki_put_cell(file, "ratio", 6);
    pki_put_cell(file, "interval", INTERVAL);
    fputs("  verdict\n", file);
    for (size_t i = 0; i < c->count; i++)
        text_put_row(file, &c->rows[i], width);
    fprintf(file, "\n%s\n", compare_format_summary(c).text);
    put_advice(file, c);
}

/* ---- a chain ---- */

static const compare_row *find_row(const comparison *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->rows[i].name, name) == 0)
            return &c->rows[i];
    return NULL;
}

static void put_change(FILE *file, const compare_row *row, size_t width)
{
    char text[300];
    if (row && row->decided)
        snprintf(text, sizeof text, "%s %s", compare_format_ratio(row).text,
                 pki_change_name(row->decision.change));
    else
        snprintf(text, sizeof text, "-");
    fputs("  ", file);
    pki_put_left(file, text, width ? width : pki_width(text));
}

static void put_step(FILE *file, size_t number, const char *path, double time, size_t width)
{
    fprintf(file, "  %4zu  ", number);
    pki_put_left(file, path, width);
    pki_put_cell(file, compare_format_time(time).text, FIGURE);
}

static size_t path_width(const comparison *steps, size_t count)
{
    size_t width = pki_width(steps[0].old_path);
    for (size_t i = 0; i < count; i++)
        width = PKI_MAX(width, pki_width(steps[i].new_path));
    return PKI_MIN(PKI_MAX(width, 4), 28);
}

/* steps[2 i] is step i + 2 against the one before, steps[2 i + 1] against the first. */
static void put_chain_of(FILE *file, const comparison *steps, size_t count, const char *name)
{
    size_t width = path_width(steps, count);
    const compare_row *row = find_row(&steps[0], name);
    pki_put_left(file, name, pki_width(name));
    fputs("\n  step  ", file);
    pki_put_left(file, "file", width);
    pki_put_cell(file, "time", FIGURE);
    fputs("  to the one before     to the first\n", file);
    put_step(file, 1, steps[0].old_path, row ? row->old_time : 0, width);
    fputc('\n', file);
    for (size_t i = 0; i + 1 < count; i += 2) {
        const compare_row *before = find_row(&steps[i], name);
        const compare_row *first = find_row(&steps[i + 1], name);
        put_step(file, i / 2 + 2, steps[i].new_path, before ? before->new_time : 0, width);
        put_change(file, before, 20);
        put_change(file, first, 0);
        fputc('\n', file);
    }
    fputc('\n', file);
}

static void put_chain(FILE *file, const comparison *steps, size_t count)
{
    const comparison *last = &steps[count - 2];
    fprintf(file, "%zu files; margin %.3g %%, alpha %.3g over each step's benchmarks (Holm)\n",
            count / 2 + 1, 100 * last->options.threshold, last->options.alpha);
    for (size_t i = 0; i < count; i++)
        put_warnings(file, &steps[i]);
    fputc('\n', file);
    for (size_t i = 0; i < last[1].count; i++)
        put_chain_of(file, steps, count, last[1].rows[i].name);
    fprintf(file, "last step: %s\n", compare_format_summary(last).text);
    fprintf(file, "all steps: %s\n", compare_format_summary(&last[1]).text);
    put_advice(file, &last[1]);
}

void compare_text(const comparison *steps, size_t count, FILE *file)
{
    if (count == 1)
        text_put_one(file, steps);
    else
        put_chain(file, steps, count);
}
