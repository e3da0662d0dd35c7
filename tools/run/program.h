/* tools/run/program.h - what a program is, read from its files; nothing of it is started */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What may keep pk run from attaching. */
typedef enum program_bar {
    PROGRAM_OPEN,       /* nothing */
    PROGRAM_STATIC,     /* nothing can be loaded in front of its functions */
    PROGRAM_PRIVILEGED, /* the loader ignores what is preloaded: set-user-ID, capabilities */
    PROGRAM_UNKNOWN,    /* it cannot be told what is of this machine: /proc is not there */
    PROGRAM_FOREIGN,    /* another word size or processor */
    PROGRAM_MUSL,       /* another C library, or another loader */
    PROGRAM_USES,       /* it, or a library of its, is linked with perfkit */
    PROGRAM_STRANGE,    /* no ELF file */
} program_bar;

typedef enum program_mpi { MPI_NONE, MPI_OPEN, MPI_MPICH, MPI_STRANGE } program_mpi;

typedef struct program {
    char path[PATH_MAX];   /* of the file that is executed */
    char binary[PATH_MAX]; /* of the ELF file behind it: itself, or a script's interpreter */
    program_bar bar;
    program_mpi mpi;
    uint64_t bytes;        /* of address space that it takes, with the libraries that it needs */
    bool headless;         /* a text without "#!", which a shell reads */
    char mpi_library[256]; /* its file; "" */
    char detail[256];      /* what the bar is about: a loader's name, a library's */
} program;

/* The file that a shell would start for this word, in p->path. 0; else 126 or 127, the shell's
 * status for it, with errno. */
int program_find(const char *word, program *p);

/* The same of a path, as execve takes it: without a slash it lies in the working folder. */
int program_take(const char *path, program *p);

/* All the rest, of p->path. preloaded: as LD_PRELOAD has it, or NULL. */
void program_look(program *p, const char *preloaded);
