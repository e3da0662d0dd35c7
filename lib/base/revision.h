/* lib/base/revision.h - which commit of a git repository a folder is at, read from its files: no
 * command is run. */
#pragma once

#include <stdbool.h>

typedef struct pki_revision {
    char commit[65];   /* hexadecimal; "": not in a repository, or not known */
    char branch[128];  /* "": none */
    char modified[12]; /* of the files that git knows: "yes": one has another size, or is gone;
                          "perhaps": one has another time; "no": all are as when git last looked;
                          "": not known (very many files or a slow file system, an index of
                          another version) */
} pki_revision;

/* Of the folder, or one that it is in, if its .git is the user's own; of its files only if they are
 * asked for: each is looked at, for 50 ms in all. */
void pki_revision_read(const char *folder, bool files, pki_revision *r);
