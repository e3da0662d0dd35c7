#include "bench/compare/compare.h"

#include "base/compiler.h"
#include "out/columns.h"

#include <string.h>

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

static void put_row(FILE *file, const compare_row *row, size_t width)
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

static void put_one(FILE *file, const comparison *c)
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
        put_row(file, &c->rows[i], width);
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
        put_one(file, steps);
    else
        put_chain(file, steps, count);
}
