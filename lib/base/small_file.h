/* lib/base/small_file.h - what stands in a small file, or at the beginning of a large one. */
#pragma once

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

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
