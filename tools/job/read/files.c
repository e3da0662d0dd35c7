/* tools/job/read/files.c - which files there are to be read. */
#include "job/job.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

#define DEEPEST 8 /* folders in folders */

void job_note(table *notes, const char *path, const char *what)
{
    char text[PATH_MAX + 400];
    snprintf(text, sizeof text, "%s: %s", path, what);
    table_add(notes, text);
}

/* Of a folder only what perfkit's files are called; a file that is named may have any name. */
static bool may_be_one(const char *name)
{
    static const char *const ends[] = {".json",     ".json.gz", ".jsonl",
                                       ".jsonl.gz", ".arena",   ".goodput"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (name[0] != '.' && pki_ends_with(name, ends[i]))
            return true;
    return false;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Most file systems say it in the folder; of a link it is that of what it leads to. */
static unsigned char type_of(const struct dirent *entry, const char *path)
{
    struct stat about;
    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type;
    if (stat(path, &about) != 0)
        return DT_UNKNOWN;
    return S_ISDIR(about.st_mode) ? DT_DIR : S_ISREG(about.st_mode) ? DT_REG : DT_UNKNOWN;
}

static void look_into(const char *path, unsigned depth, table *files, table *notes)
{
    struct dirent **entries;
    int count = scandir(path, &entries, visible, alphasort);
    if (count < 0) {
        job_note(notes, path, strerror(errno));
        return;
    }
    for (int i = 0; i < count; i++) {
        char inner[PATH_MAX];
        bool fits = snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name) < PATH_MAX;
        unsigned char type = fits ? type_of(entries[i], inner) : DT_UNKNOWN;
        if (type == DT_DIR && depth < DEEPEST)
            look_into(inner, depth + 1, files, notes);
        else if (type == DT_REG && may_be_one(entries[i]->d_name))
            table_add(files, inner);
        free(entries[i]);
    }
    free(entries);
}

void job_files(char **paths, size_t count, table *files, table *notes)
{
    for (size_t i = 0; i < count; i++) {
        struct stat about;
        if (stat(paths[i], &about) == 0 && S_ISDIR(about.st_mode))
            look_into(paths[i], 0, files, notes);
        else
            table_add(files, paths[i]);
    }
}
