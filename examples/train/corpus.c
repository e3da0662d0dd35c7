#include "corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "say.h"

/* -1 after complaining. */
static int open_text(const char *path, uint64_t *size)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        complain("cannot read %s: %s", path, strerror(errno));
        return -1;
    }
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        *size = (uint64_t)status.st_size;
        return descriptor;
    }
    complain("cannot learn from %s: not a regular file", path);
    close(descriptor);
    return -1;
}

static bool add_file(corpus *c, const char *path)
{
    uint64_t size = 0;
    int descriptor = open_text(path, &size);
    if (descriptor < 0)
        return false;
    c->files[c->file_count++] =
        (corpus_file){.path = path, .descriptor = descriptor, .first = c->windows};
    if (size <= c->seq) {
        complain("cannot learn from %s: %llu bytes; sequences of %zu need at least %zu", path,
                 (unsigned long long)size, c->seq, c->seq + 1);
        return false;
    }
    c->windows += (size - 1) / c->seq;
    return true;
}

bool corpus_init(corpus *c, char *const *paths, size_t count, size_t seq)
{
    *c = (corpus){.seq = seq, .files = calloc(count ? count : 1, sizeof(*c->files))};
    bool good = c->files != NULL;
    if (!good)
        complain("not enough memory for %zu files", count);
    for (size_t i = 0; good && i < count; i++)
        good = add_file(c, paths[i]);
    if (!good)
        corpus_finish(c);
    return good;
}

void corpus_finish(corpus *c)
{
    for (size_t i = 0; i < c->file_count; i++)
        close(c->files[i].descriptor);
    free(c->files);
    *c = (corpus){0};
}

static const corpus_file *find_file(const corpus *c, uint64_t window)
{
    size_t low = 0, high = c->file_count; /* the file is one of low .. high - 1 */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->files[middle].first <= window)
            low = middle;
        else
            high = middle;
    }
    return &c->files[low];
}

bool corpus_read(const corpus *c, uint64_t window, uint8_t *bytes)
{
    const corpus_file *file = find_file(c, window);
    uint64_t offset = (window - file->first) * c->seq;
    for (size_t done = 0; done <= c->seq;) {
        ssize_t got =
            pread(file->descriptor, bytes + done, c->seq + 1 - done, (off_t)(offset + done));
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            complain("cannot read %s: %s", file->path,
                     got == 0 ? "it has become shorter" : strerror(errno));
            return false;
        }
    }
    return true;
}
