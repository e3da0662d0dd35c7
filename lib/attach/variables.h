/* lib/attach/variables.h - what `pk run` tells libpk_attach: variables of the environment, with
 * their members of pki_attached */
#pragma once

#define PKI_ATTACH_VARIABLES(X)                                                                    \
    X("PK_RUN_FOLDER", folder)                                                                     \
    X("PK_RUN_PRELOAD", preload)                                                                   \
    X("PK_RUN_LIBRARIES", libraries)                                                               \
    X("PK_RUN_COMMAND", command)                                                                   \
    X("PK_RUN_PID", pid)                                                                           \
    X("PK_RUN_RANK", rank)                                                                         \
    X("PK_RUN_SIZE", size)                                                                         \
    X("PK_RUN_LISTEN", listen)                                                                     \
    X("PK_RUN_MPI", mpi)                                                                           \
    X("PK_RUN_TRACE", trace)                                                                       \
    X("PK_RUN_CHILDREN", children)                                                                 \
    X("PK_RUN_QUIET", quiet)                                                                       \
    X("PK_RUN_GPU", gpu)                                                                           \
    X("PK_RUN_STEP", step)                                                                         \
    X("PK_RUN_FUNCTIONS", functions)                                                               \
    X("PK_RUN_PADDING", padding)
