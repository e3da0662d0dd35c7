/* tools/export/export.c - `pk export`: rows in files that other engines read */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "command.h"
#include "export/export.h"
#include "files.h"
#include "memory.h"
#include "read/json.h"
#include "rows/rows.h"
#include "table.h"

/* ---- tables as CSV and as one JSON object per line ---- */

/* Without the column of this number; -1: with all. */
static void export_csv_head(FILE *to, rows_table of, int without)
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

static void export_csv_rows(FILE *to, rows *r, rows_table of, int without)
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

/* ---- a file for each table ---- */

#define BUFFER ((size_t)1 << 18)

typedef struct table_file {
    output file;
    char path[PATH_MAX];
} table_file;

typedef struct folder {
    const export_form *form;
    const char *path;
    bool made;
    table_file *files[ROWS_TABLES]; /* NULL: not wanted */
} folder;

/* False, and why, if there is none and none can be made. made: there was none; not
 * NULL. */
static bool export_make_folder(const char *path, bool *made, complaint *why)
{
    *made = mkdir(path, 0777) == 0;
    return *made || errno == EEXIST || complaint_set(why, "%s: %s", path, strerror(errno));
}

static bool write_rows(void *user, rows *r, complaint *why)
{
    folder *f = user;
    (void)why; /* a stream keeps its error until it is closed */
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        if (f->files[of])
            f->form->put(f->files[of]->file.to, r, (rows_table)of);
    return true;
}

static bool finish(void *user, bool whole, complaint *why)
{
    folder *f = user;
    for (unsigned of = 0; of < ROWS_TABLES; of++) {
        if (f->files[of])
            whole &= output_close(&f->files[of]->file, whole, why);
        free(f->files[of]);
    }
    if (f->made && !whole)
        rmdir(f->path); /* unless something has been put there */
    free(f);
    return whole;
}

static bool open_file(folder *f, const char *path, rows_table of, complaint *why)
{
    table_file *t = memory_zeroed(1, sizeof *t);
    const char *name = rows_about_table(of)->name;
    int length = snprintf(t->path, sizeof t->path, "%s/%s.%s", path, name, f->form->ending);
    bool fits =
        length < (int)sizeof t->path || complaint_set(why, "%s: %s", path, strerror(ENAMETOOLONG));
    if (!fits || !output_open(&t->file, t->path, OUTPUT_FILE, why)) {
        free(t);
        return false;
    }
    setvbuf(t->file.to, NULL, _IOFBF, BUFFER);
    f->form->head(t->file.to, of);
    f->files[of] = t;
    return true;
}

/* DIR/TABLE.ENDING for each table of the wish. False, and why; so are the others.
 */
static bool export_to_folder(export_sink *to, const char *path, const export_form *form,
                             const rows_wish *wish, complaint *why)
{
    folder *f = memory_zeroed(1, sizeof *f);
    bool good = export_make_folder(path, &f->made, why);
    f->form = form;
    f->path = path;
    for (unsigned of = 0; good && of < ROWS_TABLES; of++)
        if (wish->columns[of])
            good = open_file(f, path, (rows_table)of, why);
    *to = (export_sink){write_rows, finish, f};
    return good || finish(f, false, why);
}

/* ---- a folder for each rank ---- */

/* DIR/rank=N/TABLE.csv, which is how Hive named partitions, and what its heirs read.
 *
 * One file is open at a time, whatever the number of ranks. The rank is in the folder's name, so it
 * is no column: engines that find it in both take one or the other. What types the columns have
 * stands in a file of views for DuckDB beside the folders; with a guess from the first rows, a
 * column that is empty in them would be text. */

#define VIEWS "_duckdb.sql" /* readers of partitions pass over names with _ */

typedef struct partitions {
    const char *path;
    const rows_wish *wish;
    table written; /* folders of this run of the command */
    bool made;     /* the folder */
} partitions;

static int column_named(rows_table of, const char *name)
{
    const rows_about *about = rows_about_table(of);
    for (size_t i = 0; i < about->count; i++)
        if (strcmp(about->columns[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- a rank's folder ---- */

/* Of what has no rank: Hive's name for NULL. */
static void name_folder(rows *r, char name[64])
{
    cell rank = rows_cell(r, ROWS_FILES, 0, (unsigned)column_named(ROWS_FILES, "rank"));
    if (rank.type == CELL_INTEGER)
        snprintf(name, 64, "rank=%lld", (long long)rank.integer);
    else
        snprintf(name, 64, "rank=__HIVE_DEFAULT_PARTITION__");
}

static bool join(char to[PATH_MAX], const char *into, const char *name, const char *ending,
                 complaint *why)
{
    return snprintf(to, PATH_MAX, "%s/%s%s", into, name, ending) < PATH_MAX ||
           complaint_set(why, "%s: %s", into, strerror(ENAMETOOLONG));
}

/* Of a rank that has had a file before: its rows so far. */
static bool copy_rows(FILE *to, const char *path, complaint *why)
{
    char block[1 << 16];
    FILE *from = fopen(path, "rbe");
    for (size_t n; from && (n = fread(block, 1, sizeof block, from)) > 0;)
        fwrite(block, 1, n, to);
    bool read = from && !ferror(from);
    if (from)
        fclose(from);
    return read || complaint_set(why, "%s cannot be read again", path);
}

static bool write_table(const char *into, rows *r, rows_table of, bool again, complaint *why)
{
    char path[PATH_MAX];
    output file;
    int rank = column_named(of, "rank");
    if (!join(path, into, rows_about_table(of)->name, ".csv", why) ||
        !output_open(&file, path, OUTPUT_FILE, why))
        return false;
    bool good = !again || copy_rows(file.to, path, why);
    if (!again)
        export_csv_head(file.to, of, rank);
    if (good)
        export_csv_rows(file.to, r, of, rank);
    return output_close(&file, good, why);
}

static bool partition_write_rows(void *user, rows *r, complaint *why)
{
    partitions *p = user;
    char name[64], into[PATH_MAX];
    bool made;
    name_folder(r, name);
    if (!join(into, p->path, name, "", why) || !export_make_folder(into, &made, why))
        return false;
    bool again = table_find(&p->written, name) != TABLE_NONE, good = true;
    for (unsigned of = 0; good && of < ROWS_TABLES; of++)
        if (p->wish->columns[of])
            good = write_table(into, r, (rows_table)of, again, why);
    table_add(&p->written, name);
    return good;
}

/* ---- views ---- */

static void write_view(FILE *to, rows_table of)
{
    static const char *const types[] = {
        [CELL_INTEGER] = "BIGINT", [CELL_REAL] = "DOUBLE", [CELL_TEXT] = "VARCHAR"};
    const rows_about *about = rows_about_table(of);
    const char *between = "";
    fprintf(to, "CREATE OR REPLACE VIEW %s AS SELECT * FROM read_csv('rank=*/%s.csv',\n",
            about->name, about->name);
    fputs("  header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"',\n"
          "  hive_partitioning = true, hive_types = {'rank': 'BIGINT'}, columns = {\n  ",
          to);
    for (size_t i = 0; i < about->count; i++) {
        const rows_column *c = &about->columns[i];
        if (strcmp(c->name, "rank") == 0)
            continue;
        fprintf(to, "%s'%s': '%s'", between, c->name, types[rows_column_type(c)]);
        between = ", ";
    }
    fputs("});\n", to);
}

static bool write_views(const partitions *p, complaint *why)
{
    char path[PATH_MAX];
    output file;
    if (!join(path, p->path, VIEWS, "", why) || !output_open(&file, path, OUTPUT_FILE, why))
        return false;
    fputs("-- Views of all ranks for DuckDB, to be read in this folder (cd DIR; duckdb -init " VIEWS
          ")\n-- or after SET file_search_path = 'DIR'.\n",
          file.to);
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        if (p->wish->columns[of])
            write_view(file.to, (rows_table)of);
    return output_close(&file, true, why);
}

static bool partition_finish(void *user, bool whole, complaint *why)
{
    partitions *p = user;
    bool good = whole && write_views(p, why);
    if (p->made && !good)
        rmdir(p->path); /* unless something has been put there */
    table_finish(&p->written);
    free(p);
    return good;
}

/* DIR/rank=N/TABLE.csv. */
static bool export_to_partitions(export_sink *to, const char *path, const rows_wish *wish,
                                 complaint *why)
{
    partitions *p = memory_zeroed(1, sizeof *p);
    *p = (partitions){.path = path, .wish = wish};
    *to = (export_sink){partition_write_rows, partition_finish, p};
    return export_make_folder(path, &p->made, why) || partition_finish(p, false, why);
}

/* ---- pk export ---- */

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
    {"--csv", "DIR", "a file DIR/TABLE.csv for each table", PKI_OPTION_FOLDER, option_text,
     offsetof(wish, csv), .needs = NEEDS},
    {"--ndjson", "DIR", "a file DIR/TABLE.ndjson for each table: a JSON object per line",
     PKI_OPTION_FOLDER, option_text, offsetof(wish, ndjson), .needs = NEEDS},
    {"--partition", "DIR",
     "a file DIR/rank=N/TABLE.csv for each rank and table, for readers of partitioned data",
     PKI_OPTION_FOLDER, option_text, offsetof(wish, partition), .needs = NEEDS},
    {"--sqlite", "FILE", "one SQLite database, for `pk query`, too", PKI_OPTION_FILE, option_text,
     offsetof(wish, sqlite), .needs = NEEDS},
    {"--tables", "NAMES", "these only, with commas between them (default: all)", PKI_OPTION_WORD,
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
    .options = {all_options, PKI_COUNT_OF(all_options)},
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
