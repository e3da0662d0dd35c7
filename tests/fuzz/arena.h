/* arena.h - a killed run's arena, to be spoilt: a real one, with a few of everything in it.
 */
#ifndef TESTS_FUZZ_ARENA_H
#define TESTS_FUZZ_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct arena_area {
    size_t at, bytes; /* where what is worth spoiling lies */
} arena_area;

#define ARENA_AREAS 24

typedef struct arena_copy {
    int fd; /* a file in memory with the arena in it */
    char path[40];
    const uint8_t *original;
    size_t bytes;
    arena_area areas[ARENA_AREAS];
    size_t area_count;
} arena_copy;

/* The same one at every call. Ends the process if it cannot be made. */
const arena_copy *arena_made(void);

/* The original bytes again, all of them. */
void arena_restore(const arena_copy *arena, size_t at, size_t bytes);

#endif
