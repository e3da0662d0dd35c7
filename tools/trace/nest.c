#include "trace/nest.h"

#include "memory.h"

size_t nest_inside(const nest *n, uint64_t start)
{
    size_t inside = n->count;
    while (inside && n->waiting[inside - 1].start >= start)
        inside--;
    return inside;
}

void nest_add(nest *n, size_t inside, nest_slice slice)
{
    memory_fit(&n->waiting, &n->room, inside + 1, sizeof *n->waiting);
    n->waiting[inside] = slice;
    n->count = inside + 1;
}
