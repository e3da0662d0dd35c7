/* lib/attach/attach.h - libpk_attach, which `pk run` preloads into a program that knows nothing of
 * perfkit: what its files share.
 *
 *     attach.c   the session: begun as the library is loaded, ended at exit
 *     become.c   the process becomes another program, or enters namespaces
 *     steps.c    steps by the user's word, or...
 *     functions.c  functions of the program: their names; calls of those that have hooks
 *     itt.c      whom it listens to, each by its published interface; NVTX is libpk's
 *     kokkos.c
 *     ompt.c
 *     repeats.c  ...from what repeats
 *
 * It knows perfkit as any program does. Where `pk run` has not asked for it, nothing of it does
 * anything.
 */
#pragma once

#include <pk/region.h>

#include <stdbool.h>
#include <stddef.h>

#include "attach/variables.h"

/* ---- attach.c ---- */

/* What `pk run` has left in the environment: copies, each behind its "NAME=". */
typedef struct pki_attached {
    const char *folder; /* NULL: it was not asked for */
    const char *preload, *libraries, *command, *pid, *rank, *size, *listen, *mpi;
    const char *trace, *children, *quiet, *gpu, *step, *functions;
    const char *padding; /* so that as many variables go as fill whole pairs */
    char *preload_line;  /* "LD_PRELOAD=...", as it was before; NULL: it was not set */
} pki_attached;

extern pki_attached pki_attach;

/* Does the run listen to it: "ompt", "kokkos", ...? */
bool pki_attach_listens(const char *whom);

/* Is this the process of the session? */
bool pki_attach_is_here(void);

/* Of that process alone, and once. process: it ends, and does not become another program. whole: by
 * exit(), so there is time. */
void pki_attach_end(bool process, bool whole);

/* "NAME=VALUE" of the environment: is it of that name? Is it what `pk run` has told us? The value
 * that the program's own getenv() finds, or NULL. */
bool pki_attach_is_variable(const char *line, const char *name);
bool pki_attach_is_told(const char *line);
char *pki_attach_find_variable(const char *name);

/* The process that `pk run` was, not one that it has started (--children). */
bool pki_attach_is_first(void);

/* ---- become.c ---- */

/* In the child of a fork. */
void pki_become_in_child(void);

/* ---- steps.c ---- */

/* pk_region_begin; on the main thread it may be where a step ends. site: where the program calls
 * from, or NULL. */
void pki_attach_begin(pk_region *region, const void *site);

/* At the end: what was found, for the report. Answers it in words, "; 12 steps found, ..."; "":
 * nothing. */
const char *pki_attach_steps_end(void);

/* ---- functions.c ---- */

/* The function and how far behind its beginning, or the library; by the file's own table of symbols
 * where it has one. To be asked once for each place: it reads files. Answers `out`. */
const char *pki_attach_place(const void *code, char *out, size_t size);
