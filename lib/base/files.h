/* lib/base/files.h - files and descriptors: small ones, ours, the program's standard ones */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what stands in a small file, or at the beginning of a large one ---- */

/* As text: out ends with a 0. How many bytes; 0: none, or no such file. Waits for nobody: what is
 * no file (a FIFO, a device) has none. */
size_t pki_small_file(const char *path, char *out, size_t size);

/* The same of a file whose path has parts, each at most so long that all fit into 4096 bytes. */
size_t pki_small_file_in(const char *folder, const char *name, char *out, size_t size);

/* For the program's threads: by system calls themselves, since open(), read() and close() are
 * points at which a thread may be cancelled; errno stays as it was. What one read gives, so of a
 * file that the kernel makes. */
size_t pki_small_file_quiet(const char *path, char *out, size_t size);

/* What reads of our own on the program's threads have come to, which the kernel counts as its. */
typedef struct pki_own_reads {
    uint64_t bytes, calls;
} pki_own_reads;

/* Of these reads, in this process and those that it is a fork of. Grows only. */
pki_own_reads pki_small_file_quiet_so_far(void);

/* The same on a thread of our own: no part of that sum. */
size_t pki_small_file_once(const char *path, char *out, size_t size);

/* What follows "key<blanks>:<blanks>" in the first such line of a text. */
bool pki_small_file_field(const char *text, const char *key, char *out, size_t size);

/* The number there, a colon or blanks between; what has " kB" behind it in bytes. False: no such
 * line, and value is as it was. */
bool pki_small_file_number(const char *text, const char *key, uint64_t *value);

/* The n-th field, from 3, of /proc/PID/stat: behind the program's name, which may hold anything,
 * brackets too. NULL: there is none. */
const char *pki_proc_stat_field(const char *text, int n);

/* ---- file descriptors that are known to be ours ---- */

/* A number proves nothing: a program may close every descriptor (close_range, as daemons do), and
 * the files that it opens then have the numbers that ours had. So what a descriptor stood for when
 * we opened it is kept with its number: device, inode and, where a file has positions, one that
 * nobody else would have chosen. We read and write at places that we name, so the position is free
 * to be that mark; it tells our opening of a file from the program's own opening of the same file.
 * Both are compared before each write, truncation, allocation and close, for two system calls. What
 * differs is neither written nor closed. (A thread of the program that closes and opens between our
 * look and our write is not noticed; nothing in POSIX makes the two one.)
 *
 * Numbers: a program may run with 0, 1 or 2 closed. A descriptor that got such a number would be
 * taken for a standard stream, so each is moved to a high one at once. */

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

/* Is somebody writing the trace or arena of that name at this moment? Never on a network file
 * system, whose locks may keep one waiting. */
bool pki_file_is_locked(const char *path);

/* ---- is descriptor 2 the standard error that the user means? ---- */

/* A program may be started with 1 or 2 closed, or close them; the next file that it opens has that
 * number and is nobody's standard stream. dup2 to the number, as programs do that send stderr to a
 * file, looks the same; so what counts is whether the number was ever found closed. */

/* Looks at 1 and 2, as is done when the library is loaded and at pk_start. */
void pki_standard_check(void);

/* False and EBADF if number (1 or 2) is closed, or is a file that came after it had been; after the
 * program has closed descriptors of ours, also if it is another file than at the last look. */
bool pki_standard_is_there(int number);

/* ---- writing to stderr and other streams, where the user has asked for it ---- */

/* All of it. False and errno: EBADF if 2 is not the program's stderr (above). A reader
 * that has gone away is an error like others: the SIGPIPE that would end the program is kept from
 * it. */
bool pki_write_stderr(const char *text, size_t n);

/* All of it, in as many pieces as it takes. False and errno. */
bool pki_write_all(int fd, const char *text, size_t n);

/* ---- which commit of a git repository a folder is at, read from its files ---- */

/* No command is run. */

typedef struct pki_revision {
    char commit[65];  /* hexadecimal; "": not in a repository, or not known */
    char branch[128]; /* "": none */
} pki_revision;

/* Of the folder, or one that it is in, if its .git is the user's own. */
void pki_revision_read(const char *folder, pki_revision *r);
