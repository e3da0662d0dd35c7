/* tools/export/lines.c - tables as CSV and as one JSON object per line. */
#include "export/export.h"

#include "rows/cell_write.h"

void export_csv(FILE *to, rows *r, rows_table of)
{
    const rows_about *about = rows_about_table(of);
    for (size_t i = 0; i < about->count; i++)
        fprintf(to, "%s%s", i ? "," : "", about->columns[i].name);
    putc('\n', to);
    for (uint64_t row = 0; row < rows_count(r, of); row++)
        for (unsigned i = 0; i < about->count; i++) {
            cell c = rows_cell(r, of, row, i);
            cell_write_csv(to, &c);
            putc(i + 1 < about->count ? ',' : '\n', to);
        }
}

void export_ndjson(FILE *to, rows *r, rows_table of)
{
    const rows_about *about = rows_about_table(of);
    for (uint64_t row = 0; row < rows_count(r, of); row++) {
        pki_json json = {.file = to};
        pki_json_open(&json, NULL, '{');
        for (unsigned i = 0; i < about->count; i++) {
            cell c = rows_cell(r, of, row, i);
            cell_write_json(&json, about->columns[i].name, &c);
        }
        pki_json_close(&json, '}');
        putc('\n', to);
    }
}
