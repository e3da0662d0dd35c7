/* lib/out/target.h - may a file of ours have this path? Only where there is a regular file or
 * nothing yet.
 *
 * A finished file is renamed over what has its name. That would put an ordinary file in the place
 * of a device that the whole machine uses (/dev/stdout, /dev/null), of a pipe that somebody reads,
 * or of a link whose file would then go without what was meant for it. Whoever makes a file
 * (file.h) asks here first, and says what is wrong in the same words.
 */
#pragma once

#include <stdbool.h>

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
