#include "serve/answer.h"

#include "base/text.h"
#include "memory.h"
#include "serve/families.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST ((size_t)1 << 20) /* 300 series are 60 KiB */
#define FILES_MOST 4096u

typedef struct page {
    families families;
    unsigned files, unreadable;
} page;

/* A regular file: a pipe could keep the whole page waiting. */
static int open_file(const char *path)
{
    struct stat file;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) &&
        (uint64_t)file.st_size <= FILE_MOST)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void add_file(page *p, const char *path)
{
    size_t length = 0;
    ssize_t got = 1;
    int fd = p->files < FILES_MOST ? open_file(path) : -1;
    if (fd < 0) {
        p->unreadable++;
        return;
    }
    char *text = memory_resized(NULL, FILE_MOST);
    while (length < FILE_MOST && got > 0) {
        got = read(fd, text + length, FILE_MOST - length);
        length += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    families_add(&p->families, text, length);
    free(text);
    p->files++;
}

static int is_prom(const struct dirent *entry)
{
    return pki_ends_with(entry->d_name, ".prom");
}

static bool add_folder(page *p, const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_prom, alphasort);
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX];
        if (snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name) < (int)sizeof name)
            add_file(p, name);
        free(entries[i]);
    }
    free(entries);
    return count >= 0;
}

static void add_own(page *p)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "# HELP pk_serve_files Files that this page is made of.\n"
                     "# TYPE pk_serve_files gauge\npk_serve_files %u\n"
                     "# HELP pk_serve_unreadable_files Files that could not be read.\n"
                     "# TYPE pk_serve_unreadable_files gauge\npk_serve_unreadable_files %u\n",
                     p->files, p->unreadable);
    families_add(&p->families, text, (size_t)n);
}

char *serve_answer(const char *const *paths, size_t count, size_t *length)
{
    page p = {.files = 0};
    for (size_t i = 0; i < count; i++)
        if (!add_folder(&p, paths[i]))
            add_file(&p, paths[i]);
    add_own(&p);
    char *text = families_text(&p.families, length);
    families_finish(&p.families);
    return text;
}
