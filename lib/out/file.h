/* lib/out/file.h - files that others read while we write them.
 *
 * A trace file is a whole JSON document whenever nobody is inside a write: each append carries the
 * closing brackets behind the new events, and the next one overwrites them. An append that fails
 * puts the old end back.
 *
 * Names: a new file is made under a random name beside the wanted one (O_EXCL, O_NOFOLLOW) and
 * renamed over it, so nobody else's file, link or device is ever opened or truncated. What is no
 * regular file is not replaced either (target.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/files.h"
#include "out/gz.h"

/* Who may open it is the umask's to say, as of any file that a program makes. */
#define PKI_FILE_MODE 0666
#define PKI_FILE_PRIVATE 0600

/* A fresh file for path, open for reading and writing under a high number (base/files.h); its
 * present name goes to temporary (PATH_MAX bytes). -1 and errno: for something else than a regular
 * file at path, pki_target_is_free's. */
int pki_file_fresh(const char *path, mode_t mode, char *temporary, size_t size);

/* Gives a fresh file its name. False and errno; the temporary is gone then. */
bool pki_file_publish(const char *temporary, const char *path);

/* A file with this in it, whole or not there. False and errno. */
bool pki_file_put(const char *path, const char *text, size_t n);

/* Writes it all, at that place. False and errno: EBADF if the descriptor is not ours any more. */
bool pki_file_write_at(const pki_owned *own, const char *data, size_t n, uint64_t at);

/* Is somebody writing the trace or arena of that name at this moment? Never on a network file
 * system, whose locks may keep one waiting. */
bool pki_file_is_locked(const char *path);

typedef struct pki_trace_file {
    pki_owned own;
    uint64_t end;    /* bytes in the file before the closing brackets */
    uint64_t length; /* with what stands behind them */
    pki_gz *gz;      /* NULL: plain text */
} pki_trace_file;

#define PKI_TRACE_FILE_NONE ((pki_trace_file){.own.fd = -1})

/* Makes the file with this text in it, locked for as long as it is open, so that others can see
 * that it is being written. False and errno: nothing is there then. */
bool pki_trace_file_create(pki_trace_file *file, const char *path, bool compressed,
                           const char *head, size_t head_bytes, const char *tail,
                           size_t tail_bytes);

/* The same under its temporary name (PATH_MAX bytes), to be published by whoever has completed it.
 */
bool pki_trace_file_begin(pki_trace_file *file, const char *path, bool compressed, const char *head,
                          size_t head_bytes, const char *tail, size_t tail_bytes, char *temporary);

/* Puts data behind what is there and tail behind that. False and errno: the file is as before, data
 * is not taken. EBADF: the descriptor is not ours any more, and nothing was touched. */
bool pki_trace_file_append(pki_trace_file *file, const char *data, size_t n, const char *tail,
                           size_t tail_bytes);

/* Writes the head again; plain files only, others are left alone. */
void pki_trace_file_rewrite_head(pki_trace_file *file, const char *head, size_t n);

/* Has the file still its name? Moved: it is there, under another one. Gone: it has none, and what
 * is in it ends with this process. (Behind a network a deleted file may count as moved.) */
typedef enum pki_trace_location {
    PKI_TRACE_THERE,
    PKI_TRACE_MOVED,
    PKI_TRACE_GONE
} pki_trace_location;
pki_trace_location pki_trace_file_location(const pki_trace_file *file, const char *path);

void pki_trace_file_close(pki_trace_file *file);
