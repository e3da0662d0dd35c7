/* tools/export/sqlite.c - all tables in one database. */
#include "export/export.h"

#include "memory.h"
#include "files.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

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

typedef struct database {
    output file;
    const rows_wish *wish;
    sqlite3 *db;
    sqlite3_stmt *inserts[ROWS_TABLES]; /* NULL: not wanted */
} database;

static bool write_rows(void *user, rows *r, complaint *why)
{
    database *d = user;
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        if (d->inserts[of] && !insert_rows(d->inserts[of], r, (rows_table)of))
            return fail(d->db, why);
    return true;
}

static bool finish(void *user, bool whole, complaint *why)
{
    database *d = user;
    for (unsigned of = 0; of < ROWS_TABLES; of++)
        sqlite3_finalize(d->inserts[of]);
    whole = whole && run(d->db, "COMMIT", why);
    whole = (sqlite3_close(d->db) == SQLITE_OK || fail(d->db, why)) && whole;
    whole = output_close(&d->file, whole, why);
    free(d);
    return whole;
}

static bool create_table(database *d, rows_table of, complaint *why)
{
    char create[ROWS_SQL], insert[512];
    rows_write_sql(of, rows_about_table(of)->name, create);
    write_insert(of, insert);
    return run(d->db, create, why) &&
           (sqlite3_prepare_v2(d->db, insert, -1, &d->inserts[of], NULL) == SQLITE_OK ||
            fail(d->db, why));
}

/* If it fails the file goes, so nothing needs to be undone, nor flushed in the meantime. */
static bool create_tables(database *d, complaint *why)
{
    bool good = (sqlite3_open(d->file.temporary, &d->db) == SQLITE_OK || fail(d->db, why)) &&
                run(d->db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", why);
    for (unsigned of = 0; good && of < ROWS_TABLES; of++)
        if (d->wish->columns[of])
            good = create_table(d, (rows_table)of, why);
    return good;
}

bool export_to_sqlite(export_sink *to, const char *path, const rows_wish *wish, complaint *why)
{
    database *d = memory_zeroed(1, sizeof *d);
    *to = (export_sink){write_rows, finish, d};
    d->wish = wish;
    if (!output_open(&d->file, path, OUTPUT_FILE, why)) {
        free(d);
        return false;
    }
    return create_tables(d, why) || finish(d, false, why);
}
