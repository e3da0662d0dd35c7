/* tools/export/command.c - pk export */
#include "arguments.h"
#include "command.h"

#include "export/export.h"
#include "output.h"
#include "read/json_read.h"

#include <stdlib.h>
#include <string.h>

#define JSON_MEMORY_MOST ((size_t)4 << 30)

typedef struct wish {
    bool help;
    const char *csv, *ndjson, *sqlite;
    rows_wish rows;
    const char **files;
    int file_count;
} wish;

static int print_help(void)
{
    printf(
        "usage: pk export [OPTION ...] FILE ...\n"
        "\n"
        "What runs did, as tables for other engines: those that `pk query --schema` shows.\n"
        "FILE is a trace of perfkit or any Chrome trace, .gz too, or a report in JSON; the rows\n"
        "of several are one table, with a column for the rank.\n"
        "\n"
        "  --csv DIR        a file DIR/TABLE.csv for each table\n"
        "  --ndjson DIR     a file DIR/TABLE.ndjson for each table: a JSON object per line\n"
        "  --sqlite FILE    one SQLite database, for `pk query`, too\n"
        "  --tables NAMES   these only, with commas between them (default: all)\n"
        "  --help, -h       this\n"
        "\n"
        "docs/query.md has the statements by which DuckDB and ClickHouse read many ranks' files.\n"
        "Exit status: 0; 2 if a file cannot be read or written.\n");
    return EXIT_OK;
}

/* ---- arguments ---- */

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

static bool take_tables(wish *w, const char *names)
{
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

static bool take_text(const char **to, const char *option, const char *text)
{
    if (!text || !text[0]) {
        complain("%s needs the name of what is to be written", option);
        return false;
    }
    *to = text;
    return true;
}

/* How many arguments it was; 0 after a complaint. */
static int take_option(wish *w, const char *option, const char *next)
{
    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
        return w->help = true;
    if (strcmp(option, "--csv") == 0)
        return take_text(&w->csv, option, next) ? 2 : 0;
    if (strcmp(option, "--ndjson") == 0)
        return take_text(&w->ndjson, option, next) ? 2 : 0;
    if (strcmp(option, "--sqlite") == 0)
        return take_text(&w->sqlite, option, next) ? 2 : 0;
    if (strcmp(option, "--tables") == 0)
        return take_tables(w, next) ? 2 : 0;
    if (strncmp(option, "--csv=", 6) == 0)
        return take_text(&w->csv, "--csv", option + 6);
    if (strncmp(option, "--ndjson=", 9) == 0)
        return take_text(&w->ndjson, "--ndjson", option + 9);
    if (strncmp(option, "--sqlite=", 9) == 0)
        return take_text(&w->sqlite, "--sqlite", option + 9);
    if (strncmp(option, "--tables=", 9) == 0)
        return take_tables(w, option + 9);
    complain("export has no option \"%s\" (pk export --help)", option);
    return 0;
}

static bool makes_sense(const wish *w)
{
    complaint why = {""};
    if (!w->csv && !w->ndjson && !w->sqlite)
        complain("export needs --csv, --ndjson or --sqlite (pk export --help)");
    else if (!w->file_count)
        complain("export needs a file (pk export --help)");
    else if (w->sqlite && !output_check(w->sqlite, OUTPUT_FILE, &why))
        complain("export: %s", why.text);
    else
        return true;
    return false;
}

static bool take_arguments(wish *w, int argc, char **argv)
{
    arguments all = arguments_of(argc, argv);
    for (argument one; !w->help && arguments_next(&all, &one);) {
        int taken = 1;
        if (one.is_option)
            taken = take_option(w, one.text, one.next);
        else
            w->files[w->file_count++] = one.text;
        if (taken <= 0)
            return false;
        arguments_took(&all, taken);
    }
    return w->help || makes_sense(w);
}

/* ---- */

static bool write_all(const wish *w, rows *r)
{
    complaint why = {""};
    bool written =
        (!w->csv || export_folder(w->csv, "csv", export_csv, r, &w->rows, &why)) &&
        (!w->ndjson || export_folder(w->ndjson, "ndjson", export_ndjson, r, &w->rows, &why)) &&
        (!w->sqlite || export_sqlite(w->sqlite, r, &w->rows, &why));
    if (!written)
        complain("export: %s", why.text);
    return written;
}

static bool read_all(const wish *w, rows *r)
{
    for (int i = 0; i < w->file_count; i++) {
        complaint why = {""};
        const char *path = strcmp(w->files[i], "-") == 0 ? "/dev/stdin" : w->files[i];
        if (!rows_add_file(r, path, true, &why)) {
            complain("%s: %s", w->files[i], why.text);
            return false;
        }
    }
    return true;
}

static int export(const wish *w)
{
    rows *r = rows_create(&w->rows);
    if (!r)
        return complain("out of memory");
    json_limit_memory(JSON_MEMORY_MOST);
    bool exported = read_all(w, r) && write_all(w, r);
    rows_destroy(r);
    return exported ? EXIT_OK : EXIT_UNUSABLE;
}

int command_export(int argc, char **argv)
{
    wish w = {.files = calloc((size_t)argc + 1, sizeof(char *)), .rows = {.lenient = true}};
    if (!w.files)
        return complain("out of memory");
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        w.rows.columns[of] = ROWS_ALL;
    int status = EXIT_UNUSABLE;
    if (take_arguments(&w, argc, argv))
        status = w.help ? print_help() : export(&w);
    free(w.files);
    return status;
}
