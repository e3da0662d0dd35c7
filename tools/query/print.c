/* tools/query/print.c - the rows of a statement in a form for people or for programs. */
#include "query/query.h"

#include "base/compiler.h"
#include "memory.h"
#include "out/columns.h"
#include "rows/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 1000     /* rows by which the widths of columns are found */
#define WIDTH_MOST 100 /* of a column that is not the last */

const char *const query_format_names[QUERY_FORMATS] = {"table", "csv", "ndjson", "json",
                                                       "markdown"};

typedef struct printing {
    sqlite3_stmt *from;
    int columns;
    char **cells; /* of a block, for tables */
    size_t *widths;
    bool *numbers;
    pki_json json;
} printing;

/* A real number that people look at: not more digits than they want, nor fewer than an integer has.
 */
static char *put_real(char out[48], double value)
{
    double size = fabs(value);
    if (size >= 1e5 && size < 1e15)
        snprintf(out, 48, "%.*f", value == floor(value) ? 0 : 1, value);
    else
        snprintf(out, 48, "%.6g", value);
    return out;
}

static char *text_of(sqlite3_stmt *from, int i)
{
    char real[48];
    if (sqlite3_column_type(from, i) == SQLITE_FLOAT)
        return memory_copy(put_real(real, sqlite3_column_double(from, i)));
    const char *text = (const char *)sqlite3_column_text(from, i);
    return memory_copy(text ? text : "");
}

static bool is_number(sqlite3_stmt *from, int i)
{
    int type = sqlite3_column_type(from, i);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* ---- tables ---- */

/* Columns of texts are aligned to the left; those that have begun with a number to the right. */
static void read_row(printing *p, size_t row)
{
    for (int i = 0; i < p->columns; i++) {
        char *text = p->cells[row * (size_t)p->columns + (size_t)i] = text_of(p->from, i);
        p->widths[i] = PKI_MAX(p->widths[i], pki_width(text));
        p->numbers[i] |= is_number(p->from, i);
    }
}

static void put_cell(const printing *p, int i, const char *text)
{
    size_t width = PKI_MIN(p->widths[i], (size_t)WIDTH_MOST);
    if (i > 0)
        fputs("  ", stdout);
    if (p->numbers[i])
        pki_put_right(stdout, text, width);
    else if (i + 1 < p->columns)
        pki_put_left(stdout, text, width);
    else
        pki_put_left(stdout, text, pki_width(text));
}

/* Of a row, or, NULL, the columns' names. */
static const char *cell_of(const printing *p, char **cells, int i)
{
    return cells ? cells[i] : sqlite3_column_name(p->from, i);
}

static void put_table_row(const printing *p, char **cells)
{
    for (int i = 0; i < p->columns; i++)
        put_cell(p, i, cell_of(p, cells, i));
    putchar('\n');
}

static void put_names(const printing *p)
{
    put_table_row(p, NULL);
    for (int i = 0; i < p->columns; i++) {
        size_t width = PKI_MIN(p->widths[i], (size_t)WIDTH_MOST);
        pki_put_times(stdout, ' ', i > 0 ? 2 : 0);
        pki_put_times(stdout, '-', width);
    }
    putchar('\n');
}

static void put_markdown_text(const char *text)
{
    for (; *text; text++)
        if (*text == '|')
            fputs("\\|", stdout);
        else
            putchar((unsigned char)*text < ' ' ? ' ' : *text);
}

static void put_markdown_row(const printing *p, char **cells)
{
    for (int i = 0; i < p->columns; i++) {
        fputs(i ? " | " : "| ", stdout);
        put_markdown_text(cell_of(p, cells, i));
    }
    puts(" |");
}

static void put_markdown_names(const printing *p)
{
    put_markdown_row(p, NULL);
    for (int i = 0; i < p->columns; i++)
        fputs(p->numbers[i] ? "|--:" : "|---", stdout);
    puts("|");
}

static void put_block(printing *p, size_t count, bool first, bool markdown)
{
    if (first)
        (markdown ? put_markdown_names : put_names)(p);
    for (size_t i = 0; i < count; i++) {
        char **cells = p->cells + i * (size_t)p->columns;
        (markdown ? put_markdown_row : put_table_row)(p, cells);
    }
    for (size_t i = 0; i < count * (size_t)p->columns; i++) {
        free(p->cells[i]);
        p->cells[i] = NULL;
    }
}

/* Block by block; the first one's widths are those of all. */
static int print_blocks(printing *p, bool markdown)
{
    bool first = true;
    int status;
    size_t count = 0;
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW) {
        read_row(p, count);
        if (++count == BLOCK) {
            put_block(p, count, first, markdown);
            first = false;
            count = 0;
        }
    }
    if (status == SQLITE_DONE)
        put_block(p, count, first, markdown);
    return status;
}

static int print_table(printing *p, bool markdown)
{
    size_t columns = (size_t)p->columns;
    p->cells = memory_zeroed(columns * BLOCK, sizeof *p->cells);
    p->widths = memory_zeroed(columns, sizeof *p->widths);
    p->numbers = memory_zeroed(columns, sizeof *p->numbers);
    for (size_t i = 0; i < columns; i++)
        p->widths[i] = pki_width(sqlite3_column_name(p->from, (int)i));
    int status = print_blocks(p, markdown);
    for (size_t i = 0; i < columns * BLOCK; i++)
        free(p->cells[i]);
    free(p->cells);
    free(p->widths);
    free(p->numbers);
    return status;
}

/* ---- for programs ---- */

static cell cell_at(sqlite3_stmt *from, int i)
{
    switch (sqlite3_column_type(from, i)) {
    case SQLITE_INTEGER:
        return (cell){.type = CELL_INTEGER, .integer = sqlite3_column_int64(from, i)};
    case SQLITE_FLOAT:
        return (cell){.type = CELL_REAL, .real = sqlite3_column_double(from, i)};
    case SQLITE_NULL:
        return (cell){.type = CELL_NULL};
    default: {
        const char *text = (const char *)sqlite3_column_text(from, i);
        return (cell){.type = CELL_TEXT, .text = text ? text : ""};
    }
    }
}

static int print_csv(printing *p)
{
    int status;
    for (int i = 0; i < p->columns; i++) {
        csv_write_text(stdout, sqlite3_column_name(p->from, i));
        putchar(i + 1 < p->columns ? ',' : '\n');
    }
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW)
        for (int i = 0; i < p->columns; i++) {
            cell c = cell_at(p->from, i);
            cell_write_csv(stdout, &c);
            putchar(i + 1 < p->columns ? ',' : '\n');
        }
    return status;
}

static void put_json_row(printing *p)
{
    pki_json_open(&p->json, NULL, '{');
    for (int i = 0; i < p->columns; i++) {
        cell c = cell_at(p->from, i);
        cell_write_json(&p->json, sqlite3_column_name(p->from, i), &c);
    }
    pki_json_close(&p->json, '}');
}

static int print_ndjson(printing *p)
{
    int status;
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW) {
        p->json = (pki_json){.file = stdout};
        put_json_row(p);
        putchar('\n');
    }
    return status;
}

static int print_json(printing *p)
{
    int status;
    p->json = (pki_json){.file = stdout, .rows = true};
    pki_json_open(&p->json, NULL, '[');
    while ((status = sqlite3_step(p->from)) == SQLITE_ROW) {
        pki_json_row(&p->json);
        put_json_row(p);
    }
    pki_json_close(&p->json, ']');
    putchar('\n');
    return status;
}

int query_print(sqlite3_stmt *statement, query_format format)
{
    printing p = {.from = statement, .columns = sqlite3_column_count(statement)};
    switch (format) {
    case QUERY_CSV:
        return print_csv(&p);
    case QUERY_NDJSON:
        return print_ndjson(&p);
    case QUERY_JSON:
        return print_json(&p);
    default:
        return print_table(&p, format == QUERY_MARKDOWN);
    }
}
