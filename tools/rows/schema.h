/* tools/rows/schema.h - the tables and their columns: names, where they lie, and what stands in a
 * cell */
#pragma once

#include "out/json_write.h"
#include "rows/rows.h"

/* ---- a cell in a file: as CSV (RFC 4180), as JSON ---- */

/* Errors stick to the stream. NULL is nothing. */
void cell_write_csv(FILE *to, const cell *c);
void csv_write_text(FILE *to, const char *text);

/* NULL is written: readers take a file's columns from its first lines. */
void cell_write_json(pki_json *to, const char *key, const cell *c);
