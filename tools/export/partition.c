/* tools/export/partition.c - a folder for each rank: DIR/rank=N/TABLE.csv, which is how Hive named
 * partitions, and what its heirs read.
 *
 * One file is open at a time, whatever the number of ranks. The rank is in the folder's name, so it
 * is no column: engines that find it in both take one or the other. What types the columns have
 * stands in a file of views for DuckDB beside the folders; with a guess from the first rows, a
 * column that is empty in them would be text.
 */
#include "export/export.h"

#include "memory.h"
#include "files.h"
#include "table.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool join(char to[PATH_MAX], const char *folder, const char *name, const char *ending,
                 complaint *why)
{
    return snprintf(to, PATH_MAX, "%s/%s%s", folder, name, ending) < PATH_MAX ||
           complaint_set(why, "%s: %s", folder, strerror(ENAMETOOLONG));
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

static bool write_table(const char *folder, rows *r, rows_table of, bool again, complaint *why)
{
    char path[PATH_MAX];
    output file;
    int rank = column_named(of, "rank");
    if (!join(path, folder, rows_about_table(of)->name, ".csv", why) ||
        !output_open(&file, path, OUTPUT_FILE, why))
        return false;
    bool good = !again || copy_rows(file.to, path, why);
    if (!again)
        export_csv_head(file.to, of, rank);
    if (good)
        export_csv_rows(file.to, r, of, rank);
    return output_close(&file, good, why);
}

static bool write_rows(void *user, rows *r, complaint *why)
{
    partitions *p = user;
    char name[64], folder[PATH_MAX];
    bool made;
    name_folder(r, name);
    if (!join(folder, p->path, name, "", why) || !export_make_folder(folder, &made, why))
        return false;
    bool again = table_find(&p->written, name) != TABLE_NONE, good = true;
    for (unsigned of = 0; good && of < ROWS_TABLES; of++)
        if (p->wish->columns[of])
            good = write_table(folder, r, (rows_table)of, again, why);
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

static bool finish(void *user, bool whole, complaint *why)
{
    partitions *p = user;
    bool good = whole && write_views(p, why);
    if (p->made && !good)
        rmdir(p->path); /* unless something has been put there */
    table_finish(&p->written);
    free(p);
    return good;
}

bool export_to_partitions(export_sink *to, const char *path, const rows_wish *wish, complaint *why)
{
    partitions *p = memory_zeroed(1, sizeof *p);
    *p = (partitions){.path = path, .wish = wish};
    *to = (export_sink){write_rows, finish, p};
    return export_make_folder(path, &p->made, why) || finish(p, false, why);
}
