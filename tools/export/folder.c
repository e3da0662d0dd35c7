/* tools/export/folder.c - a file for each table. */
#include "export/export.h"

#include "output.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define BUFFER ((size_t)1 << 20)

static bool write_file(const char *path, export_table *put, rows *r, rows_table of, complaint *why)
{
    output file;
    if (!output_open(&file, path, OUTPUT_FILE, why))
        return false;
    setvbuf(file.to, NULL, _IOFBF, BUFFER);
    put(file.to, r, of);
    return output_close(&file, true, why);
}

bool export_folder(const char *path, const char *ending, export_table *put, rows *r,
                   const rows_wish *wish, complaint *why)
{
    char file[PATH_MAX];
    if (mkdir(path, 0777) && errno != EEXIST)
        return complaint_set(why, "%s: %s", path, strerror(errno));
    for (unsigned of = 0; of < ROWS_TABLES; of++) {
        const char *name = rows_about_table((rows_table)of)->name;
        if (!wish->columns[of])
            continue;
        if ((size_t)snprintf(file, sizeof file, "%s/%s.%s", path, name, ending) >= sizeof file)
            return complaint_set(why, "%s: %s", path, strerror(ENAMETOOLONG));
        if (!write_file(file, put, r, (rows_table)of, why))
            return false;
    }
    return true;
}
