/* tools/beside/symbols.h - functions by their places in files */
#pragma once

#include "table.h"

struct Dwfl;

/* All zero: none is open. */
typedef struct symbols {
    struct Dwfl *files;
    table known; /* a place and its build id... */
    size_t room;
    char **names; /* ...and its function */
} symbols;

/* Of "/usr/lib/libm.so.6+0x1234", an offset in the file, its function; the place itself, shortened
 * to the file's name, where that is not known: the file is not there, or another one than it was
 * (its build id), or built without symbols, or this pk without libdw. Valid until the end. */
const char *symbols_of(symbols *s, const char *place, const char *build);

void symbols_finish(symbols *s);
