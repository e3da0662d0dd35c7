/* tools/read/source_twin.h - what source.c and its twins share: source_zlib.c, source_plain.c. */
#pragma once

#include "read/source.h"

struct source {
    int fd;
    uint64_t size;     /* 0 if unknown */
    uint64_t position; /* without zlib */
    void *gz;          /* with it */
    bool rewindable;   /* not a pipe */
};

/* The file is open. */
void source_begin(source *s);
