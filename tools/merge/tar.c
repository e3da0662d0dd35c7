#include "merge/tar.h"

#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 512
#define PIECE ((size_t)1 << 20)
#define OCTAL_MOST ((uint64_t)1 << 33) /* eleven digits */

static const char zeros[2 * BLOCK];

/* Beyond the eleven digits, GNU's and POSIX' way: a binary number behind a set highest bit. */
static void put_size(char *field, uint64_t size)
{
    if (size < OCTAL_MOST) {
        snprintf(field, 12, "%011llo", (unsigned long long)size);
        return;
    }
    memset(field, 0, 12);
    field[0] = (char)0x80;
    for (int i = 11; size; i--, size >>= 8)
        field[i] = (char)(size & 0xFF);
}

static bool put_header(FILE *to, const char *name, uint64_t size)
{
    char h[BLOCK] = {0};
    unsigned sum = 0;
    snprintf(h, 100, "%s", name);
    memcpy(h + 100, "0000644", 7);
    memcpy(h + 108, "0000000", 7);
    memcpy(h + 116, "0000000", 7);
    put_size(h + 124, size);
    memcpy(h + 136, "00000000000", 11);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    h[155] = ' ';
    return fwrite(h, BLOCK, 1, to) == 1;
}

static bool put_padding(FILE *to, uint64_t size)
{
    size_t more = (size_t)((BLOCK - size % BLOCK) % BLOCK);
    return fwrite(zeros, 1, more, to) == more;
}

bool tar_put_text(FILE *to, const char *name, const char *text, size_t n)
{
    return put_header(to, name, n) && fwrite(text, 1, n, to) == n && put_padding(to, n);
}

static bool copy(FILE *to, int from, uint64_t size)
{
    char *piece = memory_resized(NULL, PIECE);
    bool copied = true;
    for (uint64_t left = size; copied && left;) {
        size_t wanted = left < PIECE ? (size_t)left : PIECE;
        ssize_t got = read(from, piece, wanted);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) { /* it has become shorter */
            memset(piece, 0, wanted);
            got = (ssize_t)wanted;
        }
        copied = fwrite(piece, 1, (size_t)got, to) == (size_t)got;
        left -= (uint64_t)got;
    }
    free(piece);
    return copied && put_padding(to, size);
}

bool tar_put_file(FILE *to, const char *name, const char *path, complaint *why)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0) {
        complaint_set(why, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    uint64_t size = (uint64_t)is.st_size;
    bool put = put_header(to, name, size) && copy(to, fd, size);
    close(fd);
    return put; /* what went wrong with `to`, its owner says */
}

bool tar_end(FILE *to)
{
    return fwrite(zeros, 1, sizeof zeros, to) == sizeof zeros;
}
