/* tools/run/own.h - where perfkit's own files lie */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* A library's file by its name: beside this program, as it is built or installed, or where it was
 * to be installed. */
bool own_file(const char *name, char path[PATH_MAX]);
