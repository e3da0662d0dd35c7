/* lib/measure/environment.h - where a run ran and what it was: machine, command line, builds. */
#pragma once

#include <stdint.h>

/* What is not known is "" or 0. */
typedef struct pki_environment {
    uint64_t memory; /* bytes of the machine; 0: nothing of this was looked at */
    uint64_t processors;
    char *cpu, *architecture, *kernel;
    char *gpu, *driver;
    char *command;          /* words that look like secrets are *** */
    char *compiler;         /* of libpk */
    char *program_compiler; /* of the executable, by its .comment section */
    char *build_id;         /* its GNU build ID */
    char *commit, *branch;  /* of the git repository that the working directory was in at the end */
} pki_environment;
