/* lib/out/salvage_look.c - what a file is, by its first bytes. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "out/salvage.h"

/* How many bytes of the magic are there; -1 if it cannot be read. */
static ssize_t read_magic(const char *path, char magic[sizeof PKI_ARENA_MAGIC])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, magic, sizeof PKI_ARENA_MAGIC);
    close(fd);
    return n;
}

bool pki_salvage_recognise(const char *path)
{
    char magic[sizeof PKI_ARENA_MAGIC];
    return read_magic(path, magic) == (ssize_t)sizeof magic &&
           memcmp(magic, PKI_ARENA_MAGIC, sizeof magic) == 0;
}

bool pki_salvage_is_blank(const char *path)
{
    char magic[sizeof PKI_ARENA_MAGIC] = "";
    static const char none[sizeof magic];
    return read_magic(path, magic) >= 0 && memcmp(magic, none, sizeof magic) == 0;
}
