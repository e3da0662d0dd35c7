#include "read/source_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool check(source_file *file, complaint *why)
{
    struct stat status;
    if (fstat(file->fd, &status))
        return complaint_set(why, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return complaint_set(why, "is a directory");
    if (S_ISREG(status.st_mode) && status.st_size == 0)
        return complaint_set(why, "is empty");
    file->size = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    file->rewindable = lseek(file->fd, 0, SEEK_SET) == 0;
    return true;
}

bool source_file_open(source_file *file, const char *path, complaint *why)
{
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file->fd < 0)
        return complaint_set(why, "%s", strerror(errno));
    if (check(file, why))
        return true;
    close(file->fd);
    return false;
}
