/* tools/merge/tar.h - files as one: POSIX ustar, uncompressed. */
#pragma once

#include "complaint.h"

#include <stddef.h>
#include <stdio.h>

/* Names of up to 99 bytes. False and errno. */
bool tar_put_text(FILE *to, const char *name, const char *text, size_t n);

/* As long as it is now: what is added meanwhile is not in it. False, and why. */
bool tar_put_file(FILE *to, const char *name, const char *path, complaint *why);
bool tar_end(FILE *to);
