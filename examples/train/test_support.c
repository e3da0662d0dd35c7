#include "test_support.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "layers.h"

enum { PATH_BYTES = 4096 };

typedef struct path {
    struct path *next;
    char text[PATH_BYTES];
} path;

/* What *state points to; paths that were asked for live as long. */
typedef struct directory {
    char name[PATH_BYTES / 2];
    path *paths;
} directory;

int directory_make(void **state)
{
    const char *parent = getenv("TMPDIR");
    directory *d = calloc(1, sizeof(*d));
    if (!d)
        return -1;
    *state = d;
    snprintf(d->name, sizeof(d->name), "%s/pk-train-XXXXXX", parent ? parent : "/tmp");
    return mkdtemp(d->name) ? 0 : -1;
}

static void remove_files(void **state, const char *name)
{
    DIR *listing = opendir(name);
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL;)
        if (entry->d_name[0] != '.')
            unlink(path_in(state, entry->d_name));
    if (listing)
        closedir(listing);
}

int directory_remove(void **state)
{
    directory *d = *state;
    remove_files(state, d->name);
    int result = rmdir(d->name);
    while (d->paths) {
        path *next = d->paths->next;
        free(d->paths);
        d->paths = next;
    }
    free(d);
    return result;
}

char *path_in(void **state, const char *name)
{
    directory *d = *state;
    path *p = calloc(1, sizeof(*p));
    if (!p)
        abort();
    snprintf(p->text, sizeof(p->text), "%s/%s", d->name, name);
    p->next = d->paths;
    d->paths = p;
    return p->text;
}

char *text_make(void **state, const char *name, size_t bytes)
{
    char *text = path_in(state, name);
    FILE *file = fopen(text, "wb");
    random_source source = {.state = bytes};
    assert_non_null(file);
    for (size_t i = 0; i < bytes; i++)
        putc((int)(random_bits(&source) & 0xff), file);
    assert_int_equal(fclose(file), 0);
    return text;
}

static int saved_stderr = -1;

void lines_begin(void **state)
{
    fflush(stderr);
    saved_stderr = dup(STDERR_FILENO);
    assert_true(saved_stderr >= 0);
    assert_non_null(freopen(path_in(state, "stderr"), "w", stderr));
}

size_t lines_end(void **state)
{
    size_t lines = 0;
    fflush(stderr);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    FILE *file = fopen(path_in(state, "stderr"), "r");
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        lines += c == '\n';
    fclose(file);
    return lines;
}
