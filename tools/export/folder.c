/* tools/export/folder.c - a file for each table. */
#include "export/export.h"

#include "out/file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER ((size_t)1 << 20)

/* Under another name until it is whole. */
static bool write_file(const char *path, export_table *put, rows *r, rows_table of, complaint *why)
{
    char temporary[PATH_MAX];
    int fd = pki_file_fresh(path, temporary, sizeof temporary);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to) {
        complaint_set(why, "%s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
        return false;
    }
    setvbuf(to, NULL, _IOFBF, BUFFER);
    put(to, r, of);
    bool failed = fflush(to) != 0 || ferror(to);
    int error = errno;
    if (fclose(to) || failed) {
        unlink(temporary);
        return complaint_set(why, "%s: %s", path, strerror(failed ? error : errno));
    }
    return pki_file_publish(temporary, path) || complaint_set(why, "%s: %s", path, strerror(errno));
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
