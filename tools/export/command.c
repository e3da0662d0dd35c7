/* tools/export/command.c - pk export */
#include "command.h"

#include "base/compiler.h"
#include "export/export.h"
#include "command_line.h"
#include "output.h"
#include "read/json_read.h"

#include <string.h>

typedef struct wish {
    const char *csv, *ndjson, *sqlite;
    rows_wish rows;
    operands files;
} wish;

/* ---- options ---- */

static bool take_table(wish *w, const char *name, size_t length)
{
    for (unsigned of = 0; of < ROWS_TABLES; of++) {
        const char *known = rows_about_table((rows_table)of)->name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            w->rows.columns[of] = ROWS_ALL;
            return true;
        }
    }
    complain("there is no table \"%.*s\" (pk query --schema lists them)", (int)length, name);
    return false;
}

static bool take_tables(void *to, const option_given *given)
{
    wish *w = to;
    const char *names = given->text;
    bool good = names && names[0];
    if (!good)
        complain("--tables takes names, with commas between them");
    memset(w->rows.columns, 0, sizeof w->rows.columns);
    while (good && *names) {
        size_t length = strcspn(names, ",");
        good = take_table(w, names, length);
        names += length + (names[length] == ',');
    }
    return good;
}

#define NEEDS "the name of what is to be written"

static const option all_options[] = {
    {"--csv", "DIR", "a file DIR/TABLE.csv for each table", OPTION_FOLDER, option_text,
     offsetof(wish, csv), .needs = NEEDS},
    {"--ndjson", "DIR", "a file DIR/TABLE.ndjson for each table: a JSON object per line",
     OPTION_FOLDER, option_text, offsetof(wish, ndjson), .needs = NEEDS},
    {"--sqlite", "FILE", "one SQLite database, for `pk query`, too", OPTION_FILE, option_text,
     offsetof(wish, sqlite), .needs = NEEDS},
    {"--tables", "NAMES", "these only, with commas between them (default: all)", OPTION_WORD,
     .take = take_tables},
};

static const option_table command_options = {
    .command = "export",
    .usage = "[OPTION ...] FILE ...",
    .about =
        "What runs did, as tables for other engines: those that `pk query --schema` shows.\n"
        "FILE is a trace of perfkit or any Chrome trace, .gz too, or a report in JSON; the rows\n"
        "of several are one table, with a column for the rank.",
    .notes =
        "docs/query.md has the statements by which DuckDB and ClickHouse read many ranks' files.\n"
        "Exit status: 0; 2 if a file cannot be read or written.",
    .all = all_options,
    .count = PKI_COUNT_OF(all_options),
    .files = "json gz",
    .who = "",
    .operands = offsetof(wish, files),
};

static bool makes_sense(const wish *w)
{
    complaint why = {""};
    if (!w->csv && !w->ndjson && !w->sqlite)
        complain("export needs --csv, --ndjson or --sqlite (pk export --help)");
    else if (!w->files.count)
        complain("export needs a file (pk export --help)");
    else if (w->sqlite && !output_check(w->sqlite, OUTPUT_FILE, &why))
        complain("export: %s", why.text);
    else
        return true;
    return false;
}

/* ---- */

static bool write_all(const wish *w, rows *r, complaint *why)
{
    return (!w->csv || export_folder(w->csv, "csv", export_csv, r, &w->rows, why)) &&
           (!w->ndjson || export_folder(w->ndjson, "ndjson", export_ndjson, r, &w->rows, why)) &&
           (!w->sqlite || export_sqlite(w->sqlite, r, &w->rows, why));
}

static int export(const wish *w)
{
    rows *r = rows_create(&w->rows);
    json_limit_memory(JSON_MEMORY_MOST);
    complaint why = {""};
    const char *bad = rows_add_files(r, w->files.all, w->files.count, &why);
    bool written = !bad && write_all(w, r, &why);
    rows_destroy(r);
    return written ? EXIT_OK : complain("%s: %s", bad ? bad : "export", why.text);
}

int command_export(int argc, char **argv)
{
    wish w = {.rows = {.lenient = true}};
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        w.rows.columns[of] = ROWS_ALL;
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    return makes_sense(&w) ? export(&w) : EXIT_UNUSABLE;
}
