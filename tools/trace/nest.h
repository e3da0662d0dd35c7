/* tools/trace/nest.h - which slices of a thread lie in which.
 *
 * Slices come in the order of their ends, inner ones first, as perfkit lists them. So a slice lies
 * in the first one after it that begins no later; until that one comes it waits here, with those
 * that began before it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct nest_slice {
    uint64_t start, end;
    uint64_t value; /* its owner's */
} nest_slice;

typedef struct nest {
    size_t count, room;
    nest_slice *waiting; /* by start; to be freed */
} nest;

/* Those that lie directly in a slice that begins then: waiting[the answer .. count). */
size_t nest_inside(const nest *n, uint64_t start);

/* The slice waits in their place. */
void nest_add(nest *n, size_t inside, nest_slice slice);

/* For qsort: the order in which slices have to come. 0: both are of the same times. */
static inline int nest_order(uint64_t start, uint64_t end, uint64_t other_start, uint64_t other_end)
{
    if (end != other_end)
        return end < other_end ? -1 : 1;
    return (start < other_start) - (start > other_start);
}
