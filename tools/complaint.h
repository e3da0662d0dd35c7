/* tools/complaint.h - what is wrong with a file, in one line, from wherever that is found. */
#pragma once

#include <stdbool.h>

typedef struct complaint {
    char text[300]; /* "" until something is wrong */
} complaint;

/* Keeps the first one; control characters that come from the file become '?'. Always false. */
bool complaint_set(complaint *c, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));
