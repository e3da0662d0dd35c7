#include "trace/nest.h"

#include <stdlib.h>

#define FIRST_ROOM 16u

size_t nest_inside(const nest *n, uint64_t start)
{
    size_t inside = n->count;
    while (inside && n->waiting[inside - 1].start >= start)
        inside--;
    return inside;
}

bool nest_add(nest *n, size_t inside, nest_slice slice)
{
    if (inside == n->room) {
        size_t room = n->room ? 2 * n->room : FIRST_ROOM;
        nest_slice *grown = realloc(n->waiting, room * sizeof *grown);
        if (!grown)
            return false;
        n->waiting = grown;
        n->room = room;
    }
    n->waiting[inside] = slice;
    n->count = inside + 1;
    return true;
}
