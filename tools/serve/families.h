/* tools/serve/families.h - several files of Prometheus' text format as one.
 *
 * The format wants a family's HELP and TYPE once and its samples together; files of several ranks
 * each have them. So samples are gathered by family, in the order in which families first come.
 */
#pragma once

#include <stddef.h>

typedef struct family {
    char *name, *about; /* about: its HELP and TYPE as they stood first */
    char *samples;
    size_t about_length, samples_length;
} family;

/* All zero is empty. */
typedef struct families {
    family *all;
    size_t count;
} families;

/* Takes what a file holds. Lines that are neither a comment nor a sample are left out. */
void families_add(families *to, const char *text, size_t length);

/* All of it, the caller's to free. */
char *families_text(const families *from, size_t *length);

void families_finish(families *f);
