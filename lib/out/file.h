/* lib/out/file.h - files that others read while we write them.
 *
 * A trace file is a whole JSON document whenever nobody is inside a write: each append carries the
 * closing brackets behind the new events, and the next one overwrites them. An append that fails
 * puts the old end back.
 *
 * Names: a new file is made under a random name beside the wanted one (O_EXCL, O_NOFOLLOW, mode
 * 0600) and renamed over it, so nobody else's file, link or device is ever opened or truncated.
 */
#ifndef PKI_OUT_FILE_H
#define PKI_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "out/gz.h"

/* A fresh file for path, open for reading and writing; its present name goes to temporary (PATH_MAX
 * bytes). -1 and errno. */
int pki_file_fresh(const char *path, char *temporary, size_t size);

/* Gives a fresh file its name. False and errno; the temporary is gone then. */
bool pki_file_publish(const char *temporary, const char *path);

/* Writes it all, at that place. False and errno. */
bool pki_file_write_at(int fd, const char *data, size_t n, uint64_t at);

typedef struct pki_trace_file {
    int fd;
    uint64_t end;    /* bytes in the file before the closing brackets */
    uint64_t length; /* with what stands behind them */
    pki_gz *gz;      /* NULL: plain text */
} pki_trace_file;

/* Makes the file with this text in it. False and errno: nothing is there then. */
bool pki_trace_file_create(pki_trace_file *file, const char *path, bool compressed,
                           const char *head, size_t head_bytes, const char *tail,
                           size_t tail_bytes);

/* Puts data behind what is there and tail behind that. False and errno: the file is as before, data
 * is not taken. */
bool pki_trace_file_append(pki_trace_file *file, const char *data, size_t n, const char *tail,
                           size_t tail_bytes);

/* Writes the head again; plain files only, others are left alone. */
void pki_trace_file_rewrite_head(pki_trace_file *file, const char *head, size_t n);

void pki_trace_file_close(pki_trace_file *file);

#endif
