/* lib/base/revision.h - which commit of a git repository a folder is at, read from its files: no
 * command is run. */
#pragma once

#include <stdbool.h>

typedef struct pki_revision {
    char commit[65];  /* hexadecimal; "": not in a repository, or not known */
    char branch[128]; /* "": none */
} pki_revision;

/* Of the folder, or one that it is in, if its .git is the user's own. */
void pki_revision_read(const char *folder, pki_revision *r);
