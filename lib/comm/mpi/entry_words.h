/* lib/comm/mpi/entry_words.h - what entry.c and entry_4.c make a function of: parameters that are
 * words, whatever their types. */
#pragma once

#include <stdint.h>

#include "comm/mpi/session.h"

typedef uintptr_t word;

#define WORDS_0 void
#define WORDS_1 word a
#define WORDS_2 WORDS_1, word b
#define WORDS_3 WORDS_2, word c
#define WORDS_4 WORDS_3, word d
#define WORDS_5 WORDS_4, word e
#define WORDS_6 WORDS_5, word f
#define WORDS_7 WORDS_6, word g
#define WORDS_8 WORDS_7, word h
#define WORDS_9 WORDS_8, word i
#define WORDS_10 WORDS_9, word j
#define WORDS_12 WORDS_10, word k, word l

#define ARGS_0
#define ARGS_1 a
#define ARGS_2 ARGS_1, b
#define ARGS_3 ARGS_2, c
#define ARGS_4 ARGS_3, d
#define ARGS_5 ARGS_4, e
#define ARGS_6 ARGS_5, f
#define ARGS_7 ARGS_6, g
#define ARGS_8 ARGS_7, h
#define ARGS_9 ARGS_8, i
#define ARGS_10 ARGS_9, j
#define ARGS_12 ARGS_10, k, l

#define ENTRY(NAME, N)                                                                             \
    word PMPI_##NAME(WORDS_##N);                                                                   \
    word pki_mpi_##NAME(WORDS_##N);                                                                \
    __attribute__((visibility("default"))) word MPI_##NAME(WORDS_##N);                             \
    word MPI_##NAME(WORDS_##N)                                                                     \
    {                                                                                              \
        return pki_mpi_is_other() ? PMPI_##NAME(ARGS_##N) : pki_mpi_##NAME(ARGS_##N);              \
    }
