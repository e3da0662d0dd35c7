/* tools/export/command.c - pk export */
#include "command.h"

#include "base/compiler.h"
#include "export/export.h"
#include "command_line.h"
#include "files.h"
#include "read/json.h"

#include <string.h>

typedef struct wish {
    const char *csv, *ndjson, *partition, *sqlite;
    rows_wish rows;
    operands files;
} wish;

/* ---- options ---- */

static bool select_table(wish *w, const char *name, size_t length)
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

static bool parse_tables(void *to, const option_given *given)
{
    wish *w = to;
    const char *names = given->text;
    bool good = names && names[0];
    if (!good)
        complain("--tables takes names, with commas between them");
    memset(w->rows.columns, 0, sizeof w->rows.columns);
    while (good && *names) {
        size_t length = strcspn(names, ",");
        good = select_table(w, names, length);
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
    {"--partition", "DIR",
     "a file DIR/rank=N/TABLE.csv for each rank and table, for readers of partitioned data",
     OPTION_FOLDER, option_text, offsetof(wish, partition), .needs = NEEDS},
    {"--sqlite", "FILE", "one SQLite database, for `pk query`, too", OPTION_FILE, option_text,
     offsetof(wish, sqlite), .needs = NEEDS},
    {"--tables", "NAMES", "these only, with commas between them (default: all)", OPTION_WORD,
     .take = parse_tables},
};

static const option_table command_options = {
    .command = "export",
    .usage = "[OPTION ...] FILE ...",
    .about =
        "What runs did, as tables for other engines: those that `pk query --schema` shows.\n"
        "FILE is a trace of perfkit or any Chrome trace, .gz too, or a report in JSON; the rows\n"
        "of several are one table, with a column for the rank. Files are read one after the other:\n"
        "only one file's rows are ever in memory.",
    .notes = "docs/query.md has the statements by which DuckDB reads many ranks' files.\n"
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
    if (!w->csv && !w->ndjson && !w->partition && !w->sqlite)
        complain("export needs --csv, --ndjson, --partition or --sqlite (pk export --help)");
    else if (!w->files.count)
        complain("export needs a file (pk export --help)");
    else if (w->sqlite && !output_check(w->sqlite, OUTPUT_FILE, &why))
        complain("export: %s", why.text);
    else
        return true;
    return false;
}

/* ---- */

typedef struct sinks {
    export_sink all[4];
    size_t count;
} sinks;

static bool added(sinks *s, bool opened)
{
    s->count += opened;
    return opened;
}

/* False, and why; those that are open stay so. */
static bool open_sinks(sinks *s, const wish *w, complaint *why)
{
    export_sink *to = s->all;
    const rows_wish *wanted = &w->rows;
    if (w->csv && !added(s, export_to_folder(to, w->csv, &export_csv, wanted, why)))
        return false;
    to = &s->all[s->count];
    if (w->ndjson && !added(s, export_to_folder(to, w->ndjson, &export_ndjson, wanted, why)))
        return false;
    to = &s->all[s->count];
    if (w->partition && !added(s, export_to_partitions(to, w->partition, wanted, why)))
        return false;
    to = &s->all[s->count];
    return !w->sqlite || added(s, export_to_sqlite(to, w->sqlite, wanted, why));
}

/* One more file, to all of them. */
static bool write_file(sinks *s, rows *r, complaint *why)
{
    for (size_t i = 0; i < s->count; i++)
        if (!s->all[i].take(s->all[i].user, r, why))
            return false;
    return true;
}

static bool close_sinks(sinks *s, bool whole, complaint *why)
{
    for (size_t i = 0; i < s->count; i++)
        whole = s->all[i].close(s->all[i].user, whole, why) && whole;
    return whole;
}

static int export(const wish *w)
{
    sinks to = {.count = 0};
    complaint why = {""};
    const char *bad = NULL;
    json_limit_memory(JSON_MEMORY_MOST);
    bool good = open_sinks(&to, w, &why);
    rows *r = rows_create(&w->rows);
    for (size_t i = 0; good && !bad && i < w->files.count; i++) {
        rows_forget(r);
        bad = rows_add_files(r, &w->files.all[i], 1, &why);
        good = !bad && write_file(&to, r, &why);
    }
    rows_destroy(r);
    good = close_sinks(&to, good, &why);
    return good ? EXIT_OK : complain("%s: %s", bad ? bad : "export", why.text);
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
