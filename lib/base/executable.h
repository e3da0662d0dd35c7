/* lib/base/executable.h - what an executable says of its making. */
#pragma once

#include <stddef.h>

typedef struct pki_executable {
    char build_id[65];  /* hexadecimal, of the note that linkers make (--build-id); "": none */
    char compiler[160]; /* of its .comment section, the first ones; "": stripped, or not told */
} pki_executable;

/* Of an ELF file of this machine's word size; all "" of anything else. */
void pki_executable_read(const char *path, pki_executable *e);
