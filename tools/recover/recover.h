/* tools/recover/recover.h - what pk recover does, apart from its words. */
#pragma once

#include "complaint.h"

#include <limits.h>
#include <stdint.h>

typedef struct recovery {
    char out[PATH_MAX];
    bool was_arena;
    uint64_t events;      /* in the trace; for a cut trace: lines */
    uint64_t from_memory; /* of them, from the arena */
    uint64_t cut_bytes;
} recovery;

typedef struct recovery_wish {
    const char *out;   /* NULL: the arena's own trace */
    const char *trace; /* NULL: beside the arena, or where the run had it */
} recovery_wish;

/* False, and why; nothing has been written over then. */
bool recover_file(const char *path, const recovery_wish *wish, recovery *done, complaint *why);

/* cut.c: of a trace; out is not NULL. */
bool recover_cut(const char *path, const char *out, recovery *done, complaint *why);
