/* tools/export/sqlite_none.c - where SQLite was not there when pk was built. */
#include "export/export.h"

bool export_sqlite(const char *path, rows *r, const rows_wish *wish, complaint *why)
{
    (void)path;
    (void)r;
    (void)wish;
    return complaint_set(why, "this pk was built without SQLite; --csv and --ndjson need none");
}
