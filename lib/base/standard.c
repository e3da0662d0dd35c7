#include "base/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/own.h"

typedef struct stream {
    bool closed; /* once is enough */
    dev_t device;
    ino_t inode;
} stream;

static stream streams[STDERR_FILENO + 1];

static bool check_stream(int number, struct stat *file)
{
    *file = (struct stat){.st_ino = 0};
    if (fcntl(number, F_GETFD) < 0)
        pki_store(&streams[number].closed, true);
    else
        fstat(number, file);
    return !pki_load(&streams[number].closed);
}

void pki_standard_check(void)
{
    struct stat file;
    int error = errno;
    for (int number = STDOUT_FILENO; number <= STDERR_FILENO; number++)
        if (check_stream(number, &file)) {
            pki_store(&streams[number].device, file.st_dev);
            pki_store(&streams[number].inode, file.st_ino);
        }
    errno = error;
}

/* Before main can open anything. */
__attribute__((constructor)) static void check_at_load(void)
{
    pki_standard_check();
}

bool pki_standard_is_there(int number)
{
    const stream *s = &streams[number];
    struct stat file;
    if (check_stream(number, &file) &&
        (!pki_own_any_lost() ||
         (file.st_dev == pki_load(&s->device) && file.st_ino == pki_load(&s->inode))))
        return true;
    errno = EBADF;
    return false;
}
