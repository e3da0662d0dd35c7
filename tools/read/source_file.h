/* tools/read/source_file.h - what both twins of source.h do about files. */
#ifndef TOOLS_SOURCE_FILE_H
#define TOOLS_SOURCE_FILE_H

#include "complaint.h"

#include <stdint.h>

typedef struct source_file {
    int fd;
    uint64_t size;   /* 0 if unknown */
    bool rewindable; /* not a pipe */
} source_file;

/* False, and why: it is not there, may not be read, is a directory, is empty. */
bool source_file_open(source_file *file, const char *path, complaint *why);

#endif
