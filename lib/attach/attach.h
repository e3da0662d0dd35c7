/* lib/attach/attach.h - libpk_attach, which `pk run` preloads into a program that knows nothing of
 * perfkit: what its files share.
 *
 *     attach.c   the session: begun as the library is loaded, ended at exit
 *     repeats.c  steps from what repeats
 *
 * It knows perfkit as any program does. Where `pk run` has not asked for it, nothing of it does
 * anything.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* ---- attach.c ---- */

/* What `pk run` has left in the environment: copies, each behind its "NAME=". */
typedef struct pki_attached {
    const char *folder; /* NULL: it was not asked for */
    const char *preload, *command, *pid, *rank, *size, *listen, *mpi;
    const char *trace, *children, *quiet, *gpu;
    char *preload_line; /* "LD_PRELOAD=...", as it was before; NULL: it was not set */
} pki_attached;

extern pki_attached pki_attach;

/* Variables of `pk run`'s, with their members. */
#define PKI_ATTACH_VARIABLES(X)                                                                    \
    X("PK_RUN_FOLDER", folder)                                                                     \
    X("PK_RUN_PRELOAD", preload)                                                                   \
    X("PK_RUN_COMMAND", command)                                                                   \
    X("PK_RUN_PID", pid)                                                                           \
    X("PK_RUN_RANK", rank)                                                                         \
    X("PK_RUN_SIZE", size)                                                                         \
    X("PK_RUN_LISTEN", listen)                                                                     \
    X("PK_RUN_MPI", mpi)                                                                           \
    X("PK_RUN_TRACE", trace)                                                                       \
    X("PK_RUN_CHILDREN", children)                                                                 \
    X("PK_RUN_QUIET", quiet)                                                                       \
    X("PK_RUN_GPU", gpu)
