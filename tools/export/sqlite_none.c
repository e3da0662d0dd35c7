/* tools/export/sqlite_none.c - where SQLite was not there when pk was built. */
#include "export/export.h"

bool export_to_sqlite(export_sink *to, const char *path, const rows_wish *wish, complaint *why)
{
    (void)to;
    (void)path;
    (void)wish;
    return complaint_set(why, "this pk was built without SQLite; --csv and --ndjson need none");
}
