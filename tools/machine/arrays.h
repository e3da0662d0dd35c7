/* tools/machine/arrays.h - the three arrays of each thread, in memory that it touches first. */
#pragma once

#include "machine/measure.h"

#include <stddef.h>

typedef struct array_set {
    double *a, *b, *c;
    size_t count; /* doubles in each */
} array_set;

typedef struct arrays {
    array_set *sets; /* one for each thread */
    unsigned threads;
    void *memory;
    size_t bytes;
} arrays;

/* How large: four times the largest caches, as STREAM asks for, within the bound (0: a quarter of
 * the memory that is free and that the cgroup allows). */
void arrays_choose(machine_found *found, uint32_t memory_mib);

/* bytes: of each of the three, of all threads together. False, and why. */
bool arrays_make(arrays *a, unsigned threads, uint64_t bytes, complaint *why);
void arrays_touch(arrays *a, unsigned thread);
size_t arrays_count(const arrays *a); /* doubles in one array, of all threads */
void arrays_free(arrays *a);
