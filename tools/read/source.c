#include "read/source_twin.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool check(source *s, complaint *why)
{
    struct stat status;
    if (fstat(s->fd, &status))
        return complaint_set(why, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return complaint_set(why, "is a directory");
    if (S_ISREG(status.st_mode) && status.st_size == 0)
        return complaint_set(why, "is empty");
    s->size = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    s->rewindable = lseek(s->fd, 0, SEEK_SET) == 0;
    return true;
}

static bool open_file(source *s, const char *path, complaint *why)
{
    s->fd = open(strcmp(path, "-") == 0 ? "/dev/stdin" : path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0)
        return complaint_set(why, "%s", strerror(errno));
    if (!check(s, why)) {
        close(s->fd);
        return false;
    }
    source_begin(s);
    return true;
}

source *source_open(const char *path, complaint *why)
{
    source *s = memory_zeroed(1, sizeof *s);
    if (open_file(s, path, why))
        return s;
    free(s);
    return NULL;
}

bool source_is_rewindable(const source *s)
{
    return s->rewindable;
}
