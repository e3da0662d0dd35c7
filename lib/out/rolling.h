/* lib/out/rolling.h - a file of lines that never ends, in a bounded number of parts.
 *
 * NAME is written; when it has reached its share of the bound it becomes NAME.1, what was that
 * NAME.2 and so on, and the oldest part goes. Every line is in one part, whole; a name that ends in
 * .gz is compressed, and each part can be unpacked by itself at any moment. If somebody moves or
 * deletes NAME, as programs that rotate logs do, a new one is begun.
 */
#pragma once

#include <limits.h>

#include "out/file.h"

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
