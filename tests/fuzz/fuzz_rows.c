/* Any bytes as a file of pk query: every cell of every table is made without harm, twice the same,
 * and calls nest. */
#include "read/json.h"
#include "read/scan.h"
#include "rows/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define JSON_MEMORY ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_one)
{
    if (!true_one)
        abort();
}

static bool same(const cell *a, const cell *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == CELL_TEXT)
        return strcmp(a->text, b->text) == 0;
    return a->type == CELL_NULL || (a->type == CELL_INTEGER && a->integer == b->integer) ||
           (a->type == CELL_REAL && memcmp(&a->real, &b->real, sizeof a->real) == 0);
}

/* From the last row to the first, and from the first to the last: what was remembered of one cell
 * must not show in the next. */
static void read_table(rows *r, rows_table of)
{
    const rows_about *about = rows_about_table(of);
    uint64_t count = rows_count(r, of);
    for (unsigned column = 0; column < about->count; column++)
        for (uint64_t i = 0; i < count; i++) {
            cell last = rows_cell(r, of, count - 1 - i, column);
            cell first = rows_cell(r, of, i, column);
            cell again = rows_cell(r, of, count - 1 - i, column);
            must(same(&last, &again));
            must(first.type == CELL_NULL ||
                 first.type == rows_column_type(&about->columns[column]));
        }
}

/* In order of each column: all rows once, and each found by its value. */
static void order_table(rows *r, rows_table of)
{
    for (unsigned column = 0; column < rows_about_table(of)->count; column++) {
        order o;
        order_by by = {.of = of, .count = 1, .columns = {(uint8_t)column}};
        must(order_make(&o, r, &by));
        for (size_t i = 0; i < o.count; i++) {
            size_t first, end;
            cell c = rows_cell(r, of, o.places[i], column);
            must(i == 0 || o.keys[o.places[i - 1]] <= o.keys[o.places[i]]);
            order_find(&o, r, &c, &first, &end);
            must(c.type == CELL_NULL || (first <= i && i < end));
        }
        order_finish(&o);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rows_wish wish = {.lenient = true};
    complaint why = {""};
    char path[64];
    int fd = memfd_create("fuzz", 0);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        wish.columns[of] = ROWS_ALL;
    json_limit_memory(JSON_MEMORY);
    scan_limit_memory(JSON_MEMORY);
    rows *r = rows_create(&wish);
    must(r != NULL);
    bool added = rows_add_file(r, path, false, &why);
    must(added == !why.text[0]); /* either rows or a reason */
    for (unsigned of = 0; added && of < ROWS_TABLES; of++) {
        read_table(r, (rows_table)of);
        order_table(r, (rows_table)of);
    }
    rows_destroy(r);
    close(fd);
    return 0;
}
