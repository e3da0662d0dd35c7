/* lib/base/own.h - file descriptors that are known to be ours.
 *
 * A number proves nothing: a program may close every descriptor (close_range, as daemons do), and
 * the files that it opens then have the numbers that ours had. So what a descriptor stood for when
 * we opened it is kept with its number: device, inode and, where a file has positions, one that
 * nobody else would have chosen. We read and write at places that we name, so the position is free
 * to be that mark; it tells our opening of a file from the program's own opening of the same file.
 * Both are compared before each write, truncation, allocation and close, for two system calls. What
 * differs is neither written nor closed. (A thread of the program that closes and opens between our
 * look and our write is not noticed; nothing in POSIX makes the two one.)
 *
 * Numbers: a program may run with 0, 1 or 2 closed. A descriptor that got such a number would be
 * taken for a standard stream, so each is moved to a high one at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct pki_owned {
    int fd; /* -1: none */
    uint64_t device, inode;
    int64_t mark; /* the position; -1: the file has none */
} pki_owned;

/* The same file under a high number, close-on-exec. Where the limit of descriptors leaves no room
 * there it stays where it is, but never at 0, 1 or 2. -1 and errno: fd is closed then. -1 in, -1
 * out, with errno as it was. */
int pki_fd_up(int fd);

/* open(2), close-on-exec and under a high number. */
int pki_fd_open(const char *path, int flags, unsigned mode);

/* Remembers what fd is: it is ours from here on. False and errno. */
bool pki_own_adopt(pki_owned *own, int fd);

/* Is it still? False and EBADF if not, or if there is none. */
bool pki_own_check(const pki_owned *own);

/* Closes it if it is still ours, and forgets it. */
void pki_own_close(pki_owned *own);

/* Is it what the path names? Of a descriptor that the program has closed, too. */
bool pki_own_is_at(const pki_owned *own, const char *path);

/* Has any been found closed or replaced in this process? */
bool pki_own_any_lost(void);

/* What an errno means that came with a file of ours. */
const char *pki_own_why(int error);

/* Locks of open file descriptions (F_OFD_SETLK): unlike a process's locks they outlast somebody
 * else's opening and closing of the same file. The kernel holds one as long as anything refers to
 * what was opened: this descriptor, a mapping of it, or the copies of a forked child. */
bool pki_own_lock(
    const pki_owned *own); /* False and errno: EAGAIN or EACCES if another holds one */
void pki_own_unlock(const pki_owned *own);
