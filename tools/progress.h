/* tools/progress.h - "reading run.json: 40 %" on stderr, for those who wait at a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const char *what; /* NULL: say nothing */
    uint64_t next;    /* when there is something to say again, ns */
    bool said;
} progress;

/* Nothing is said if stderr is not a terminal, nor within the first second. */
progress progress_start(const char *what, bool wanted);

/* part: 0 .. 1; negative if unknown. Cheap enough for every few thousand lines. */
void progress_show(progress *p, double part);

/* Takes back what has been said. */
void progress_end(progress *p);
