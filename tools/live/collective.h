/* tools/live/collective.h - collectives that some ranks have begun and others have not. */
#pragma once

#include "live/behind.h"

typedef struct collective {
    const char *comm; /* as all ranks call it */
    const char *library;
    int32_t size;
    uint64_t operation; /* its number on the communicator */
    bool started;       /* by those inside; else enqueued alone is known */
    size_t inside;      /* so many are */
    bool since_known;
    uint64_t shortest_ns; /* the last of them came so long ago */
} collective;

typedef enum collective_part {
    COLLECTIVE_STRANGER, /* no rank of this communicator, as far as known */
    COLLECTIVE_INSIDE,
    COLLECTIVE_NOT_STARTED,
    COLLECTIVE_NOT_ENQUEUED
} collective_part;

/* The next one that lacks somebody; *next begins with 0. False: there are no more. */
bool collective_next(collective *c, const view *views, size_t count, size_t *next);

collective_part collective_part_of(const collective *c, const view *views, size_t of);
