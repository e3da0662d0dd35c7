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
    bool map_read;
    size_t map_count, map_room;
    struct map_line *map; /* by address */
} symbols;

/* Between the names of functions that are inlined at a place and of the one that they are in. */
#define SYMBOLS_APART "\x1f"

/* Of "/usr/lib/libm.so.6+0x1234", an offset in the file, its functions, the innermost first; the
 * file's name, where that is not known: the file is not there, or another one than it was (its
 * build id), or built without symbols, or this pk without libdw. Valid until the end. */
const char *symbols_of(symbols *s, const char *place, const char *build);

/* Of an address in a process by its track ("4711/4711"), for code that was made while it ran, where
 * that has left names in /tmp/perf-PID.map (Python's -X perf, and others). */
const char *symbols_of_address(symbols *s, const char *process, uint64_t address);

void symbols_finish(symbols *s);
