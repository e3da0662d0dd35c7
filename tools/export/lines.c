/* tools/export/lines.c - tables as CSV and as one JSON object per line. */
#include "export/export.h"

#include "rows/schema.h"

void export_csv_head(FILE *to, rows_table of, int without)
{
    const rows_about *about = rows_about_table(of);
    const char *between = "";
    for (size_t i = 0; i < about->count; i++) {
        if ((int)i == without)
            continue;
        fprintf(to, "%s%s", between, about->columns[i].name);
        between = ",";
    }
    putc('\n', to);
}

void export_csv_rows(FILE *to, rows *r, rows_table of, int without)
{
    const rows_about *about = rows_about_table(of);
    for (uint64_t row = 0; row < rows_count(r, of); row++) {
        bool first = true;
        for (unsigned i = 0; i < about->count; i++) {
            if ((int)i == without)
                continue;
            cell c = rows_cell(r, of, row, i);
            if (!first)
                putc(',', to);
            first = false;
            cell_write_csv(to, &c);
        }
        putc('\n', to);
    }
}

static void csv_head(FILE *to, rows_table of)
{
    export_csv_head(to, of, -1);
}

static void csv_rows(FILE *to, rows *r, rows_table of)
{
    export_csv_rows(to, r, of, -1);
}

const export_form export_csv = {"csv", csv_head, csv_rows};

static void ndjson_head(FILE *to, rows_table of)
{
    (void)to;
    (void)of;
}

static void ndjson_rows(FILE *to, rows *r, rows_table of)
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

const export_form export_ndjson = {"ndjson", ndjson_head, ndjson_rows};
