#include "measure/figure.h"
#include "out/columns.h"
#include "out/report/sections.h"

#define COLUMNS 64
#define ROWS 5
#define ENTRIES_LEAST 16 /* fewer are clearer as figures */

/* So many steps side by side, as one column of the chart. */
typedef struct column {
    double mean, longest;
} column;

static column sum_up(const pki_series_row *rows, size_t count)
{
    column c = {0};
    double duration = 0, steps = 0;
    for (size_t i = 0; i < count; i++) {
        duration += (double)rows[i].duration;
        steps += (double)rows[i].steps;
        c.longest = PKI_MAX(c.longest, (double)rows[i].longest);
    }
    c.mean = steps > 0 ? duration / steps : 0;
    return c;
}

/* Entries that hold warm-up steps are left out whole. */
static size_t first_steady(const pki_step_summary *steps)
{
    uint64_t passed = 0;
    size_t first = 0;
    while (first < steps->series_count && passed < steps->warmup)
        passed += steps->series[first++].steps;
    return first;
}

static void put_row(const column *columns, size_t count, double floor, double row, FILE *file)
{
    fputc('|', file);
    char line[COLUMNS + 1];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        /* The middle of the row is what a mark has to reach. */
        double level = floor + row / 2;
        line[i] = columns[i].mean >= level ? '#' : columns[i].longest >= level ? '.' : ' ';
        if (line[i] != ' ')
            length = i + 1;
    }
    fwrite(line, 1, length, file);
    fputc('\n', file);
}

static void put_chart(const column *columns, size_t count, double top, FILE *file)
{
    for (int i = ROWS - 1; i >= 0; i--) {
        fputs("  ", file);
        pki_put_right(file, i == ROWS - 1 ? pki_figure_time(top).text : "", 10);
        fputc(' ', file);
        put_row(columns, count, top * i / ROWS, top / ROWS, file);
    }
    fputs("           0 +", file);
    pki_put_times(file, '-', count);
    fputc('\n', file);
}

void pki_report_chart(const pki_step_summary *steps, FILE *file)
{
    size_t first = first_steady(steps), entries = steps->series_count - first;
    if (entries < ENTRIES_LEAST)
        return;
    column columns[COLUMNS];
    size_t count = PKI_MIN(entries, COLUMNS);
    double top = 0;
    for (size_t i = 0; i < count; i++) {
        size_t from = first + i * entries / count, to = first + (i + 1) * entries / count;
        columns[i] = sum_up(&steps->series[from], to - from);
        top = PKI_MAX(top, columns[i].longest);
    }
    if (!(top > 0))
        return;
    fputs("\n  step time over the run (# mean, . longest)\n", file);
    put_chart(columns, count, top, file);
}
