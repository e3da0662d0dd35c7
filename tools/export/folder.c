/* tools/export/folder.c - a file for each table. */
#include "export/export.h"

#include "memory.h"
#include "files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool export_make_folder(const char *path, bool *made, complaint *why)
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

bool export_to_folder(export_sink *to, const char *path, const export_form *form,
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
