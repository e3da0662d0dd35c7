/* tools/export/sqlite.c - all tables in one database. */
#include "export/export.h"

#include "output.h"

#include <sqlite3.h>
#include <stdio.h>

static bool fail(sqlite3 *db, complaint *why)
{
    return complaint_set(why, "%s", db ? sqlite3_errmsg(db) : "out of memory");
}

static bool run(sqlite3 *db, const char *sql, complaint *why)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || fail(db, why);
}

/* "INSERT INTO calls VALUES(?, ...)" */
static void write_insert(rows_table of, char insert[512])
{
    const rows_about *about = rows_about_table(of);
    size_t used = (size_t)snprintf(insert, 512, "INSERT INTO %s VALUES(", about->name);
    for (size_t i = 0; i < about->count; i++)
        used +=
            (size_t)snprintf(insert + used, 512 - used, "?%s", i + 1 < about->count ? ", " : ")");
}

static void bind(sqlite3_stmt *to, int at, const cell *c)
{
    if (c->type == CELL_INTEGER)
        sqlite3_bind_int64(to, at, c->integer);
    else if (c->type == CELL_REAL)
        sqlite3_bind_double(to, at, c->real);
    else if (c->type == CELL_TEXT)
        sqlite3_bind_text(to, at, c->text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(to, at);
}

static bool insert_rows(sqlite3_stmt *to, rows *r, rows_table of)
{
    size_t columns = rows_about_table(of)->count;
    for (uint64_t row = 0; row < rows_count(r, of); row++) {
        for (unsigned i = 0; i < columns; i++) {
            cell c = rows_cell(r, of, row, i);
            bind(to, (int)i + 1, &c);
        }
        if (sqlite3_step(to) != SQLITE_DONE)
            return false;
        sqlite3_reset(to);
    }
    return true;
}

static bool write_table(sqlite3 *db, rows *r, rows_table of, complaint *why)
{
    char create[ROWS_SQL], insert[512];
    sqlite3_stmt *to = NULL;
    rows_write_sql(of, rows_about_table(of)->name, create);
    write_insert(of, insert);
    bool written = run(db, create, why) &&
                   (sqlite3_prepare_v2(db, insert, -1, &to, NULL) == SQLITE_OK || fail(db, why)) &&
                   (insert_rows(to, r, of) || fail(db, why));
    sqlite3_finalize(to);
    return written;
}

/* If it fails the file goes, so nothing needs to be undone, nor flushed in the meantime. */
static bool write_database(const char *path, rows *r, const rows_wish *wish, complaint *why)
{
    sqlite3 *db = NULL;
    bool written = (sqlite3_open(path, &db) == SQLITE_OK || fail(db, why)) &&
                   run(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", why);
    for (unsigned of = 0; written && of < ROWS_TABLES; of++)
        if (wish->columns[of])
            written = write_table(db, r, (rows_table)of, why);
    written = written && run(db, "COMMIT", why);
    return (sqlite3_close(db) == SQLITE_OK || fail(db, why)) && written;
}

bool export_sqlite(const char *path, rows *r, const rows_wish *wish, complaint *why)
{
    output file;
    return output_open(&file, path, OUTPUT_FILE, why) &&
           output_close(&file, write_database(file.temporary, r, wish, why), why);
}
