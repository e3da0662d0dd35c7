/* tools/complaint.h - what is wrong with a file, in one line, from wherever that is found. */
#ifndef TOOLS_COMPLAINT_H
#define TOOLS_COMPLAINT_H

#include <stdbool.h>

typedef struct complaint {
    char text[300]; /* "" until something is wrong */
} complaint;

/* Keeps the first one; control characters that come from the file become '?'. Always false. */
bool complaint_set(complaint *c, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#endif
