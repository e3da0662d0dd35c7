/* lib/out/file.h - files that others read while we write them: names, places, parts */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/files.h"
#include "out/gz.h"

/* ---- target ---- */

/* May a file of ours have this path? Only where there is a regular file or
 * nothing yet.
 *
 * A finished file is renamed over what has its name. That would put an ordinary file in the place
 * of a device that the whole machine uses (/dev/stdout, /dev/null), of a pipe that somebody reads,
 * or of a link whose file would then go without what was meant for it. Whoever makes a file
 * asks here first, and says what is wrong in the same words. */

/* True: there is nothing, a regular file, or it is unknown. False and errno: EISDIR for a folder,
 * ELOOP for a symbolic link, EEXIST for a device, a pipe or a socket. */
bool pki_target_is_free(const char *path);

/* What the option that has the path can say in its stead; NULL: nothing. */
typedef struct pki_target_hints {
    const char *nothing; /* for /dev/null: "leave trace_path empty for statistics only" */
    const char *stream;  /* for /dev/stdout and the like: "\"-\" for the standard output" */
} pki_target_hints;

typedef struct pki_target_text {
    char text[256];
} pki_target_text;

/* Why a file of this path could not be made: what stands there instead and what to name, if that is
 * it; otherwise the error's own words. hints may be NULL. Leaves errno as it is. */
pki_target_text pki_target_why(const char *path, int error, const pki_target_hints *hints);

/* ---- what the files of a trace are called that is cut into several ---- */

/* Run.json is written; once it is full it becomes run.part1.json, the next one run.part2.json.
 * Tools find them by these names. */

/* "run.part3.json" of "run.json" and 3. False: it is longer than a path can be. */
bool pki_part_name(const char *path, uint32_t part, char name[PATH_MAX]);

/* 3 of "run.part3.json" beside "run.json"; 0: it is no part of that. Both without folders. */
uint32_t pki_part_of(const char *name, const char *of);

/* Is it a part's name, whatever it is of? */
bool pki_part_is_one(const char *path);

/* ---- files that others read while we write them ---- */

/* A trace file is a whole JSON document whenever nobody is inside a write: each append carries the
 * closing brackets behind the new events, and the next one overwrites them. An append that fails
 * puts the old end back.
 *
 * Names: a new file is made under a random name beside the wanted one (O_EXCL, O_NOFOLLOW) and
 * renamed over it, so nobody else's file, link or device is ever opened or truncated. What is no
 * regular file is not replaced either (target.h). */

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

/* ---- a file of lines that never ends, in a bounded number of parts ---- */

/* NAME is written; when it has reached its share of the bound it becomes NAME.1, what was that
 * NAME.2 and so on, and the oldest part goes. Every line is in one part, whole; a name that ends in
 * .gz is compressed, and each part can be unpacked by itself at any moment. If somebody moves or
 * deletes NAME, as programs that rotate logs do, a new one is begun. */

#define PKI_ROLLING_PARTS 4

typedef struct pki_rolling {
    char path[PATH_MAX]; /* absolute, or the program must not change its folder */
    bool compressed;
    uint64_t part_bytes; /* of each part */
    bool open;
    pki_trace_file file;
} pki_rolling;

/* Makes the file, in place of one that is there. most_bytes: of all parts. False and errno. */
bool pki_rolling_open(pki_rolling *rolling, const char *path, bool compressed, uint64_t most_bytes);

/* What an earlier run has left, with its parts, becomes NAME.prev, NAME.prev.1, ..., in place of
 * what was there; where there is nothing in it, that stays. What cannot be renamed stays, too. */
void pki_rolling_keep(const char *path);

/* Lines, whole. False and errno: none of it is there, and it may be tried again. EFBIG: it is more
 * than a part may hold. */
bool pki_rolling_append(pki_rolling *rolling, const char *lines, size_t n);

void pki_rolling_close(pki_rolling *rolling);

/* NAME.1 for 1, ... False: it is longer than a path can be. */
bool pki_rolling_part(const char *path, unsigned part, char name[PATH_MAX]);
